// SPDX-License-Identifier: Apache-2.0

package pacing

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"bandwidthbroker/agents/internal/schedule"
)

// slowStart is a model of a connection: the window grows by one for every segment that is acknowledged, an RTT after it
// left.
type slowStart struct {
	path Path
	acks []struct{ at, segments int64 }
}

func (s *slowStart) until(now int64) {
	for len(s.acks) > 0 && s.acks[0].at <= now {
		s.path.Window += s.acks[0].segments
		s.path.InFlight -= s.acks[0].segments
		s.acks = s.acks[1:]
	}
}

func (s *slowStart) send(now, segments int64) {
	s.path.InFlight += segments
	s.path.Sent += segments
	s.acks = append(s.acks, struct{ at, segments int64 }{now + s.path.RTT, segments})
}

// warmUp plays it to the first booked instant at 0, and returns the bytes that were sent on the wire and over any 500 ms.
func warmUp(rate int64, path Path) (s *slowStart, wire, most int64) {
	s = &slowStart{path: path}
	type sent struct{ at, wire int64 }
	var line []sent
	last := int64(-1 << 40)
	for now := -WarmLead(rate, path); now < 0; {
		s.until(now)
		segments, after := Warm(rate, s.path, now-last)
		if last = now; after == 0 {
			break
		}
		s.send(now, segments)
		wire += segments * TinyWire
		line = append(line, sent{now, segments * TinyWire})
		now += after
	}
	s.until(0)
	for i := range line {
		var window int64
		for j := i; j < len(line) && line[j].at-line[i].at < 500_000; j++ {
			window += line[j].wire
		}
		most = max(most, window)
	}
	return s, wire, most
}

// At the first booked instant the window carries the booked rate, and what that took is less than 1 % of it.
func TestWarmAtTheFirstInstant(t *testing.T) {
	for _, rtt := range []int64{100, 10_000, 50_000, 100_000} {
		for _, rate := range []int64{20_000_000, 333_000_000, 1_000_000_000, 10_000_000_000} {
			t.Run(fmt.Sprintf("%d us %d Mbit/s", rtt, rate/1_000_000), func(t *testing.T) {
				s, _, most := warmUp(rate, Path{RTT: rtt, Packet: Ethernet, Window: 10})
				if need := schedule.Volume(rate, rtt) / Ethernet; s.path.Window < need {
					t.Errorf("a window of %d segments, the rate has %d in flight", s.path.Window, need)
				}
				if s.path.Sent < unpaced {
					t.Errorf("%d segments: the kernel does not pace the next ones", s.path.Sent)
				}
				if bound := schedule.Volume(rate, 500_000)/100 + unpaced*TinyWire; most > bound {
					t.Errorf("%d bytes within 500 ms, 1 %% of the rate are %d", most, bound)
				}
			})
		}
	}
}

func TestWarmingUpIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Int64Range(1, 100_000_000_000).Draw(t, "rate")
		path := Path{
			RTT: rapid.Int64Range(1, 2_000_000).Draw(t, "rtt"), Packet: rapid.Int64Range(88, 65_483).Draw(t, "packet"),
			Window: rapid.Int64Range(1, 100).Draw(t, "window"),
		}
		s, wire, _ := warmUp(rate, path)
		if bound := schedule.Volume(rate, 1_000_000)/warmShare + 2*unpaced*TinyWire; wire > bound {
			t.Fatalf("%d bytes on the wire, allowed are %d", wire, bound)
		}
		if most := max(WindowFor(rate, path), path.Window+unpaced); s.path.Window > most {
			t.Fatalf("a window of %d segments, wanted are %d", s.path.Window, most)
		}
		if s.path.InFlight > s.path.Window {
			t.Fatalf("%d segments in a window of %d", s.path.InFlight, s.path.Window)
		}
	})
}
