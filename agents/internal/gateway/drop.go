// SPDX-License-Identifier: Apache-2.0

package gateway

// Drop is an order to lose the next so many packets of a kind: a signal that never arrives, at will.
type Drop struct {
	Protocol uint8  // 0: any
	Port     uint16 // source or destination; 0: any
	Left     int64  // how many more
}

// Takes says whether the order is for a packet of this flow, and counts it.
func (d *Drop) Takes(f Flow) bool {
	if d.Left <= 0 || d.Protocol != 0 && d.Protocol != f.Protocol || d.Port != 0 && d.Port != f.SourcePort && d.Port != f.DestinationPort {
		return false
	}
	d.Left--
	return true
}
