// SPDX-License-Identifier: Apache-2.0

package tclinux

import (
	"errors"
	"net/netip"
	"time"
)

// System is the kernel, as far as it is needed here: Kernel is the real one, tctest.Kernel one that is made up. What it
// answers is what is true now; nothing is kept.
type System interface {
	// Lock makes this process the only one that shapes in the network namespace, until it ends, however it ends.
	Lock() error
	// Tick is how late a kernel timer may be by its own resolution.
	Tick() time.Duration
	// Timestamps says whether TCP connections have that option: of every packet it takes 12 bytes.
	Timestamps() bool
	// Probe says whether the kernel has a kind of qdisc and this process may use it: nil, ErrNoQdisc, or what is in the
	// way. It changes nothing.
	Probe(kind string) error
	// Route is the device that packets to an address leave by.
	Route(to netip.Addr) (device string, err error)
	Link(device string) (Link, error)
	// Roots are the root qdiscs of all devices.
	Roots() ([]Qdisc, error)
	Classes(device string) ([]KernelClass, error)
	Filters(device string) ([]KernelFilter, error)
	Do(Operation) error
	Close() error
}

// ErrNoQdisc says that this kernel was built without, and has no module for it.
var ErrNoQdisc = errors.New("this kernel has no such qdisc")

// ErrNoPrivilege says that this process may not change traffic control.
var ErrNoPrivilege = errors.New("it needs CAP_NET_ADMIN: see docs/host.md, section Mechanisms")

// Link is a network device.
type Link struct {
	Name   string
	Index  int
	MTU    int // of the network layer, bytes
	Header int // link header as qdiscs count it, bytes
}

// Qdisc is a root queueing discipline. A handle of 0 is one that the kernel put there by itself.
type Qdisc struct {
	Device string
	Kind   string
	Handle uint32
	// Marker is HTB's rate-to-quantum ratio, which does nothing here, every class having its quantum.
	Marker uint32
	// Leaves are the kinds of the qdiscs right below.
	Leaves []string
}

// KernelClass is an HTB class as the kernel has it.
type KernelClass struct {
	Minor   uint16
	Shape   Shape
	Bytes   uint64 // sent since it was made, headers included
	Packets uint64 // segments as on the wire
	Drops   uint64
	Backlog uint64 // bytes that wait
	// Debt is how long, after its last packet, the class had to wait until it might send again.
	Debt time.Duration
}

// KernelFilter is a u32 filter as the kernel has it.
type KernelFilter struct {
	Filter
	Handle uint32 // the kernel's name for it, of use only for deleting it
}
