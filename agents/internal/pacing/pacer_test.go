// SPDX-License-Identifier: Apache-2.0

package pacing

import (
	"testing"

	"pgregory.net/rapid"

	"bandwidthbroker/agents/internal/schedule"
)

// kernel is a model of a paced socket: what is written leaves at the rate that was set last, never faster.
type kernel struct {
	rate  int64
	at    int64
	queue float64
	sent  float64
}

func (k *kernel) run(until int64) {
	can := float64(k.rate) * float64(until-k.at) / 8e6
	out := min(can, k.queue)
	k.queue -= out
	k.sent += out
	k.at = until
}

var style = Style{Lookahead: Queued, Packet: Ethernet}

type point struct {
	at   int64
	sent float64
}

// play follows a schedule with a host that stalls now and then, and returns what left when.
func play(t *rapid.T, booked schedule.Schedule, guard, until, volume int64) []point {
	p := NewPacer(0, booked, guard, 0, style)
	k := &kernel{}
	now := int64(0)
	line := []point{{0, 0}}
	for steps := 0; now < until && steps < 400_000; steps++ {
		d := p.Next(now, volume)
		k.run(now)
		if d.RateBps > 0 {
			k.rate = d.RateBps
		}
		next := now
		if d.Write > 0 {
			n := min(d.Write, d.Quantum, volume)
			p.Wrote(n)
			volume -= n
			k.queue += float64(n)
			if volume == 0 {
				break
			}
		} else {
			next = min(d.WakeAt, until)
			if rapid.IntRange(0, 99).Draw(t, "stall") == 0 {
				next += rapid.Int64Range(0, 30_000).Draw(t, "late")
			}
		}
		for now < next {
			now = min(now+1_000, next)
			k.run(now)
			line = append(line, point{now, k.sent})
		}
	}
	return line
}

func drawBooking(t *rapid.T) schedule.Schedule {
	var segments []schedule.Segment
	at := rapid.Int64Range(0, 50_000).Draw(t, "begin")
	for range rapid.IntRange(1, 4).Draw(t, "segments") {
		length := rapid.Int64Range(100_000, 1_500_000).Draw(t, "length")
		segments = append(segments, schedule.Segment{Begin: at, End: at + length, RateBps: rapid.Int64Range(1_000_000, 2_000_000_000).Draw(t, "rate")})
		at += length + rapid.SampledFrom([]int64{0, 0, 200_000}).Draw(t, "gap")
	}
	return schedule.New(segments)
}

// Over any 500 ms never more than 1 % above the booking, and by no instant more than was booked up to it, whatever
// the host does. Both allow for what one burst can be: a write, and at low rates two packets.
func TestNeverAboveTheBooking(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		booked := drawBooking(t)
		const guard, window = 1_000, 500_000
		line := play(t, booked, guard, booked.End()+300_000, 1<<50)
		for i, j := 0, 0; j < len(line); j++ {
			// A host that stalls while it catches up does so 0.5 % longer than it meant to.
			overrun := float64(schedule.Volume(maxRate(booked, 0, line[j].at), Queued+80_000)) / CatchUp
			if total := float64(booked.Bytes(0, line[j].at)); line[j].sent > total+overrun+2 {
				t.Fatalf("%.0f bytes by %d us, booked are %.0f", line[j].sent, line[j].at, total)
			}
			for line[j].at-line[i].at > window {
				i++
			}
			booking := float64(booked.Bytes(line[i].at, line[j].at))
			room := float64(schedule.Volume(maxRate(booked, line[i].at, line[j].at), quantumFor)) + 2*float64(Ethernet)
			if got := line[j].sent - line[i].sent; got > booking*1.006+room {
				t.Fatalf("%.0f bytes in [%d, %d) us, booked are %.0f", got, line[i].at, line[j].at, booking)
			}
		}
	})
}

func maxRate(s schedule.Schedule, from, to int64) int64 {
	most := s.RateAt(from)
	for {
		next, ok := s.NextChange(from)
		if !ok || next >= to {
			return most
		}
		most, from = max(most, s.RateAt(next)), next
	}
}

// On a host that is only ever a little late the wire carries what is booked, segment by segment.
func TestCloseToTheBooking(t *testing.T) {
	for _, rate := range []int64{200_000, 1_000_000, 10_000_000, 100_000_000, 400_000_000, 1_000_000_000} {
		booked := schedule.New([]schedule.Segment{{Begin: 0, End: 2_000_000, RateBps: rate}})
		p, k := NewPacer(0, booked, 1_000, 0, style), &kernel{}
		for now := int64(0); now < 2_000_000; {
			d := p.Next(now, 1<<50)
			k.run(now)
			if d.RateBps > 0 {
				k.rate = d.RateBps
			}
			if d.Write > 0 {
				n := min(d.Write, d.Quantum)
				p.Wrote(n)
				k.queue += float64(n)
				continue
			}
			now = max(now+50, d.WakeAt+300) // the runtime's timers
		}
		k.run(2_000_000)
		want := float64(booked.Bytes(0, 2_000_000))
		if off := 100 * (k.sent/want - 1); k.sent < 0.99*want-float64(Ethernet) || off > 0.01 {
			t.Errorf("%d bit/s: %+.2f %% off", rate, off)
		}
	}
}

