// SPDX-License-Identifier: Apache-2.0

// Package served confines an agent to the folders it was given: every path from the broker is opened through os.Root,
// so that neither "..", nor an absolute path, nor a symbolic link leads out. Only regular files are moved.
package served

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"bandwidthbroker/agents/internal/failure"
)

// Folder is a folder that files are sent from or received into.
type Folder struct {
	root *os.Root
}

// Open takes a folder that exists.
func Open(dir string) (*Folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Folder{root}, nil
}

// CheckPath refuses what can be refused without looking at the disk.
func CheckPath(name string) *failure.Failure {
	switch {
	case name == "" || strings.ContainsRune(name, 0):
		return failure.New(failure.PathRefused, "%q is not a file name", name)
	case path.IsAbs(name) || filepath.IsAbs(name):
		return failure.New(failure.PathRefused, "%q is absolute; paths are relative to the served folder", name)
	case !filepath.IsLocal(name):
		return failure.New(failure.PathRefused, "%q leads out of the served folder", name)
	case strings.HasSuffix(name, "/") || path.Base(name) == ".":
		return failure.New(failure.PathRefused, "%q names a folder", name)
	}
	return nil
}

// OpenSource opens a regular file to send.
func (f *Folder) OpenSource(name string) (*os.File, fs.FileInfo, *failure.Failure) {
	if refused := CheckPath(name); refused != nil {
		return nil, nil, refused
	}
	// O_NONBLOCK: opening a named pipe must not wait for its other end.
	file, err := f.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, sourceFailure(name, err)
	}
	info, err := file.Stat()
	if err == nil && info.Mode().IsRegular() {
		return file, info, nil
	}
	_ = file.Close()
	if err != nil {
		return nil, nil, failure.New(failure.FileUnreadable, "%s: %v", name, plain(err))
	}
	return nil, nil, failure.New(failure.FileUnreadable, "%s is %s, only regular files are sent", name, kind(info.Mode()))
}

func sourceFailure(name string, err error) *failure.Failure {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return failure.New(failure.FileMissing, "%s is not in the served folder", name)
	case escapes(err):
		return failure.New(failure.PathRefused, "%s leads out of the served folder", name)
	}
	return failure.New(failure.FileUnreadable, "%s: %v", name, plain(err))
}

// escapes recognises os.Root's refusal, for which package os has no exported error.
func escapes(err error) bool {
	return strings.Contains(err.Error(), "escapes from parent") || errors.Is(err, syscall.ELOOP)
}

// plain strips the operation and path that package os adds: the detail names the path already.
func plain(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeDevice != 0:
		return "a device"
	case m&fs.ModeSocket != 0:
		return "a socket"
	}
	return "not a regular file"
}
