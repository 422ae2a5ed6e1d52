// SPDX-License-Identifier: Apache-2.0

package mechanism

import (
	"bandwidthbroker/agents/internal/pacing"
	"bandwidthbroker/agents/internal/schedule"
)

// share is one stream's part of a transfer's rate. Shares are equal as long as every stream uses its own; what a stream
// leaves unused for some tens of milliseconds goes to the others, and comes back as soon as it uses what it has left.
// Unlike pacing.Stream it is not asked of the kernel, and the sum of the shares is never above the rate: see pacing.Split.
type share struct {
	rateBps int64 // what it may send
	minBps  int64 // below that the kernel would hold a burst for too long
	lag     int64 // bytes that it could have sent and did not, up to a bound
	usedBps int64 // smoothed
	idle    bool  // it does not use its share
}

const (
	// idleAfter is for how long a stream may send less than its share, beside a burst of pacing.MaxBurst: after that it is
	// silent for as long as the rate needs for it, and is not idle.
	idleAfter int64 = 40_000 // µs
	// smallest is the part of an equal share that an idle stream keeps, to show that it is there again.
	smallest int64 = 20
	// room is how much more than it used an idle stream may send.
	roomNum, roomDen int64 = 5, 4
)

// saw takes note of the bytes that a stream sent in an interval.
func (s *share) saw(sent, micros int64) {
	could := schedule.Volume(s.rateBps, micros)
	if micros > 0 {
		s.usedBps = (s.usedBps + sent*8_000_000/micros) / 2
	}
	bound := pacing.MaxBurst + schedule.Volume(s.rateBps, idleAfter)
	s.lag = max(0, min(s.lag+could-sent, bound))
	switch {
	case sent >= could-could/20:
		s.lag, s.idle = 0, false
	case s.lag >= bound:
		s.idle = true
	}
}

// wants is the most that is worth giving to a stream.
func (s *share) wants(equal int64) int64 {
	if !s.idle {
		return pacing.Unbounded
	}
	return max(s.usedBps*roomNum/roomDen, equal/smallest, min(s.minBps, equal))
}

// divide gives every stream its part of a rate: as equal as their wants allow, the sum exactly the rate.
func divide(rateBps int64, shares []*share) {
	wants := make([]int64, len(shares))
	for i, s := range shares {
		wants[i] = s.wants(rateBps / int64(len(shares)))
	}
	for i, given := range pacing.MaxMin(rateBps, wants) {
		shares[i].rateBps = given
	}
}
