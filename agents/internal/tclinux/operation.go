// SPDX-License-Identifier: Apache-2.0

package tclinux

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Verb is what is done to an object of the kernel.
type Verb string

// The verbs, as tc has them.
const (
	Add    Verb = "add"
	Change Verb = "change" // in place: what waits in a class stays there
	Delete Verb = "del"
)

// Operation is one message to the kernel: on a class of our root qdisc (Class), on a filter of it (Filter), or on itself.
type Operation struct {
	Verb   Verb
	Device string
	Kind   string // of the root qdisc that is added: htb or fq
	Class  *KernelClass
	Filter *KernelFilter
}

// String is the operation as a tc command.
func (o Operation) String() string {
	switch {
	case o.Class != nil:
		text := fmt.Sprintf("class %s dev %s parent %x: classid %x:%x", o.Verb, o.Device, major, major, o.Class.Minor)
		if o.Verb == Delete {
			return text
		}
		return text + " htb " + o.Class.Shape.String()
	case o.Filter != nil:
		text := fmt.Sprintf("filter %s dev %s parent %x: ", o.Verb, o.Device, major)
		if o.Verb == Delete {
			text += fmt.Sprintf("handle %x:%x:%x ", o.Filter.Handle>>20, o.Filter.Handle>>12&0xff, o.Filter.Handle&0xfff)
		}
		return text + o.Filter.Filter.String()
	case o.Verb == Delete:
		return fmt.Sprintf("qdisc del dev %s root handle %x:", o.Device, major)
	}
	text := fmt.Sprintf("qdisc %s dev %s root handle %x: %s", o.Verb, o.Device, major, o.Kind)
	if o.Kind == htb {
		text += fmt.Sprintf(" default 0 r2q %d", Marker)
	}
	return text
}

func (s Shape) String() string {
	return fmt.Sprintf("rate %dbit ceil %dbit burst %d cburst %d quantum %d", s.RateBps, s.RateBps, s.burstBytes(), s.burstBytes(), s.Quantum)
}

func (s Shape) burstBytes() int64 {
	return int64(math.Round(float64(s.RateBps) / 8 * float64(s.Burst) / float64(time.Second)))
}

func (f Filter) String() string {
	var text strings.Builder
	family := "ip"
	if f.V6 {
		family = "ipv6"
	}
	fmt.Fprintf(&text, "protocol %s prio %d u32", family, f.priority())
	for _, k := range f.Keys.All() {
		fmt.Fprintf(&text, " match u32 %08x %08x at %d", k.Value, k.Mask, k.Offset)
	}
	fmt.Fprintf(&text, " flowid %x:%x", major, f.Minor)
	return text.String()
}
