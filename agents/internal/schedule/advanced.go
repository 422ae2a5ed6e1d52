// SPDX-License-Identifier: Apache-2.0

package schedule

// Advanced is the schedule carried out earlier by so many microseconds, and continued, from the end of that on, by what is
// booked anyway: a transfer that could begin early has the whole of its own booking left for what it did not manage.
func (s Schedule) Advanced(by int64) Schedule {
	if by <= 0 || s.Empty() {
		return s
	}
	var made Schedule
	for _, st := range s.steps[:len(s.steps)-1] {
		made.push(st.begin-by, st.rateBps)
	}
	switched := s.End() - by
	made.push(switched, s.RateAt(switched))
	for _, st := range s.steps {
		if st.begin > switched {
			made.push(st.begin, st.rateBps)
		}
	}
	return made
}
