// SPDX-License-Identifier: Apache-2.0

package wrap

import "bandwidthbroker/agents/internal/pacing"

// silence is how one connection is kept quiet while nothing is booked; see pacing.QuietRate.
type silence struct {
	rate  int64 // the low rate that was asked for; 0: none yet
	sent  int64 // by then
	armed bool  // the last packet is under way, its timer runs beyond the gap
}

// early is how much before the end of the gap a timer may run out.
const early int64 = 5_000 // µs

// silence takes a step towards quiet. It is called every few milliseconds in a gap.
func (s *Supervisor) silence(now int64, inode uint64, st *stream, n int) {
	gap, next, known := s.gap(now)
	burst := pacing.Burst(st.segment(), st.counts.MinRTT, s.roundTrip)
	roundTrip := st.counts.MinRTT
	if !s.slow {
		roundTrip = max(roundTrip, pacing.FastReturn) // what comes back too fast can be done without
	}
	low := pacing.QuietRate(s.peak(), n, gap, burst, roundTrip)
	moved := st.counts.Sent - st.quiet.sent
	switch {
	case st.counts.Unsent == 0 && (st.quiet.rate == 0 || moved == 0):
		// It has nothing to say. What it will say first sets its timer by the rate of now, so that must not be too low.
		s.set(inode, st, max(s.peak()/4, low))
	case st.quiet.rate == 0, st.quiet.armed && moved > 0:
		// The gap begins, or the timer ran out in the middle of it.
		st.quiet = silence{rate: low, sent: st.counts.Sent}
		s.set(inode, st, low)
	case st.quiet.armed:
		s.quicken(st)
	case moved == 0:
	case known && moved*8_000_000/st.quiet.rate >= gap-early && roundTrip >= pacing.FastReturn:
		st.quiet.armed, st.quiet.sent = true, st.counts.Sent
		s.set(inode, st, next)
	default:
		st.quiet = silence{rate: low, sent: st.counts.Sent}
		s.set(inode, st, low)
	}
}

// soonest is how long it takes at least until more is booked behind the end of a plan.
const soonest int64 = 500_000 // µs

// gap is how long nothing is booked from now on (0: unknown), and the rate after that. Behind the end of a plan it
// is a guess: the rest has been asked for, and no timer should run much longer than it takes to get it.
func (s *Supervisor) gap(now int64) (gap, next int64, known bool) {
	at, ok := s.account.NextActive(now)
	switch {
	case s.orders.Paused:
		return 0, 0, false
	case !ok:
		return soonest, 0, false
	}
	return at - now, max(s.plan.RateAt(at), s.orders.Fallback, 8_000) / int64(max(len(s.streams), 1)), true
}

// peak is the highest rate that is booked.
func (s *Supervisor) peak() int64 {
	peak := int64(0)
	for _, segment := range s.orders.Segments {
		peak = max(peak, segment.RateBps)
	}
	return peak
}
