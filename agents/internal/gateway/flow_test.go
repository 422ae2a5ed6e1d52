// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"
)

func bytesOf(t testing.TB, text string) []byte {
	t.Helper()
	packet, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		t.Fatal(err)
	}
	return packet
}

const (
	v4     = "45 00 0028 0000 4000 40 06 0000 0a470102 0a470203"
	v4Tail = "45 00 0028 0000 2001 40 11 0000 0a470102 0a470203" // second fragment
	v6     = "60000000 0014 06 40 20010db8000000000000000000000001 20010db8000000000000000000000002"
	v6Hop  = "60000000 0014 00 40 20010db8000000000000000000000001 20010db8000000000000000000000002 11 00 0104 00000000"
	v6Frag = "60000000 0014 2c 40 20010db8000000000000000000000001 20010db8000000000000000000000002 11 00 0008 00000001"
	v6Head = "60000000 0014 2c 40 20010db8000000000000000000000001 20010db8000000000000000000000002 11 00 0001 00000001"
	v6Auth = "60000000 0014 33 40 20010db8000000000000000000000001 20010db8000000000000000000000002 06 01 0000 00000001 00000001"
	ports  = "1451 c000 00000000"
)

func TestFiveTuples(t *testing.T) {
	a4, b4 := netip.MustParseAddr("10.71.1.2"), netip.MustParseAddr("10.71.2.3")
	a6, b6 := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")
	for text, want := range map[string]Flow{
		v4 + ports:                         {a4, b4, 5201, 49152, ProtocolTCP},
		"46" + v4[2:] + "01010100" + ports: {a4, b4, 5201, 49152, ProtocolTCP}, // with an option
		v4:                                 {a4, b4, 0, 0, ProtocolTCP},        // cut off
		v4Tail + ports:                     {a4, b4, 0, 0, ProtocolUDP},
		strings.Replace(v4, "40 06", "40 01", 1) + ports: {a4, b4, 0, 0, 1},
		v6 + ports:     {a6, b6, 5201, 49152, ProtocolTCP},
		v6Hop + ports:  {a6, b6, 5201, 49152, ProtocolUDP},
		v6Frag + ports: {a6, b6, 0, 0, ProtocolUDP},
		v6Head + ports: {a6, b6, 5201, 49152, ProtocolUDP},
		v6Auth + ports: {a6, b6, 5201, 49152, ProtocolTCP},
	} {
		if got, ok := ParseFlow(bytesOf(t, text)); !ok || got != want {
			t.Errorf("%s: %v %v, want %v", text, ok, got, want)
		}
	}
	for _, text := range []string{"", "00", "45", "4f" + v4[2:], "44" + v4[2:], v6[:len(v6)-2], v6Hop[:len(v6Hop)-9], "75" + v4[2:]} {
		if got, ok := ParseFlow(bytesOf(t, text)); ok || got != (Flow{}) {
			t.Errorf("%s was taken for %v", text, got)
		}
	}
}

// FuzzParseFlow: no packet makes it panic, and what it returns is in the packet.
func FuzzParseFlow(f *testing.F) {
	for _, text := range []string{v4, v4Tail, v6, v6Hop, v6Frag, v6Head, v6Auth} {
		f.Add(bytesOf(f, text+ports))
		f.Add(bytesOf(f, text))
	}
	f.Fuzz(func(t *testing.T, packet []byte) {
		flow, ok := ParseFlow(packet)
		switch {
		case !ok && flow != (Flow{}):
			t.Errorf("refused, but answered %v", flow)
		case ok && flow.Source.Is4() != (packet[0]>>4 == 4):
			t.Errorf("version %d, but source %v", packet[0]>>4, flow.Source)
		case ok && flow.SourcePort != 0 && flow.Protocol != ProtocolTCP && flow.Protocol != ProtocolUDP:
			t.Errorf("protocol %d has no ports", flow.Protocol)
		}
	})
}

func BenchmarkParseFlow(b *testing.B) {
	packet := bytesOf(b, v4+ports)
	b.ReportAllocs()
	for b.Loop() {
		ParseFlow(packet)
	}
}
