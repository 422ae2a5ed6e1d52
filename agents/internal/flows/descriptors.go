// SPDX-License-Identifier: Apache-2.0

package flows

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// Descriptor is a socket in a process: Inode says which socket, the same one may be open several times.
type Descriptor struct {
	PID, FD int
	Inode   uint64
}

// Descriptors lists the sockets that a process has open. A process that ended has none; one that we may not look into
// (fs.ErrPermission) may have some all the same.
func Descriptors(pid int) ([]Descriptor, error) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	open, err := os.Open(dir)
	if errors.Is(err, fs.ErrPermission) {
		return nil, err
	}
	if err != nil {
		return nil, nil
	}
	defer open.Close()
	names, _ := open.Readdirnames(-1)
	var found []Descriptor
	for _, name := range names {
		inode, ok := inodeOf(dir + "/" + name)
		if !ok {
			continue
		}
		if fd, err := strconv.Atoi(name); err == nil {
			found = append(found, Descriptor{pid, fd, inode})
		}
	}
	return found, nil
}

// Holds says that the process still has the socket open under this number: much cheaper than to look for it.
func (d Descriptor) Holds() bool {
	inode, ok := inodeOf(fmt.Sprintf("/proc/%d/fd/%d", d.PID, d.FD))
	return ok && inode == d.Inode
}

func inodeOf(path string) (uint64, bool) {
	target, err := os.Readlink(path)
	if err != nil {
		return 0, false
	}
	return socketInode(target)
}

func socketInode(target string) (uint64, bool) {
	number, ok := strings.CutPrefix(target, "socket:[")
	if !ok {
		return 0, false
	}
	inode, err := strconv.ParseUint(strings.TrimSuffix(number, "]"), 10, 64)
	return inode, err == nil && strings.HasSuffix(number, "]")
}
