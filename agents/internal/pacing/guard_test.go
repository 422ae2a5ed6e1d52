// SPDX-License-Identifier: Apache-2.0

package pacing

import (
	"testing"

	"bandwidthbroker/agents/internal/schedule"
)

func TestTheGuardFollowsTheClock(t *testing.T) {
	booked := schedule.New([]schedule.Segment{{Begin: 0, End: 1_000_000, RateBps: 80_000_000}})
	p := NewPacer(0, booked, 1_000, 0, style)
	silentAt := func(at int64) bool { return p.Next(at, 1<<20).RateBps == 0 }
	for _, step := range []struct{ guard, at int64 }{{1_000, 995_000}, {1_400, 995_000}} {
		if p.Guard(step.guard); silentAt(step.at) {
			t.Errorf("guard %d: silent at %d", step.guard, step.at)
		}
	}
	if p.Guard(8_000); !silentAt(995_000) {
		t.Error("the clock may be off by 8 ms, and it sends 5 ms before the end")
	}
	if p.Guard(1_000); silentAt(996_000) {
		t.Error("the clock is good again, and it keeps away by 8 ms")
	}
}
