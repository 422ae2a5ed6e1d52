// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// oracle works out the fate of every packet by the definition, in rational numbers: a packet is sent when the integral of the
// capacity over its time on the transmitter is its bits. It keeps everything and is as slow as it is plain.
type oracle struct {
	framing  int64
	changes  []change // settings in force from a time on
	packets  []sent
	cutSince int64 // Never: is not cut
}

type change struct {
	at  int64
	set Settings
}

type sent struct {
	arrived, start, finish *big.Rat
	due                    int64
	size                   int64
	length, flow           int
	fate                   Fate
}

func rational(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

// finish of so many bits begun at start.
func (o *oracle) finish(start *big.Rat, bits int64) *big.Rat {
	at, left := new(big.Rat).Set(start), rational(bits*Billion)
	for i, c := range o.changes {
		last := i+1 == len(o.changes)
		if !last && rational(o.changes[i+1].at).Cmp(at) <= 0 {
			continue
		}
		speed := rational(c.set.CapacityBps)
		end := new(big.Rat).Add(at, new(big.Rat).Quo(left, speed))
		if last || end.Cmp(rational(o.changes[i+1].at)) <= 0 {
			return end
		}
		until := rational(o.changes[i+1].at)
		left.Sub(left, new(big.Rat).Mul(speed, new(big.Rat).Sub(until, at)))
		at = until
	}
	panic("no settings")
}

func ceiling(r *big.Rat) int64 {
	quotient, rest := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		return quotient.Int64() + 1
	}
	return quotient.Int64()
}

// settle works out all times anew, as settings may have changed under way.
func (o *oracle) settle() {
	var free *big.Rat
	var last int64
	for i := range o.packets {
		p := &o.packets[i]
		if p.fate == Cut {
			free, last = nil, p.due
			continue
		}
		p.start = p.arrived
		if free != nil && free.Cmp(p.start) > 0 {
			p.start = free
		}
		p.finish = o.finish(p.start, p.size*8)
		free = p.finish
		done := ceiling(p.finish)
		delay := o.changes[0].set.Delay
		for _, c := range o.changes {
			if c.at < done {
				delay = c.set.Delay
			}
		}
		p.due = max(last, done+delay)
		last = p.due
	}
}

func (o *oracle) settings() Settings { return o.changes[len(o.changes)-1].set }

func (o *oracle) offer(now int64, length, flow int) Fate {
	if o.cutSince != Never {
		return Cut
	}
	size := int64(length) + o.framing
	at := rational(now)
	var waiting int64
	busy := false
	for _, p := range o.packets {
		if p.fate == Cut {
			continue
		}
		busy = busy || p.finish.Cmp(at) > 0
		if p.start.Cmp(at) > 0 {
			waiting += p.size
		}
	}
	if busy && waiting+size > o.settings().Buffer {
		return Overflow
	}
	o.packets = append(o.packets, sent{arrived: at, size: size, length: length, flow: flow})
	o.settle()
	return Forwarded
}

func (o *oracle) cut(now int64) {
	for i := range o.packets {
		if p := &o.packets[i]; p.fate != Cut && p.due > now {
			p.fate, p.due = Cut, now
		}
	}
	o.cutSince = now
}

func drawSettings(t *rapid.T) Settings {
	return Settings{
		CapacityBps: rapid.OneOf(rapid.SampledFrom([]int64{1, 7, 1_000_000, 999_999_937, MaxCapacityBps}), rapid.Int64Range(1, MaxCapacityBps)).Draw(t, "capacity"),
		Delay:       rapid.SampledFrom([]int64{0, 1, 50_000, 5_000_000}).Draw(t, "delay"),
		Buffer:      rapid.SampledFrom([]int64{0, 1_500, 1_538, 3_000, 3_076, 100_000}).Draw(t, "buffer"),
	}
}

