// SPDX-License-Identifier: Apache-2.0

// Package share decides how fast the connections of a transfer may send, one by one, when others write to them: the sum
// follows the booked schedule, and each gets what it can use. It is pure: time and counts are arguments.
//
// It is the outer loop around kernel pacing. The kernel holds each connection to a rate within some tenths of a per cent;
// this looks at what has left every 50 ms and corrects the sum, so that the account is right in the end.
package share

import "bandwidthbroker/agents/internal/schedule"

const (
	// catchUp is how much faster than booked (1/catchUp = 0.1 %) a transfer that is behind may go. Package pacer allows more;
	// but commands are all late by the time in which they start, many of them on one link, and the packets of those that
	// are silent come on top. What is booked beyond the volume makes up for it.
	catchUp = 1000
	// slack is how far behind the account a transfer may be before it is worth going faster.
	slack int64 = 4_000 // µs
	// settle is within which time a transfer gives back what it is ahead: the kernel does not pace the first ten packets
	// of a connection, and over any 200 ms nobody shall see them.
	settle int64 = 150_000 // µs
	// Narrow is by how much more than the clock's error steps down come early and steps up late: a loop that wakes up
	// some milliseconds late must not send by the old rate when the link has become smaller.
	Narrow int64 = 8_000 // µs
)

// Account compares what was sent with what is booked. It is not safe for concurrent use.
type Account struct {
	booked schedule.Schedule // what is owed
	safe   schedule.Schedule // what is sent by: guarded against a late step
	anchor int64             // account since
	owed   int64             // bytes behind at the anchor
	before int64             // bytes sent until the anchor
	behind bool
}

// Train is by how much earlier still a connection must be slowed down before a step: the packets for which the kernel has
// set its timer leave all the same. least is the lowest booked rate in bit/s.
func Train(least int64) int64 {
	const most = 50_000
	return min(schedule.Duration(least, 2*1448), most)
}

// Open begins to follow a schedule at an instant, after so many bytes were sent. booked may go on after its planned end
// (fallback); guard is the error of the clock; owed is what the schedule cannot carry any more if it is not sent faster
// than booked.
func Open(now int64, booked schedule.Schedule, guard, owed, sent int64) *Account {
	return &Account{booked: booked, safe: booked.Guarded(guard + Narrow), anchor: now, owed: max(owed, 0), before: sent}
}

// Rate is what all connections together may send at now, in bit/s, when so many bytes have left since the beginning.
func (a *Account) Rate(now, sent int64) int64 {
	rate := a.safe.RateAt(now)
	if rate == 0 {
		return 0
	}
	deficit := a.Deficit(now, sent)
	tolerated := schedule.Volume(rate, slack)
	switch {
	case deficit > tolerated:
		a.behind = true
	case deficit <= 0:
		a.behind = false
	}
	switch {
	case deficit < -tolerated:
		return max(rate-min(-deficit, schedule.Volume(rate, settle))*8_000_000/settle, rate/10)
	case a.behind:
		return rate + rate/catchUp
	}
	return rate
}

// Deficit is how many bytes the account is behind what is booked; negative when ahead.
func (a *Account) Deficit(now, sent int64) int64 {
	return a.owed + a.booked.Bytes(a.anchor, now) - (sent - a.before)
}

// NextChange is the next instant after now at which the rate steps.
func (a *Account) NextChange(now int64) (int64, bool) { return a.safe.NextChange(now) }

// NextActive is the next instant, from now on, at which something may be sent.
func (a *Account) NextActive(now int64) (int64, bool) { return a.safe.NextActive(now) }
