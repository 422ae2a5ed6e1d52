// SPDX-License-Identifier: Apache-2.0

package clock

import "time"

// kept is how many exchanges compete: at one a second this forgets a lucky one after a quarter of a minute, sooner than
// two ordinary clocks drift apart by a millisecond.
const kept = 16

// sample is one exchange with the broker.
type sample struct {
	offset    time.Duration // broker time minus local time
	roundTrip time.Duration
}

// estimate keeps the last exchanges and believes the one with the smallest round trip: the others only waited longer
// somewhere, and nobody knows in which direction.
type estimate struct {
	samples [kept]sample
	n       int
}

// add takes an exchange: local times when the request left and when the answer came, and the broker's time in between.
func (e *estimate) add(sent, received, broker time.Time) {
	roundTrip := received.Sub(sent)
	if roundTrip < 0 {
		return
	}
	e.samples[e.n%kept] = sample{broker.Sub(sent.Add(roundTrip / 2)), roundTrip}
	e.n++
}

// best is the offset and half of its round trip, which bounds its error.
func (e *estimate) best() (offset, bound time.Duration, ok bool) {
	if e.n == 0 {
		return 0, 0, false
	}
	best := e.samples[0]
	for _, s := range e.samples[1:min(e.n, kept)] {
		if s.roundTrip < best.roundTrip {
			best = s
		}
	}
	return best.offset, best.roundTrip / 2, true
}
