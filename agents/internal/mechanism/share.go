// SPDX-License-Identifier: Apache-2.0

package mechanism

import "bandwidthbroker/agents/internal/schedule"

// share is one stream's part of a transfer's rate. Shares are equal as long as every stream uses its own; what a stream
// leaves unused for some tens of milliseconds goes to the others, and comes back as soon as it uses what it has left.
type share struct {
	rateBps  int64 // what it may send
	leastBps int64 // below that the kernel would hold a burst for too long
	lag      int64 // bytes that it could have sent and did not, up to a bound
	usedBps  int64 // smoothed
	idle     bool  // it does not use its share
}

const (
	// burst is what the kernel sends at once on a short path, whatever the rate: after it a stream is silent for as long
	// as the rate needs for it, and is not idle.
	burst int64 = 64 << 10
	// idleAfter is for how long a stream may send less than its share, beside bursts.
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
	bound := burst + schedule.Volume(s.rateBps, idleAfter)
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
		return most
	}
	return max(s.usedBps*roomNum/roomDen, equal/smallest, min(s.leastBps, equal))
}

const most = int64(1) << 60

// divide gives every stream its part of a rate: as equal as their wants allow, the sum exactly the rate.
func divide(rateBps int64, shares []*share) {
	n := int64(len(shares))
	if n == 0 {
		return
	}
	given := make([]int64, n)
	left := rateBps
	open := make([]int, n)
	for i := range open {
		open[i] = i
	}
	// Who wants less than an equal part of what is left gets what it wants, and the part grows for the others.
	for changed := true; changed && len(open) > 0; {
		changed = false
		part := left / int64(len(open))
		var still []int
		for _, i := range open {
			if want := shares[i].wants(rateBps / n); want < part {
				given[i] = want
				left -= want
				changed = true
			} else {
				still = append(still, i)
			}
		}
		open = still
	}
	// What nobody wants is kept by all: it costs nothing, and the first who wants it has it at once.
	if len(open) == 0 {
		for i := range shares {
			open = append(open, i)
		}
	}
	part, rest := left/int64(len(open)), left%int64(len(open))
	for k, i := range open {
		given[i] += part
		if int64(k) < rest {
			given[i]++
		}
	}
	for i, s := range shares {
		s.rateBps = given[i]
	}
}
