// SPDX-License-Identifier: Apache-2.0

package tclinux

import (
	"encoding/binary"
	"net/netip"
)

// Filter sends packets to a class: those in which every word that a key names has the key's value. Filters are compared
// as values, so that what is wanted and what the kernel has can be matched as sets.
type Filter struct {
	Minor uint16
	V6    bool
	Keys  Keys
}

// Key is one 32-bit word of the packet, Offset bytes behind the begin of its network header.
type Key struct {
	Value, Mask uint32
	Offset      int32
}

// Keys are Key values in a comparable form.
type Keys string

const keySize = 12

func packKeys(keys []Key) Keys {
	packed := make([]byte, 0, keySize*len(keys))
	for _, k := range keys {
		packed = binary.BigEndian.AppendUint32(packed, k.Value)
		packed = binary.BigEndian.AppendUint32(packed, k.Mask)
		packed = binary.BigEndian.AppendUint32(packed, uint32(k.Offset))
	}
	return Keys(packed)
}

// All are the keys in order.
func (p Keys) All() []Key {
	keys := make([]Key, 0, len(p)/keySize)
	for b := []byte(p); len(b) >= keySize; b = b[keySize:] {
		keys = append(keys, Key{
			binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:]), int32(binary.BigEndian.Uint32(b[8:])),
		})
	}
	return keys
}

// priority differs because the kernel wants one network protocol for each.
func (f Filter) priority() uint16 {
	if f.V6 {
		return 2
	}
	return 1
}

// maxFilters bounds what one class may need; a packet passes by every filter of its device.
const maxFilters = 256

// filters of a class: one for each pair of port masks of each match. Without an address a match is for both families.
func filters(matches []Match, minor uint16) []Filter {
	var made []Filter
	seen := map[Filter]bool{}
	for _, m := range matches {
		for _, v6 := range []bool{false, true} {
			if !m.concerns(v6) {
				continue
			}
			for _, source := range masks(m.SourcePorts) {
				for _, destination := range masks(m.DestinationPorts) {
					f := Filter{minor, v6, packKeys(m.keys(v6, source, destination))}
					if !seen[f] {
						seen[f] = true
						made = append(made, f)
					}
				}
			}
		}
	}
	return made
}

func (m Match) concerns(v6 bool) bool {
	for _, p := range []netip.Prefix{m.Source, m.Destination} {
		if p.IsValid() && p.Addr().Is4() == v6 {
			return false
		}
	}
	return true
}

// Offsets in the fixed headers (RFC 791, RFC 8200), of the words that hold the field.
const (
	v4Fragment, v4Protocol, v4Source, v4Destination, v4Ports = 4, 8, 12, 16, 20
	v6Protocol, v6Source, v6Destination, v6Ports             = 4, 8, 24, 40
)

func (m Match) keys(v6 bool, source, destination portMask) []Key {
	var keys []Key
	add := func(value, mask uint32, offset int32) {
		if mask != 0 {
			keys = append(keys, Key{value & mask, mask, offset})
		}
	}
	ports := source.mask != 0 || destination.mask != 0
	value, mask := uint32(source.value)<<16|uint32(destination.value), uint32(source.mask)<<16|uint32(destination.mask)
	if v6 {
		if m.Protocol != AnyProtocol {
			add(uint32(m.Protocol)<<8, 0xff<<8, v6Protocol)
		}
		addPrefix(add, m.Source, v6Source)
		addPrefix(add, m.Destination, v6Destination)
		add(value, mask, v6Ports)
		return keys
	}
	if ports {
		add(5<<24, 0xf<<24, 0)     // a header of five words: the ports are where they are looked for
		add(0, 0x1fff, v4Fragment) // and not a later fragment, which has payload there
	}
	if m.Protocol != AnyProtocol {
		add(uint32(m.Protocol)<<16, 0xff<<16, v4Protocol)
	}
	addPrefix(add, m.Source, v4Source)
	addPrefix(add, m.Destination, v4Destination)
	add(value, mask, v4Ports)
	return keys
}

func addPrefix(add func(value, mask uint32, offset int32), p netip.Prefix, offset int32) {
	if !p.IsValid() {
		return
	}
	left := p.Bits()
	for address := p.Addr().AsSlice(); len(address) > 0 && left > 0; address = address[4:] {
		bits := min(left, 32)
		add(binary.BigEndian.Uint32(address), ^uint32(0)<<(32-bits), offset)
		left -= bits
		offset += 4
	}
}

// overlaps says that some packet is matched by both.
func (f Filter) overlaps(g Filter) bool {
	if f.V6 != g.V6 {
		return false
	}
	words := map[int32]Key{}
	for _, k := range f.Keys.All() {
		words[k.Offset] = k
	}
	for _, k := range g.Keys.All() {
		if both := words[k.Offset].Mask & k.Mask; words[k.Offset].Value&both != k.Value&both {
			return false
		}
	}
	return true
}
