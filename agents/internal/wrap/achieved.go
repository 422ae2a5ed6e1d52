// SPDX-License-Identifier: Apache-2.0

package wrap

// measured is how long a command must have sent at one rate before what came out says what it can.
const measured int64 = 1_000_000 // µs

// achieved is the rate that a command reaches while it is held to one rate: the broker books no more for what is left.
// The beginning of a connection and a command that thinks say nothing.
type achieved struct {
	since, sent, applied int64
	last                 int64 // bit/s; 0: too early to say
}

// see takes a look at the bytes sent so far.
func (a *achieved) see(now, sent, applied int64) {
	span := now - a.since
	if applied != a.applied && (applied < a.applied-a.applied/20 || applied > a.applied+a.applied/20) {
		a.since, a.sent, a.applied = now, sent, applied
		return
	}
	if span < measured {
		return
	}
	a.last = (sent - a.sent) * 8_000_000 / span
	a.since, a.sent = now, sent
}

// rate is what was reached lately; 0 where nothing, or too little to be meant, was sent.
func (a *achieved) rate() int64 {
	if a.last < a.applied/20 {
		return 0
	}
	return a.last
}
