// SPDX-License-Identifier: Apache-2.0

package clock

import "time"

const (
	// kept is how many exchanges compete.
	kept = 16
	// believed is how many exchanges that agree with each other overrule all earlier ones: that the broker's clock was
	// stepped is a rare thing, that one answer was made from a wrong time stamp is less so.
	believed = 3
)

// sample is one exchange with the broker.
type sample struct {
	offset    time.Duration // broker time minus local time
	roundTrip time.Duration // on the way: without what the broker took
	at        time.Time     // local
}

// bound is how far the offset may be off by now: half the round trip, for it is not known which way was the slower, and
// what the two clocks may have drifted apart since.
func (s sample) bound(now time.Time, h Host) time.Duration {
	return s.roundTrip/2 + h.drift(now.Sub(s.at))
}

// contradicts says that two samples cannot both be right.
func (s sample) contradicts(other sample, now time.Time, h Host) bool {
	return (s.offset - other.offset).Abs() > s.bound(now, h)+other.bound(now, h)
}

// estimate keeps the last exchanges and believes the one with the smallest bound. Those that contradict it are kept apart:
// when enough of them agree with each other, they are right and all earlier ones wrong.
type estimate struct {
	samples []sample
	doubts  []sample
}

// add takes an exchange: local times when the request left and when the answer came, the broker's time in the middle of its
// work on it, and how long that took.
// stepped is by how much the broker's clock was stepped, when that has become certain with this exchange.
func (e *estimate) add(sent, received, broker time.Time, took time.Duration, h Host) (stepped time.Duration) {
	elapsed := received.Sub(sent)
	if elapsed < took { // nor below 0
		return 0
	}
	s := sample{broker.Sub(sent.Add(elapsed / 2)), elapsed - took, received}
	best, known := e.best(received, h)
	if known && s.contradicts(best, received, h) {
		return e.doubt(s, best, h)
	}
	if e.disputed(s, received, h) {
		e.doubts = nil
	}
	if e.samples = append(e.samples, s); len(e.samples) > kept {
		e.samples = e.samples[1:]
	}
	return 0
}

// doubt takes a sample that contradicts the best one.
func (e *estimate) doubt(s, best sample, h Host) (stepped time.Duration) {
	if e.disputed(s, s.at, h) {
		e.doubts = nil
	}
	if e.doubts = append(e.doubts, s); len(e.doubts) < believed {
		return 0
	}
	e.samples, e.doubts = e.doubts, nil
	right, _ := e.best(s.at, h)
	return right.offset - best.offset
}

// disputed says that a sample contradicts one of the doubts.
func (e *estimate) disputed(s sample, now time.Time, h Host) bool {
	for _, d := range e.doubts {
		if s.contradicts(d, now, h) {
			return true
		}
	}
	return false
}

// best is the sample with the smallest bound; ok is false without any. Which one that is does not change with time alone:
// all bounds grow alike.
func (e *estimate) best(now time.Time, h Host) (best sample, ok bool) {
	for _, s := range e.samples {
		if !ok || s.bound(now, h) < best.bound(now, h) {
			best, ok = s, true
		}
	}
	return best, ok
}
