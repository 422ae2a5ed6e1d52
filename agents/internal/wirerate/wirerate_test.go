// SPDX-License-Identifier: Apache-2.0

package wirerate

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// RR-6205, section 3.3: of 1 Gbit/s and an MTU of 1500, r_Eth = 1514/1538 (984.40), r_IP = 1500/1514 r_Eth (975.30),
// r_TP = 1460/1500 r_IP (949.29 Mbit/s). The queue counts what the paper calls r_Eth.
func TestRatesOfThePaper(t *testing.T) {
	const ethernet = 1_000_000_000 * 1514 / 1538
	if ip := (Framing{Payload: 1500, Headers: Ethernet}).Carried(ethernet); ip/10_000 != 97529 { // 975.299
		t.Errorf("r_IP is %d", ip)
	}
	plain := TCP(1460, false, false, Ethernet)
	if payload := plain.Carried(ethernet); payload/10_000 != 94928 { // 949.285
		t.Errorf("r_TP is %d", payload)
	}
	if wire := plain.Wire(949_284_785); wire < ethernet-2 || wire > ethernet+2 {
		t.Errorf("back: %d, want %d", wire, ethernet)
	}
}

func TestFramings(t *testing.T) {
	for _, c := range []struct {
		framing Framing
		headers int
	}{
		{TCP(1448, false, true, Ethernet), 66}, {TCP(1428, true, true, Ethernet), 86}, {TCP(1460, false, false, 0), 40}, {TCP(8948, false, true, Ethernet), 66},
	} {
		if c.framing.Headers != c.headers {
			t.Errorf("%+v, want %d", c.framing, c.headers)
		}
	}
	if f := TCP(0, false, false, 0); f.Wire(1000) <= 0 {
		t.Error("a socket without a segment size yet")
	}
	f := TCP(1448, false, true, Ethernet)
	for _, c := range []struct {
		bytes, packets uint64
		payload        int64
	}{{1514, 1, 1448}, {1514*1000 + 66, 1001, 1448000}, {65, 1, 0}, {1 << 63, 1 << 60, 0}, {66, 1, 0}} {
		if got := f.PayloadBytes(c.bytes, c.packets); got != c.payload {
			t.Errorf("%d bytes in %d packets: %d, want %d", c.bytes, c.packets, got, c.payload)
		}
	}
}

// Against exact arithmetic: up by less than one on the way to the wire, and never below what is booked on the way back.
func TestWireCarriesThePayload(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := Framing{rapid.IntRange(1, 65536).Draw(t, "payload"), rapid.IntRange(0, 200).Draw(t, "headers")}
		rate := rapid.Int64Range(0, 1e15).Draw(t, "rate")
		wire := f.Wire(rate)
		exact := new(big.Int).Mul(big.NewInt(rate), big.NewInt(int64(f.Payload+f.Headers)))
		scaled := new(big.Int).Mul(big.NewInt(wire), big.NewInt(int64(f.Payload)))
		if above := new(big.Int).Sub(scaled, exact); above.Sign() < 0 || above.Cmp(big.NewInt(int64(f.Payload))) >= 0 {
			t.Fatalf("%d becomes %d", rate, wire)
		}
		if back := f.Carried(wire); back < rate || back > rate+1 {
			t.Fatalf("%d becomes %d becomes %d", rate, wire, back)
		}
	})
}