// TestLinkIsTheOracle: whatever comes at whatever time, the link does to the nanosecond what the definition says.
func TestLinkIsTheOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		framing := rapid.SampledFrom([]int64{0, 38}).Draw(t, "framing")
		set := drawSettings(t)
		link, err := NewLink(set, framing, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		model := oracle{framing: framing, changes: []change{{at: 0, set: set}}, cutSince: Never}
		var now int64
		popped := 0
		pop := func() {
			for {
				packet, ok := link.Pop(now)
				var want *sent
				if popped < len(model.packets) && model.packets[popped].due <= now {
					want = &model.packets[popped]
				}
				if ok != (want != nil) {
					t.Fatalf("at %d the link gives %v %v, want %+v", now, ok, packet, want)
				}
				if !ok {
					return
				}
				if packet.Due != want.due || packet.Fate != want.fate || packet.Length != want.length || packet.Flow != want.flow {
					t.Fatalf("packet %d: %+v, want %+v", popped, packet, *want)
				}
				popped++
			}
		}
		for step := range rapid.IntRange(1, 40).Draw(t, "steps") {
			next := now + rapid.OneOf(rapid.SampledFrom([]int64{0, 1, 12_000, 1_000_000}), rapid.Int64Range(0, 20_000_000)).Draw(t, "gap")
			// Sometimes exactly when something happens.
			if n := link.Next(); n != Never && n >= now && rapid.Bool().Draw(t, "on the dot") {
				next = n
			}
			now = next
			if rapid.Bool().Draw(t, "looked at") {
				pop()
			}
			switch rapid.IntRange(0, 11).Draw(t, "what") {
			case 0:
				set := drawSettings(t)
				if err := link.Set(now, set); err != nil {
					t.Fatal(err)
				}
				model.changes = append(model.changes, change{now, set})
				model.settle()
			case 1:
				pop()
				link.Cut(now)
				model.cut(now)
			case 2:
				link.Restore()
				model.cutSince = Never
			default:
				length := rapid.SampledFrom([]int{1500, 40, 1, 1500, 65535}).Draw(t, "length")
				if got, want := link.Offer(now, length, step), model.offer(now, length, step); got != want {
					t.Fatalf("at %d a packet of %d bytes: %v, want %v", now, length, got, want)
				}
			}
		}
		for now = link.Next(); now != Never; now = link.Next() {
			pop()
		}
		if popped != len(model.packets) {
			t.Fatalf("%d packets came out, want %d", popped, len(model.packets))
		}
	})
}

// TestFullLinkLosesNoBit: 30 s of a rate that no power of ten divides, in packets of sizes at random.
func TestFullLinkLosesNoBit(t *testing.T) {
	const capacity = 999_999_937
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	link, err := NewLink(Settings{CapacityBps: capacity, Buffer: 10_000}, 0, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	var bits, last int64
	for now := int64(0); now < 30*Billion; {
		for link.Offer(now, 40+random.IntN(1461), 0) == Forwarded {
		}
		now = link.Next()
		packet, ok := link.Pop(now)
		if !ok {
			t.Fatalf("nothing at %d", now)
		}
		bits += int64(packet.Length) * 8
		last = packet.Due
	}
	exact := new(big.Rat).Quo(new(big.Rat).Mul(rational(bits), rational(Billion)), rational(capacity))
	if last != ceiling(exact) {
		t.Errorf("%d bits ended at %d ns, want %d", bits, last, ceiling(exact))
	}
}

func TestLossIsThatOfTheSeed(t *testing.T) {
	run := func(seed uint64) (fates string, lost int) {
		var kept strings.Builder
		link, _ := NewLink(Settings{CapacityBps: MaxCapacityBps, Buffer: MaxBuffer, Loss: Billion / 100}, 0, seed, 1)
		for i := range int64(20_000) {
			link.Offer(i*1000, 1500, 0)
			if packet, ok := link.Pop(i*1000 + 999); ok && packet.Fate == Lost {
				lost++
				kept.WriteString(fmt.Sprintln(i))
			}
		}
		return kept.String(), lost
	}
	first, lost := run(3)
	if again, _ := run(3); again != first {
		t.Error("the same seed lost other packets")
	}
	if other, _ := run(4); other == first {
		t.Error("another seed lost the same packets")
	}
	if lost < 140 || lost > 260 { // 200 expected, standard deviation 14
		t.Errorf("%d of 20000 packets were lost at 1 %%", lost)
	}
}

func TestSettingsAreChecked(t *testing.T) {
	good := Settings{CapacityBps: 1}
	for want, s := range map[string]Settings{
		"capacity": {CapacityBps: 0}, "1000000000001": {CapacityBps: MaxCapacityBps + 1}, "delay": {CapacityBps: 1, Delay: -1},
		"buffer": {CapacityBps: 1, Buffer: -1}, "loss": {CapacityBps: 1, Loss: Billion + 1},
	} {
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", s, err, want)
		}
		link, _ := NewLink(good, 0, 1, 1)
		if err := link.Set(0, s); err == nil || link.Settings() != good {
			t.Errorf("%+v was set", s)
		}
	}
	if _, err := NewLink(good, -1, 1, 1); err == nil {
		t.Error("negative framing was taken")
	}
}

func TestOrderedDrops(t *testing.T) {
	drop := Drop{Protocol: ProtocolUDP, Port: 7411, Left: 2}
	signal := Flow{Protocol: ProtocolUDP, SourcePort: 9, DestinationPort: 7411}
	data := Flow{Protocol: ProtocolTCP, SourcePort: 9, DestinationPort: 7411}
	got := []bool{drop.Takes(data), drop.Takes(signal), drop.Takes(Flow{Protocol: ProtocolUDP}), drop.Takes(signal), drop.Takes(signal)}
	if want := []bool{false, true, false, true, false}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func BenchmarkLink(b *testing.B) {
	link, _ := NewLink(Settings{CapacityBps: Billion, Delay: 5_000_000, Buffer: 1_000_000}, 0, 1, 1)
	b.ReportAllocs()
	var now int64
	for b.Loop() {
		now += 12_000
		link.Offer(now, 1500, 0)
		link.Pop(now)
	}
}
