// SPDX-License-Identifier: Apache-2.0

package tclinux

import (
	"fmt"
	"slices"
)

// Ours is a root qdisc with this handle and this marker. Neither is one that people choose: handles are small numbers
// or the kernel's 8000 and above, and the marker's usual value is 10.
const (
	major  = 0x0bbb
	Handle = major << 16
	Marker = 47
)

// classID is a class as SO_PRIORITY and `tc` name it.
func classID(minor uint16) uint32 { return Handle | uint32(minor) }

// ForeignQdisc says that a device has a qdisc that this agent did not make and must not change.
type ForeignQdisc struct{ Qdisc Qdisc }

func (f *ForeignQdisc) Error() string {
	q := f.Qdisc
	return fmt.Sprintf("device %s has the root qdisc %s %x:, which somebody configured, and there can be only one: remove it"+
		" (tc qdisc del dev %s root) or choose another mechanism", q.Device, q.Kind, q.Handle>>16, q.Device)
}

// The two kinds of root qdisc that are made here.
const (
	htb = "htb"
	fq  = "fq"
)

func ours(q Qdisc) bool {
	return q.Handle == Handle && (q.Kind == htb && q.Marker == Marker || q.Kind == fq)
}

// pacesByFQ: fq itself, or several queues with one fq each.
func pacesByFQ(q Qdisc) bool {
	return q.Kind == fq || q.Kind == "mq" && len(q.Leaves) > 0 && !slices.ContainsFunc(q.Leaves, func(kind string) bool { return kind != fq })
}

// usable: a qdisc with the handle 0 is one that the kernel chose (whatever net.core.default_qdisc is); it comes back by
// itself when ours goes.
func usable(q Qdisc) error {
	if q.Kind == "" || q.Handle == 0 || ours(q) {
		return nil
	}
	return &ForeignQdisc{q}
}

func rootOf(roots []Qdisc, device string) Qdisc {
	for _, q := range roots {
		if q.Device == device {
			return q
		}
	}
	return Qdisc{Device: device}
}
