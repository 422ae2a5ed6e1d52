// SPDX-License-Identifier: Apache-2.0

package schedule

import "slices"

// Guarded is the schedule as it is safe to send by: at every instant the smallest rate booked within guard before or
// after it. Steps down come early by the guard and steps up come late, so that neither the granularity of timers nor the
// error of the clock (when it is no larger than the guard) puts a byte where nothing is booked for it.
func (s Schedule) Guarded(guard int64) Schedule {
	if guard <= 0 || s.Empty() {
		return s
	}
	edges := make([]int64, 0, 2*len(s.steps))
	for _, st := range s.steps {
		edges = append(edges, st.begin-guard, st.begin+guard)
	}
	slices.Sort(edges)
	var made Schedule
	for _, at := range slices.Compact(edges) {
		made.push(at, s.least(at-guard, at+guard))
	}
	return made
}

// least is the smallest rate in the closed interval [from, to].
func (s Schedule) least(from, to int64) int64 {
	smallest := s.RateAt(from)
	for i := s.index(from) + 1; i < len(s.steps) && s.steps[i].begin <= to; i++ {
		smallest = min(smallest, s.steps[i].rateBps)
	}
	return smallest
}
