// SPDX-License-Identifier: Apache-2.0

package tclinux

import "fmt"

// Ours is the root qdisc with this handle and this marker. Neither is one that people choose: handles are small numbers
// or the kernel's 8000 and above, and the marker's usual value is 10.
const (
	major  = 0x0bbb
	handle = major << 16
	marker = 47
)

// classID is a class as SO_PRIORITY and `tc` name it.
func classID(minor uint16) uint32 { return handle | uint32(minor) }

// ForeignQdisc says that a device is somebody else's to configure.
type ForeignQdisc struct{ Qdisc Qdisc }

func (f *ForeignQdisc) Error() string {
	q := f.Qdisc
	return fmt.Sprintf("device %s has the root qdisc %s %x:, which somebody configured, and there can be only one: remove it"+
		" (tc qdisc del dev %s root) or choose another mechanism than htb", q.Device, q.Kind, q.Handle>>16, q.Device)
}

func ours(q Qdisc) bool { return q.Kind == "htb" && q.Handle == handle && q.Marker == marker }

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
