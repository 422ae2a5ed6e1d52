// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// attempts at a measurement that another load on the machine can only spoil.
const attempts = 3

// The promise of the whole system: steps of 400, 100 and 300 Mbit/s on the wire as booked, and silence in the gap.
func TestTheWireFollowsTheBooking(t *testing.T) {
	l := newQuietLab(t)
	for attempt := range attempts {
		wrong := follows(t, l, l.agent(fmt.Sprint("a", attempt)), l.agent(fmt.Sprint("b", attempt)))
		if len(wrong) == 0 {
			return
		}
		t.Logf("attempt %d: %v", attempt+1, wrong)
	}
	machine.Errorf(t, "never as booked in %d attempts", attempts)
}

// follows returns what was not as booked.
func follows(t *testing.T, l *lab, a, b *host) (wrong []string) {
	t.Helper()
	wrongly := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	seconds := 2.0
	if os.Getenv("BWB_MEASURE") != "" {
		seconds = 6
	}
	booked := steps(1500*time.Millisecond, seconds, 400, seconds, 100, 0.6, 0, seconds, 300)
	volume := int64(planOf(booked).Bytes(0, booked[2].End.UnixMicro()) * 100 / 101) // the broker books 1 % more
	j := l.job(a, b, volume, booked...)
	j.assign()
	samples := watch(t, b).until(booked[2].End.Add(200 * time.Millisecond))
	late := lateness(samples)
	t.Logf("this host was up to %.1f ms late", float64(late)/1e3)
	planned := booked[2].End.Sub(booked[0].Begin).Seconds()
	var finished int64
	for _, s := range samples {
		if s.bytes >= volume {
			finished = s.at
			break
		}
	}
	for i, s := range booked {
		to := s.End.UnixMicro()
		if i == 2 {
			to = min(to, finished)
		}
		got := goodput(samples, s.Begin.UnixMicro(), to)
		off := 100 * (got/float64(s.RateBps) - 1)
		t.Logf("segment %d: booked %.0f Mbit/s, got %.2f (%+.2f %%)", i, float64(s.RateBps)/1e6, got/1e6, off)
		if slack := 100 * float64(late) / float64(s.End.Sub(s.Begin).Microseconds()); off < -1-slack || off > 1 {
			wrongly("segment %d is %+.2f %% off", i, off)
		}
	}
	// Single bytes that keep the congestion window open may leave in it.
	if gap := goodput(samples, booked[1].End.UnixMicro()+max(late, 5_000), booked[2].Begin.UnixMicro()); gap > 10_000 {
		wrongly("%.3f Mbit/s in the gap", gap/1e6)
	}
	over, at := worst(samples, planOf(booked), late)
	t.Logf("worst 500 ms: %+.2f %% at %.2f s", over, float64(at-booked[0].Begin.UnixMicro())/1e6)
	if over > 1 {
		wrongly("%.2f %% above the booking over 500 ms", over)
	}
	took := float64(finished-booked[0].Begin.UnixMicro()) / 1e6
	t.Logf("finished after %.3f s, planned %.3f s", took, planned)
	if finished == 0 || took > planned*1.02 || took < planned*0.97 {
		wrongly("finished after %.3f s, planned %.3f s", took, planned)
	}
	if len(wrong) == 0 { // what is behind goes on at the fallback rate, for minutes
		j.arrived(15 * time.Second)
	}
	return wrong
}
