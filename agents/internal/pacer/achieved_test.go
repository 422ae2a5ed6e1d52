// SPDX-License-Identifier: Apache-2.0

package pacer

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

// What a cut link leaves of a rate says nothing of what the hosts reach when it is back: once a transfer crawled on at
// 135 kbit/s, booked so because that was the mean rate over a cut of five seconds.
func TestACutLinkIsNoSlowHost(t *testing.T) {
	const rate = 40_000_000
	booked := schedule.New([]schedule.Segment{{Begin: 0, End: 60_000_000, RateBps: rate}})
	p := Start(0, booked, 0, 0, style)
	write(p, 0, 1_000_000, 0)
	if got := p.Achieved(4_000_000); got < rate*95/100 {
		t.Errorf("after 3 s of silence: %d bit/s", got)
	}
	write(p, 6_000_000, 7_000_000, 0)
	if got := p.Achieved(7_000_000); got < rate*95/100 {
		t.Errorf("after 5 s of silence and a second of data: %d bit/s", got)
	}
	replanned := Start(2_000_000, booked, 0, 0, style) // new orders in the middle of the cut
	write(replanned, 2_000_000, 2_000_100, 0)
	if got := replanned.Achieved(5_000_000); got != 0 {
		t.Errorf("a buffer that was filled, and then nothing: %d bit/s", got)
	}
	slow := Start(0, booked, 0, 0, style)
	write(slow, 0, 3_000_000, 10_000) // a disk, say
	if got := slow.Achieved(3_000_000); got > rate*3/4 || got < rate/20 {
		t.Errorf("a slow host: %d bit/s", got)
	}
}
