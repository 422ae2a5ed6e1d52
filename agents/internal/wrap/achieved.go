// SPDX-License-Identifier: Apache-2.0

package wrap

// measured is how long a command must have sent at one rate, without a pause, before what came out says what it can.
const measured int64 = 1_000_000 // µs

// achieved is the rate that a command reaches while it is held to one rate: the broker books no more for what is left.
// The beginning of a connection and a command that thinks say nothing.
type achieved struct {
	since, sent, applied int64
	newest               int64 // bytes at the last look
	last                 int64 // bit/s; 0: nobody can say
}

// see takes a look at the bytes sent so far.
func (a *achieved) see(now, sent, applied int64) {
	paused := sent == a.newest
	a.newest = sent
	if paused || applied < a.applied-a.applied/20 || applied > a.applied+a.applied/20 {
		*a = achieved{since: now, sent: sent, applied: applied, newest: sent}
		return
	}
	if span := now - a.since; span >= measured {
		a.last = (sent - a.sent) * 8_000_000 / span
		a.since, a.sent = now, sent
	}
}

// rate is what was reached lately; 0 where that cannot be said.
func (a *achieved) rate() int64 { return a.last }
