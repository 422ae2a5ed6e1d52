// SPDX-License-Identifier: Apache-2.0

package pacing

import "bandwidthbroker/agents/internal/schedule"

// slack is how far behind its account a transfer may be before it is worth going faster.
const slack int64 = 4_000 // µs

// Tolerances are what an Account allows a sender that is not exactly where its booking is.
type Tolerances struct {
	// CatchUp: a transfer that is behind may go 1/CatchUp faster than booked.
	CatchUp int64
	// UseMargin: a booking that carries more than is missing leaves its sender behind by half of that margin before it
	// goes faster.
	UseMargin bool
	// Narrow is by how much more than the clock's error steps down come early and steps up late, in µs.
	Narrow int64
	// GiveBack is within which time a transfer that is ahead goes slower until it is not, in µs; 0: it is never ahead.
	GiveBack int64
}

// CatchUp is how much faster than booked (1/CatchUp = 0.5 %) the agent's own sender may go. With the kernel's own pacing error
// (about 0.2 %, measured) this stays under the promised 1 %.
const CatchUp = 200

// The account has one law and two sets of tolerances, because the loops around it differ: a Pacer decides on each write before
// it is made, an outer loop finds out up to 40 ms later what others have sent.
var (
	// WriterTolerances are for a sender that asks before each write, and so is never ahead.
	WriterTolerances = Tolerances{CatchUp: CatchUp, UseMargin: true}
	// OuterTolerances are for a loop around connections that another process writes to. They allow 0.1 %: commands are all late
	// by the time in which they start, many of them on one link, and the packets of those that are silent come on top; what is
	// booked beyond the volume makes up for the rest. Steps are kept away from, because the loop wakes up some milliseconds late
	// and must not send by the old rate when the link has become smaller. The first ten packets of a connection, which the
	// kernel does not pace, are given back so that they do not show over any 200 ms.
	OuterTolerances = Tolerances{CatchUp: 1000, Narrow: 8_000, GiveBack: 150_000}
)

// Account compares what was sent with what is booked. It is not safe for concurrent use.
type Account struct {
	tolerances Tolerances
	booked     schedule.Schedule // what is owed
	safe       schedule.Schedule // what is sent by: guarded against clock error
	guard      int64             // that it is guarded by
	anchor     int64             // account since
	owed       int64             // bytes behind at the anchor
	margin     int64             // bytes that the booking carries beyond what is missing
	before     int64             // bytes sent until the anchor
	behind     bool
}

// NewAccount begins to follow a schedule at an instant, after so many bytes were sent. booked may go on after its planned
// end (fallback); guard is the error of the clock in µs; owed is what the schedule cannot carry any more if it is not sent
// faster than booked or, negative, its margin (see Owed).
func NewAccount(now int64, booked schedule.Schedule, guard, owed, sent int64, tolerances Tolerances) *Account {
	a := &Account{tolerances: tolerances, booked: booked, anchor: now, owed: max(owed, 0), before: sent}
	if tolerances.UseMargin {
		a.margin = max(-owed, 0)
	}
	a.follow(guard)
	return a
}

func (a *Account) follow(guard int64) {
	a.guard, a.safe = guard, a.booked.Guarded(guard+a.tolerances.Narrow)
}

// coarse is how much the error of the clock must have changed to be worth following.
const coarse int64 = 500 // µs

// Guard follows the error of the clock, which grows while the broker is not heard.
func (a *Account) Guard(guard int64) {
	if guard-a.guard >= coarse || a.guard-guard >= coarse {
		a.follow(guard)
	}
}

// Rate is what may be sent at now, in bit/s, when so many bytes have left since the beginning: the booked rate, and more or
// less than that within the tolerances.
func (a *Account) Rate(now, sent int64) int64 {
	rate := a.safe.RateAt(now)
	if rate == 0 {
		return 0
	}
	deficit := a.Deficit(now, sent)
	tolerated := schedule.Volume(rate, slack)
	switch late := deficit - a.margin/2; {
	case late > tolerated:
		a.behind = true
	case late <= 0:
		a.behind = false
	}
	if within := a.tolerances.GiveBack; within > 0 && deficit < -tolerated {
		return max(rate-min(-deficit, schedule.Volume(rate, within))*8_000_000/within, rate/10)
	}
	return a.faster(rate)
}

// faster is a rate or volume as a transfer that is behind may use it.
func (a *Account) faster(n int64) int64 {
	if a.behind {
		return n + n/a.tolerances.CatchUp
	}
	return n
}

// Deficit is how many bytes the account is behind what is booked; negative when ahead.
func (a *Account) Deficit(now, sent int64) int64 {
	return a.owed + a.booked.Bytes(a.anchor, now) - (sent - a.before)
}

// RateAt is the rate that is sent by at an instant, without catching up, in bit/s.
func (a *Account) RateAt(at int64) int64 { return a.safe.RateAt(at) }

// NextChange is the next instant after now at which the rate steps.
func (a *Account) NextChange(now int64) (int64, bool) { return a.safe.NextChange(now) }

// NextActive is the next instant, from now on, at which something may be sent.
func (a *Account) NextActive(now int64) (int64, bool) { return a.safe.NextActive(now) }
