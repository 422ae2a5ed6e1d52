// SPDX-License-Identifier: Apache-2.0

package mechanism

import (
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"
)

var errUnimplemented = errors.New("this agent does not implement it")

// Means are what a host has for the mechanisms that need more than a socket.
type Means struct {
	// Classes of HTB, or why there are none.
	Classes   Classes
	NoClasses error
	// FQ says why packets to an address do not pass an fq qdisc; nil when they do.
	FQ func(to netip.Addr) error
	// NoFQ says why there is no use in asking; nil when a device has one.
	NoFQ error
}

// probe calls f with a TCP socket that is not connected.
func probe(f func(fd int) error) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return f(fd)
}
