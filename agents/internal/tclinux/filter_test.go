// SPDX-License-Identifier: Apache-2.0

package tclinux

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Every port of the range is matched by exactly one mask, and no other port by any.
func TestPortMasks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Ports{First: rapid.Uint16Range(1, 65535).Draw(t, "first")}
		p.Last = rapid.Uint16Range(p.First, 65535).Draw(t, "last")
		made := masks(p)
		for port := range 1 << 16 {
			matched := 0
			for _, m := range made {
				if uint16(port)&m.mask == m.value {
					matched++
				}
			}
			if in := uint16(port) >= p.First && uint16(port) <= p.Last; matched > 1 || in != (matched == 1) {
				t.Fatalf("port %d is matched %d times", port, matched)
			}
		}
		if len(made) > 30 {
			t.Fatalf("%d masks", len(made))
		}
	})
	for p, want := range map[Ports]int{{}: 1, {0, 65535}: 1, {1, 65534}: 30, {5201, 5201}: 1, {5201, 5210}: 5, {65535, 65535}: 1} {
		if got := len(masks(p)); got != want {
			t.Errorf("%v: %d masks, want %d", p, got, want)
		}
	}
}

// packet is the begin of an IP packet.
func packet(v6 bool, m Match, source, destination uint16) []byte {
	b := make([]byte, 64)
	from, to := m.Source.Addr().AsSlice(), m.Destination.Addr().AsSlice()
	if v6 {
		b[0], b[6] = 6<<4, byte(m.Protocol)
		copy(b[8:24], from)
		copy(b[24:40], to)
		binary.BigEndian.PutUint16(b[40:], source)
		binary.BigEndian.PutUint16(b[42:], destination)
		return b
	}
	b[0], b[9] = 4<<4|5, byte(m.Protocol)
	copy(b[12:16], from)
	copy(b[16:20], to)
	binary.BigEndian.PutUint16(b[20:], source)
	binary.BigEndian.PutUint16(b[22:], destination)
	return b
}

func (f Filter) takes(packet []byte) bool {
	for _, k := range f.Keys.All() {
		if binary.BigEndian.Uint32(packet[k.Offset:])&k.Mask != k.Value {
			return false
		}
	}
	return f.V6 == (packet[0]>>4 == 6)
}

var drawMatch = rapid.Custom(func(t *rapid.T) Match {
	address := func(name string) netip.Prefix {
		b := [4]byte{10, 9, 0, rapid.ByteRange(0, 3).Draw(t, name)}
		return netip.PrefixFrom(netip.AddrFrom4(b), rapid.SampledFrom([]int{8, 30, 31, 32}).Draw(t, name+" bits"))
	}
	ports := func(name string) Ports {
		first := rapid.Uint16Range(0, 20).Draw(t, name)
		return Ports{first, first + rapid.Uint16Range(0, 9).Draw(t, name+" more")}
	}
	return Match{rapid.SampledFrom([]Protocol{TCP, UDP}).Draw(t, "protocol"), address("source"), address("destination"), ports("source port"), ports("destination port")}
})

// A packet is taken exactly when its headers are in the match; two matches overlap when some packet is taken by both.
func TestFiltersTakeWhatMatches(t *testing.T) {
	in := func(m Match, x Match, source, destination uint16) bool {
		within := func(p Ports, port uint16) bool { return p == (Ports{}) || port >= p.First && port <= p.Last }
		return m.Protocol == x.Protocol && m.Source.Contains(x.Source.Addr()) && m.Destination.Contains(x.Destination.Addr()) &&
			within(m.SourcePorts, source) && within(m.DestinationPorts, destination)
	}
	rapid.Check(t, func(t *rapid.T) {
		m, x := drawMatch.Draw(t, "match"), drawMatch.Draw(t, "packet")
		source, destination := rapid.Uint16Range(0, 30).Draw(t, "source port"), rapid.Uint16Range(0, 30).Draw(t, "destination port")
		p := packet(false, x, source, destination)
		taken := 0
		for _, f := range filters([]Match{m}, 1) {
			if f.takes(p) {
				taken++
			}
		}
		if want := in(m, x, source, destination); want != (taken > 0) || taken > 1 {
			t.Fatalf("%v:%d to %d taken %d times", x, source, destination, taken)
		}
		for _, f := range filters([]Match{m}, 1) {
			for _, g := range filters([]Match{x}, 1) {
				if f.overlaps(g) != g.overlaps(f) || f.takes(p) && g.takes(p) && !f.overlaps(g) {
					t.Fatalf("%v and %v", f, g)
				}
			}
		}
	})
}

func TestFilterDetails(t *testing.T) {
	v4, v6 := netip.MustParsePrefix("10.9.0.2/32"), netip.MustParsePrefix("fd09::2/128")
	m := Match{Protocol: TCP, Destination: v4, DestinationPorts: Ports{80, 80}}
	only := filters([]Match{m, m}, 1)
	if len(only) != 1 {
		t.Fatalf("%v", only)
	}
	p := packet(false, m, 1, 80)
	if !only[0].takes(p) {
		t.Error("the packet is not taken")
	}
	p[7] = 1
	if only[0].takes(p) {
		t.Error("a later fragment, whose payload is no port")
	}
	p[7], p[0] = 0, 4<<4|6
	if only[0].takes(p) {
		t.Error("with options the ports are elsewhere")
	}
	six := filters([]Match{{Protocol: UDP, Destination: v6, SourcePorts: Ports{53, 53}}}, 1)
	if p := packet(true, Match{UDP, v6, v6, Ports{}, Ports{}}, 53, 9); len(six) != 1 || !six[0].takes(p) {
		t.Errorf("%v", six)
	}
	if both := filters([]Match{{Protocol: TCP, SourcePorts: Ports{1, 1}}}, 1); len(both) != 2 || both[0].V6 == both[1].V6 || both[0].overlaps(both[1]) {
		t.Errorf("without an address for both families: %v", both)
	}
}

func TestShape(t *testing.T) {
	for rate, want := range map[int64]Shape{
		10_000:          {10_000, time.Millisecond, 1514},
		1_000_000_000:   {1_000_000_000, time.Millisecond, 125_000},
		100_000_000_001: {100_000_000_008, time.Millisecond, 200_000},
	} {
		if got := shape(rate, time.Millisecond); got != want {
			t.Errorf("%d: %+v, want %+v", rate, got, want)
		}
	}
	if got := shape(8_000_000, 4*time.Millisecond+1); got.Burst != 4*time.Millisecond+64 || got.burstBytes() != 4000 {
		t.Errorf("a coarse timer: %+v", got)
	}
}
