// SPDX-License-Identifier: Apache-2.0

package pacing

import (
	"testing"

	"bandwidthbroker/agents/internal/schedule"
)

// write goes on writing as the pacer says, over a path that takes what it is given with a pause after each write.
func write(p *Pacer, from, until, pause int64) {
	for now := from; now < until; {
		d := p.Next(now, 1<<30)
		if d.Write == 0 {
			now = max(d.WakeAt, now+50)
			continue
		}
		p.Wrote(min(d.Write, d.Quantum))
		now += pause
	}
}

func booking(rates ...int64) schedule.Schedule {
	segments := make([]schedule.Segment, len(rates))
	for i, rate := range rates {
		segments[i] = schedule.Segment{Begin: int64(i) * 4_000_000, End: int64(i+1) * 4_000_000, RateBps: rate}
	}
	return schedule.New(segments)
}

// What a cut link leaves of a rate says nothing of what the hosts reach when it is back: once a transfer crawled on at
// 135 kbit/s, booked so because that was the mean rate over a cut of five seconds.
func TestACutLinkIsNoSlowHost(t *testing.T) {
	const rate = 40_000_000
	p := NewPacer(0, booking(rate, rate, rate), 0, 0, style)
	write(p, 0, 1_100_000, 0)
	write(p, 6_000_000, 7_000_000, 0)
	if got := p.Achieved(); got < rate*95/100 {
		t.Errorf("after 5 s of silence: %d bit/s", got)
	}
}

// A receiver that stood still for 0.2 s soon after the start was once taken for one of 87 Mbit/s, and its 60 MB took 5 s.
func TestAPauseIsNoSlowHost(t *testing.T) {
	const rate = 150_000_000
	p := NewPacer(0, booking(rate), 0, 0, style)
	write(p, 0, 50_000, 0)
	write(p, 250_000, 300_000, 0)
	if got := p.Achieved(); got != 0 {
		t.Errorf("after 0.3 s: %d bit/s", got)
	}
	write(p, 300_000, 1_600_000, 0)
	if got := p.Achieved(); got < rate*95/100 {
		t.Errorf("after the pause: %d bit/s", got)
	}
}

// A machine that gives a process half of its time, for half a second, made 268 Mbit/s of 314 the rate for all that was left.
func TestASlowBeginningIsNoSlowHost(t *testing.T) {
	const rate = 314_000_000
	p := NewPacer(0, booking(rate), 0, 0, style)
	for at := int64(0); at < 520_000; at += 100_000 {
		write(p, at, at+50_000, 0)
	}
	if got := p.Achieved(); got != 0 {
		t.Errorf("after 0.5 s: %d bit/s", got)
	}
}

func TestASlowHostIsOne(t *testing.T) {
	const rate = 40_000_000
	slow := NewPacer(0, booking(rate), 0, 0, style)
	write(slow, 0, 3_000_000, 10_000) // a disk, say
	if got := slow.Achieved(); got > rate*3/4 || got < rate/20 {
		t.Errorf("a slow host: %d bit/s", got)
	}
}

// What came out at a low rate does not say that a higher one is out of reach.
func TestAnotherRateIsMeasuredAnew(t *testing.T) {
	const low, high = 10_000_000, 40_000_000
	p := NewPacer(0, booking(low, high), 0, 0, style)
	write(p, 0, 4_100_000, 0)
	if got := p.Achieved(); got != 0 {
		t.Errorf("0.1 s at the higher rate: %d bit/s", got)
	}
}
