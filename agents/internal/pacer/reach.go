// SPDX-License-Identifier: Apache-2.0

package pacer

// window is how long bytes are counted before they make a rate.
const window int64 = 500_000 // µs

// reach is the best rate that came out over a window while one rate was booked. The best, not the mean: who once did what was
// booked and then stood still for a moment can do it again, and would crawl on at the mean if that were booked.
type reach struct {
	booked int64 // bit/s
	since  int64
	bytes  int64 // written since then
	best   int64 // bit/s; 0 until a window is full
}

// look takes note of the time, and of the rate that is booked at it.
func (r *reach) look(now, booked int64) {
	if booked != r.booked {
		*r = reach{booked: booked, since: now}
		return
	}
	if span := now - r.since; span >= window {
		r.best = max(r.best, r.bytes*8_000_000/span)
		r.since, r.bytes = now, 0
	}
}

func (r *reach) wrote(n int64) { r.bytes += n }
