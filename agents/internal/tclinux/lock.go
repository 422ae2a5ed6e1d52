// SPDX-License-Identifier: Apache-2.0

package tclinux

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// lockName is in the abstract name space of Unix sockets, of which every network namespace has its own, and from which
// the kernel removes a name with the process that had it.
const lockName = "@bandwidth-broker/tc"

// Lock makes this process the one that shapes in its network namespace.
func (k *Kernel) Lock() error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	address := &unix.SockaddrUnix{Name: lockName}
	if err = unix.Bind(fd, address); err == nil {
		err = unix.Listen(fd, askers)
	}
	if err == nil {
		k.lock = fd
		return nil
	}
	if errors.Is(err, unix.EADDRINUSE) {
		err = fmt.Errorf("process %s shapes on this host already: stop it, or choose another mechanism than htb", holder(fd, address))
	}
	return errors.Join(err, unix.Close(fd))
}

// askers may find out whose the lock is; nobody accepts them, so that each takes a place for as long as it is held.
const askers = 4096

func holder(fd int, address unix.Sockaddr) string {
	// Not blocking: the places may all be taken.
	_ = unix.SetNonblock(fd, true)
	if err := unix.Connect(fd, address); err != nil {
		return "(unknown)"
	}
	who, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return "(unknown)"
	}
	return fmt.Sprint(who.Pid)
}
