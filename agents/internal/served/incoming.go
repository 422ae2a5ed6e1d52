// SPDX-License-Identifier: Apache-2.0

package served

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"bandwidthbroker/agents/internal/failure"
)

// Incoming is a file on its way in: written under a hidden name in the folder of its destination, so that the final
// rename is atomic and an unfinished file is never mistaken for a finished one.
type Incoming struct {
	File    *os.File
	partial string   // bare name
	final   string   // bare name
	dir     *os.Root // the destination's folder, held open: a rename of it does not move us elsewhere
	handle  *os.File // the same, as a descriptor
}

// PartialName is the hidden name of a transfer's unfinished file.
func PartialName(transfer string) string { return ".bwb-" + transfer + ".part" }

func isPartialName(name string) bool {
	return strings.HasPrefix(name, ".bwb-") && strings.HasSuffix(name, ".part")
}

// PartialPath is the same relative to the folder, for the journal.
func PartialPath(transfer, destination string) string {
	return path.Join(path.Dir(destination), PartialName(transfer))
}

// Begin opens or makes the partial file of a transfer. Folders on the way to the destination are made.
func (f *Folder) Begin(transfer, destination string, overwrite bool) (in *Incoming, fail *failure.Failure) {
	if refused := CheckPath(destination); refused != nil {
		return nil, refused
	}
	if isPartialName(path.Base(destination)) {
		return nil, failure.New(failure.PathRefused, "%q is a name that agents use for unfinished files", destination)
	}
	if err := f.root.MkdirAll(path.Dir(destination), 0o755); err != nil {
		return nil, destinationFailure(destination, err)
	}
	dir, err := f.root.OpenRoot(path.Dir(destination))
	if err != nil {
		return nil, destinationFailure(destination, err)
	}
	in = &Incoming{dir: dir, partial: PartialName(transfer), final: path.Base(destination)}
	defer func() {
		if fail != nil {
			in.Close()
		}
	}()
	if in.handle, err = dir.Open("."); err != nil {
		return in, destinationFailure(destination, err)
	}
	if info, err := dir.Lstat(in.final); err == nil {
		if !overwrite {
			return in, failure.New(failure.DestinationExists, "%s exists and the transfer does not say overwrite", destination)
		}
		if !info.Mode().IsRegular() {
			return in, failure.New(failure.DestinationExists, "%s is %s, which is not overwritten", destination, kind(info.Mode()))
		}
	}
	// Not through os.Root, which would follow a link to elsewhere in the folder: the name is a bare one of our own.
	fd, err := unix.Openat(int(in.handle.Fd()), in.partial, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return in, destinationFailure(destination, err)
	}
	in.File = os.NewFile(uintptr(fd), in.partial)
	if info, err := in.File.Stat(); err != nil || !info.Mode().IsRegular() {
		return in, failure.New(failure.WriteFailed, "%s: the partial file is not a regular file", destination)
	}
	return in, nil
}

// Reserve finds out whether the volume fits before any of it is sent, and holds the space where the file system can.
func (in *Incoming) Reserve(volume int64) *failure.Failure {
	info, err := in.File.Stat()
	if err != nil {
		return WriteFailure(in.final, err)
	}
	held := int64(0)
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		held = st.Blocks * 512
	}
	var disk unix.Statfs_t
	if err := unix.Fstatfs(int(in.File.Fd()), &disk); err != nil {
		return WriteFailure(in.final, err)
	}
	if free := int64(disk.Bavail) * disk.Bsize; volume-held > free {
		return failure.New(failure.DiskFull, "%s needs %d bytes more, the disk has %d free", in.final, volume-held, free)
	}
	if volume == 0 {
		return nil
	}
	err = unix.Fallocate(int(in.File.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, volume)
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG) {
		return WriteFailure(in.final, err)
	}
	return nil // other errors: the file system cannot reserve; writing will tell
}

// GiveBack frees what was reserved beyond an offset. The next Reserve finds out whether it is still to be had.
func (in *Incoming) GiveBack(offset int64) { _ = in.File.Truncate(offset) }

// Commit gives the file its final name. Without overwrite the kernel refuses atomically if the name is taken.
func (in *Incoming) Commit(overwrite bool) *failure.Failure {
	fd := int(in.handle.Fd())
	var err error
	if overwrite {
		err = unix.Renameat(fd, in.partial, fd, in.final)
	} else {
		err = unix.Renameat2(fd, in.partial, fd, in.final, unix.RENAME_NOREPLACE)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // a file system without the flag, such as old NFS
			if err = unix.Linkat(fd, in.partial, fd, in.final, 0); err == nil {
				err = unix.Unlinkat(fd, in.partial, 0)
			}
		}
	}
	if errors.Is(err, unix.EEXIST) {
		return failure.New(failure.DestinationExists, "%s appeared while the transfer ran", in.final)
	}
	if err == nil {
		err = in.handle.Sync()
	}
	if err != nil {
		return WriteFailure(in.final, err)
	}
	return nil
}

// Discard removes the partial file.
func (in *Incoming) Discard() error { return in.dir.Remove(in.partial) }

// Close lets go of the descriptors; the partial file stays.
func (in *Incoming) Close() {
	if in.File != nil {
		_ = in.File.Close()
	}
	if in.handle != nil {
		_ = in.handle.Close()
	}
	_ = in.dir.Close()
}

// RemovePartial removes what an earlier run left, by the path in its journal.
func (f *Folder) RemovePartial(partial string) error {
	if refused := CheckPath(partial); refused != nil {
		return refused
	}
	err := f.root.Remove(partial)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// HasPartial says whether the transfer's partial file exists.
func (f *Folder) HasPartial(partial string) bool {
	_, err := f.root.Lstat(partial)
	return err == nil
}

func destinationFailure(name string, err error) *failure.Failure {
	if escapes(err) {
		return failure.New(failure.PathRefused, "%s leads out of the receiving folder", name)
	}
	return WriteFailure(name, err)
}

// WriteFailure tells a full disk from other trouble.
func WriteFailure(name string, err error) *failure.Failure {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return failure.New(failure.DiskFull, "%s: %v", name, plain(err))
	}
	return failure.New(failure.WriteFailed, "%s: %v", name, plain(err))
}
