// SPDX-License-Identifier: Apache-2.0

package pacing

import "bandwidthbroker/agents/internal/schedule"

// Owed is what the plan (without fallback) cannot carry any more from now on; negative: its margin, what it carries beyond that.
func Owed(now int64, plan schedule.Schedule, missing int64) int64 {
	return missing - plan.Bytes(now, plan.End())
}

// tolerance keeps a transfer that is exactly on plan from reporting a shortfall over a late packet.
const (
	toleranceBytes  int64 = 64 << 10
	toleranceMicros int64 = 20_000
)

// Shortfall says that the plan cannot carry the missing bytes even when every remaining segment is followed as fast as
// catching up allows: the broker should book the rest anew.
func Shortfall(now int64, plan schedule.Schedule, missing int64) bool {
	booked := plan.Bytes(now, plan.End())
	return missing > booked+booked/CatchUp+max(toleranceBytes, schedule.Volume(plan.RateAt(now), toleranceMicros))
}

const (
	// NearEnd is how long before the end of a plan it is looked at closely: longer than a report and a new plan take, which
	// begins half a second after it was booked.
	NearEnd int64 = 1_000_000 // µs
	fading  int64 = 100
)

// EndsShort says the same near the end, where a late transfer goes on at the fallback rate if nothing new is booked: the
// little that is tolerated fades with the time that is left, a hundredth of it and two packets. Missing is what has not
// left this host, to the last byte.
func EndsShort(now int64, plan schedule.Schedule, missing int64) bool {
	left := plan.End() - now
	if left > NearEnd {
		return false
	}
	booked := plan.Bytes(now, plan.End())
	return missing > booked+booked/CatchUp+schedule.Volume(plan.RateAt(now), max(left, 0)/fading)+2*Ethernet
}