// Nothing is left in the kernel when a gap begins.
func TestSilentInAGap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Int64Range(300_000, 5_000_000_000).Draw(t, "rate")
		length := rapid.Int64Range(20_000, 700_000).Draw(t, "length")
		booked := schedule.New([]schedule.Segment{
			{Begin: 10_000, End: 10_000 + length, RateBps: rate},
			{Begin: 510_000 + length, End: 520_000 + length, RateBps: rate},
		})
		line := play(t, booked, 1_000, 510_000+length, 1<<50)
		var before, after float64
		for _, p := range line {
			if p.at < 10_000+length+1_000 {
				before = p.sent
			}
			after = p.sent
		}
		if before != after {
			t.Fatalf("%.0f bytes left within the gap", after-before)
		}
	})
}

func TestCatchUpIsBounded(t *testing.T) {
	const rate = 100_000_000
	booked := schedule.New([]schedule.Segment{{Begin: 0, End: 100_000_000, RateBps: rate}})
	p := NewPacer(0, booked, 1_000, 50_000_000, style) // hopelessly behind
	var wrote int64
	now := int64(5_000)
	for now < 10_000_000 {
		d := p.Next(now, 1<<50)
		if d.RateBps > rate+rate/CatchUp {
			t.Fatalf("%d bit/s", d.RateBps)
		}
		if d.Write > 0 {
			n := min(d.Write, d.Quantum)
			p.Wrote(n)
			wrote += n
			continue
		}
		now = d.WakeAt
	}
	booking := booked.Bytes(0, 10_000_000)
	if wrote > booking+booking/CatchUp+schedule.Volume(rate, 2*Queued) {
		t.Errorf("%d bytes, booked are %d", wrote, booking)
	}
	if wrote < booking+booking/CatchUp*9/10 {
		t.Errorf("%d bytes: it did not catch up at all (booked are %d)", wrote, booking)
	}
}

// A sender that stood still for 20 ms goes on as booked while the margin carries it, and faster where there is none: two that made up for 16 ms
// on a link that was booked out filled its queue of 17 ms, and lost 5 % to the losses.
func TestWhoHasAMarginStaysBehind(t *testing.T) {
	const rate = 100_000_000
	booked := schedule.New([]schedule.Segment{{Begin: 0, End: 10_000_000, RateBps: rate}})
	for _, c := range []struct{ owed, want int64 }{{-schedule.Volume(rate, 80_000), rate}, {-schedule.Volume(rate, 1_000), rate + rate/CatchUp}, {0, rate + rate/CatchUp}} {
		p := NewPacer(0, booked, 0, c.owed, style)
		write(p, 0, 1_000_000, 0)
		write(p, 1_045_000, 1_200_000, 0)
		if got := p.Next(1_200_000, 1<<30).RateBps; got != c.want {
			t.Errorf("%d bytes owed: %d bit/s, not %d", c.owed, got, c.want)
		}
	}
}

func TestShortfall(t *testing.T) {
	plan := schedule.New([]schedule.Segment{{Begin: 0, End: 10_000_000, RateBps: 80_000_000}}) // 100 MB
	for _, c := range []struct {
		now, missing int64
		want         bool
	}{
		{0, 99_000_000, false},          // the broker's margin
		{0, 100_000_000, false},         // exactly
		{0, 100_400_000, false},         // catching up carries it
		{0, 101_000_000, true},          //
		{5_000_000, 50_100_000, false},  // a little late
		{5_000_000, 60_000_000, true},   // a lot
		{10_000_000, 10_000, false},     // the last packets
		{10_000_000, 1_000_000, true},   //
		{20_000_000, 100_000_000, true}, // after the end
	} {
		if got := Shortfall(c.now, plan, c.missing); got != c.want {
			t.Errorf("%d bytes missing at %d us: %v", c.missing, c.now, got)
		}
	}
}

func TestEndsShort(t *testing.T) {
	plan := schedule.New([]schedule.Segment{{Begin: 0, End: 10_000_000, RateBps: 80_000_000}}) // 10 kB in 1 ms
	for _, c := range []struct {
		now, missing int64
		want         bool
	}{
		{0, 200_000_000, false},        // far from the end
		{9_000_000, 10_000_000, false}, // exactly
		{9_000_000, 10_150_000, false}, // catching up, and a hundredth of what is left
		{9_000_000, 10_160_000, true},  //
		{9_800_000, 2_032_000, false},  //
		{9_800_000, 2_034_000, true},   //
		{9_990_000, 104_000, false},    // 10 ms before the end
		{9_990_000, 105_000, true},     //
		{10_000_000, 2_000, false},     // the last packets
		{10_000_000, 10_000, true},     //
		{12_000_000, 10_000, true},     // after the end
	} {
		if got := EndsShort(c.now, plan, c.missing); got != c.want {
			t.Errorf("%d bytes missing at %d us: %v", c.missing, c.now, got)
		}
	}
}
