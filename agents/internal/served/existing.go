// SPDX-License-Identifier: Apache-2.0

package served

import (
	"io/fs"
	"os"
	"path"
	"syscall"

	"golang.org/x/sys/unix"

	"bandwidthbroker/agents/internal/failure"
)

// Existing is a file that has the name and the size of one that was to be received, to be compared with it.
type Existing struct {
	File   *os.File
	name   string // bare
	dir    *os.Root
	handle *os.File // the same, as a descriptor
	before fs.FileInfo
}

// Existing opens what is there under a destination's name. Only a regular file of the right size is worth to be compared, and not by way of
// a symbolic link: that would be somebody's name for another file.
func (f *Folder) Existing(destination string, volume int64) (*Existing, bool) {
	if CheckPath(destination) != nil {
		return nil, false
	}
	dir, err := f.root.OpenRoot(path.Dir(destination))
	if err != nil {
		return nil, false
	}
	e := &Existing{dir: dir, name: path.Base(destination)}
	if e.handle, err = dir.Open("."); err == nil {
		var fd int
		fd, err = unix.Openat(int(e.handle.Fd()), e.name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err == nil {
			e.File = os.NewFile(uintptr(fd), e.name)
			e.before, err = e.File.Stat()
		}
	}
	if err != nil || !e.before.Mode().IsRegular() || e.before.Size() != volume {
		e.Close()
		return nil, false
	}
	return e, true
}

// Settle says, after the file was read, that it still is what was read under that name, and makes it safe on disk.
func (e *Existing) Settle() *failure.Failure {
	if err := e.File.Sync(); err != nil {
		return WriteFailure(e.name, err)
	}
	if err := e.handle.Sync(); err != nil {
		return WriteFailure(e.name, err)
	}
	now, err := e.File.Stat()
	if err != nil {
		return WriteFailure(e.name, err)
	}
	named, err := e.dir.Lstat(e.name)
	if err != nil || !os.SameFile(named, now) || changed(e.before, now) {
		return failure.New(failure.DestinationExists, "%s exists, and changed while it was compared", e.name)
	}
	return nil
}

// changed compares what a write changes, whatever it does to the modification time.
func changed(before, now fs.FileInfo) bool {
	was, ok := before.Sys().(*syscall.Stat_t)
	is, ok2 := now.Sys().(*syscall.Stat_t)
	return !ok || !ok2 || was.Size != is.Size || was.Mtim != is.Mtim || was.Ctim != is.Ctim
}

// Close lets go of the descriptors.
func (e *Existing) Close() {
	if e.File != nil {
		_ = e.File.Close()
	}
	if e.handle != nil {
		_ = e.handle.Close()
	}
	_ = e.dir.Close()
}
