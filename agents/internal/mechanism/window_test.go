// SPDX-License-Identifier: Apache-2.0

package mechanism

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"bandwidthbroker/agents/internal/pacing"
	"bandwidthbroker/agents/internal/schedule"
)

// wire is a path in virtual time: what is written is acknowledged a round trip later, which varies, and the writer sees it
// when it wakes up.
type wire struct {
	rtt, jitter      int64 // µs
	random           *rand.Rand
	acks             []ack
	flight, smoothed int64
}

type ack struct{ at, bytes, took int64 }

func (w *wire) write(now, n int64) {
	w.flight += n
	at := now + w.rtt + w.random.Int64N(w.jitter+1)
	if k := len(w.acks); k > 0 {
		at = max(at, w.acks[k-1].at) // in order
	}
	w.acks = append(w.acks, ack{at, n, at - now})
}

func (w *wire) until(now int64) {
	for len(w.acks) > 0 && w.acks[0].at <= now {
		w.flight -= w.acks[0].bytes
		w.smoothed += (w.acks[0].took - w.smoothed) / 8
		w.acks = w.acks[1:]
	}
}

// The mean over each segment of 2 s is within 1 % of the booking, whatever the RTT, and however late the writer wakes up,
// although the window is what holds the writer back.
func TestTheWindowMeetsTheBooking(t *testing.T) {
	for _, rtt := range []int64{100, 1_000, 10_000, 100_000} {
		for _, rate := range []int64{20_000_000, 300_000_000, 1_000_000_000} {
			if schedule.Volume(rate, rtt) < 2*pacing.Ethernet {
				continue // less than two packets in flight: nothing to clock by
			}
			for _, wakes := range []int64{60, 150, 400} {
				t.Run(fmt.Sprintf("%d us %d Mbit/s %d us late", rtt, rate/1_000_000, wakes), func(t *testing.T) {
					segment(t, rtt, rate, func(int64) int64 { return wakes })
				})
			}
		}
	}
}

// A host that is busy for some milliseconds ten times a second wakes the writer up late for as long: what it could not use of the account is
// lost, unless the window is wide again before the account is full.
func TestTheWindowFollowsAHostThatIsBusyNowAndThen(t *testing.T) {
	for _, rtt := range []int64{100, 1_000} {
		for _, late := range []int64{1_000, 2_000} {
			t.Run(fmt.Sprintf("%d us, %d us late", rtt, late), func(t *testing.T) {
				segment(t, rtt, 300_000_000, func(now int64) int64 {
					if now%100_000 < 30_000 {
						return late
					}
					return 60
				})
			})
		}
	}
}

func budget(p *pacing.Pacer, now int64, d pacing.Decision) Budget {
	return Budget{d.RateBps, d.InHand, d.Ahead, func(micros int64) int64 { return p.Lately(now, micros) }}
}

func segment(t *testing.T, rtt, rate int64, wakes func(now int64) int64) {
	const begin = int64(1_000_000)
	booked := schedule.New([]schedule.Segment{
		{Begin: begin, End: begin + 2_000_000, RateBps: rate}, {Begin: begin + 2_000_000, End: begin + 4_000_000, RateBps: rate / 2},
	})
	w := &wire{rtt: rtt, jitter: rtt / 10, smoothed: rtt, random: rand.New(rand.NewPCG(1, uint64(rtt)))}
	p := pacing.NewPacer(0, booked, 1_000, 0, pacing.Style{Lookahead: pacing.Clocked, Packet: pacing.Ethernet})
	var c control
	var wrote, largest int64
	carried := map[int64]int64{}
	held, asked := 0, 0
	for now := int64(0); now < begin+4_000_000; {
		w.until(now)
		d := p.Next(now, 1<<50)
		carried[now/2_000_000] = wrote
		if d.RateBps == 0 {
			now = min(d.WakeAt, begin+4_000_000) + wakes(now)
			continue
		}
		if now < begin+2_000_000 {
			carried[-1] = wrote
		}
		room := c.size(now, w.smoothed, pacing.Ethernet, budget(p, now, d)) - w.flight
		n := min(d.Write, d.Quantum, room)
		asked++
		if d.Write > 0 && n < min(2*pacing.Ethernet, d.Quantum) {
			held++
		}
		if d.Write == 0 || n < min(2*pacing.Ethernet, d.Quantum) {
			now += askAfter(rtt) + w.random.Int64N(wakes(now))
			continue
		}
		w.write(now, n)
		p.Wrote(n)
		wrote += n
		largest = max(largest, w.flight)
		now += 5
	}
	for i, got := range []int64{carried[-1], wrote - carried[-1]} {
		want := booked.Bytes(begin+int64(i)*2_000_000, begin+int64(i+1)*2_000_000)
		if off := 100 * (float64(got)/float64(want) - 1); off < -1 || off > 1 {
			t.Errorf("segment %d is %+.2f %% off", i, off)
		}
	}
	if held*10 < asked {
		t.Errorf("the window held the writer back at %d of %d looks: it is not what shapes", held, asked)
	}
	t.Logf("at most %d bytes in flight, rate x RTT is %d", largest, schedule.Volume(rate, rtt))
}

// What the controller is given is bounded on both sides, and so is what it makes of it.
func TestTheWindowStaysBounded(t *testing.T) {
	const rate = 100_000_000
	var c control
	lately := func(micros int64) int64 { return schedule.Volume(rate, micros) }
	nominal := float64(lately(10_000 + waking))
	for _, inHand := range []int64{1 << 40, -(1 << 40)} {
		for now := int64(1); now < 60_000_000; now += 10_000 {
			got := float64(c.size(now, 10_000, pacing.Ethernet, Budget{rate, inHand, 250_000, lately}))
			if got > nominal*maxFactor+1 || got < nominal*minFactor-1 {
				t.Fatalf("%.0f bytes, rate x RTT is %.0f", got, nominal)
			}
		}
	}
	if got := c.size(1, 100, 1448, Budget{rate, 0, 1000, func(int64) int64 { return 0 }}); got < 2*1448 {
		t.Errorf("a window of %d bytes waits for delayed acknowledgements", got)
	}
}
