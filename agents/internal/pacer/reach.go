// SPDX-License-Identifier: Apache-2.0

package pacer

const (
	// window is how long bytes are counted before they make a rate.
	window int64 = 250_000 // µs
	// fewest windows must have passed before anything is said: one in which the machine stood still says nothing of what it can.
	fewest = 3
)

// reach is the best rate that came out over a window while one rate was booked. The best, not the mean: who once did what was
// booked and then stood still for a moment can do it again, and would crawl on at the mean if that were booked.
type reach struct {
	booked  int64 // bit/s
	since   int64
	bytes   int64 // written since then
	windows int
	best    int64 // bit/s
}

// look takes note of the time, and of the rate that is booked at it.
func (r *reach) look(now, booked int64) {
	if booked != r.booked {
		*r = reach{booked: booked, since: now}
		return
	}
	if span := now - r.since; span >= window {
		r.best = max(r.best, r.bytes*8_000_000/span)
		r.windows++
		r.since, r.bytes = now, 0
	}
}

func (r *reach) wrote(n int64) { r.bytes += n }

// rate is 0 until it can be said.
func (r *reach) rate() int64 {
	if r.windows < fewest {
		return 0
	}
	return r.best
}
