// SPDX-License-Identifier: Apache-2.0

package pacing

import "bandwidthbroker/agents/internal/schedule"

const (
	// Queued is the lookahead for a kernel that paces: how much waits there ahead of time. It bridges late wake-ups on a
	// busy host: with 5 ms a segment of 2 s lost more than 1 % when four processes competed for two cores, with 20 ms it
	// did not.
	Queued int64 = 20_000 // µs
	// Clocked is the lookahead for a window: half of it, by which it is ahead when all is well, is 0.25 % of 2 s.
	Clocked int64 = 10_000 // µs
	// Immediate is the lookahead for a kernel that sends what it is given at once: it is the burst of the token bucket, and
	// with CatchUp stays within 1 % over 500 ms.
	Immediate int64 = 2_000 // µs
	// maxLookahead bounds the stretch that lets slow rates send whole packets: two of them below 100 kbit/s.
	maxLookahead int64 = 200_000 // µs

	// Ethernet is the payload of one frame of 1500 bytes with TCP time stamps.
	Ethernet   int64 = 1448
	maxQuantum int64 = 256 << 10 // one read buffer
	quantumFor int64 = 1_000     // µs of the rate per write: smaller than the burst that 1 % of 500 ms allows

	// After a start from nothing only one write is ahead at first: the kernel does not pace the first ten segments of a
	// connection, and on a short path those are as large as the writes. Then the queue grows by 1/rampUp of the time.
	rampAfter int64 = 20_000 // µs
	rampUp    int64 = 10
)

// Pacer follows one schedule over one connection: it decides at what rate the kernel should pace it and how many bytes may be
// handed over. It is not safe for concurrent use.
//
// Two limits hold at once. The account: what was written never runs ahead of what is booked, apart from some
// milliseconds that wait in the kernel. The queue: those milliseconds are a model of the kernel's queue, which drains at
// the paced rate; it never holds more than the schedule carries in the coming milliseconds, so it is empty when a gap
// begins. A transfer that is behind the account by more than half of what the booking can spare may go faster, but only by
// CatchUp, so no backlog ever turns into a burst. One that is behind by less stays behind: on a link that is booked out
// what is made good only waits in its queue, and in the end is lost there.
type Pacer struct {
	account *Account
	wrote   int64 // bytes since the beginning
	queue   int64 // modelled bytes in the kernel's queue
	at      int64 // the model is up to date until
	since   int64 // sending since, 0 while nothing is
	meter   *Meter
	style   Style
}

// Style is how the kernel treats what is written.
type Style struct {
	Lookahead int64 // µs of the booking that may be written ahead of time: Queued, Clocked or Immediate
	Packet    int64 // bytes of payload in a full packet: not worth writing less at a time
}

// Decision says what to do now.
type Decision struct {
	RateBps int64 // pace the kernel at this; 0: send nothing, leave the socket as it is
	Write   int64 // bytes that may be written now, 0 for none
	Quantum int64 // write them in pieces of this
	WakeAt  int64 // when Write is 0: ask again then
	InHand  int64 // bytes that the account leaves to be written now, of at most Ahead; negative when it is overdrawn
	Ahead   int64
}

// NewPacer begins to follow a schedule at an instant. booked, guard and owed are those of NewAccount.
func NewPacer(now int64, booked schedule.Schedule, guard, owed int64, style Style) *Pacer {
	return &Pacer{account: NewAccount(now, booked, guard, owed, 0, WriterTolerances), at: now, meter: NewMeter(WriterSampling), style: style}
}

// Guard follows the error of the clock; see Account.Guard.
func (p *Pacer) Guard(guard int64) { p.account.Guard(guard) }

// Next decides for an instant; want is how many bytes the caller has in all.
func (p *Pacer) Next(now, want int64) Decision {
	p.drain(now)
	rate := p.account.RateAt(now)
	if rate == 0 {
		p.queue, p.since = 0, 0
		wake, ok := p.account.NextActive(now)
		if !ok {
			wake = schedule.Forever
		}
		return Decision{WakeAt: wake}
	}
	paced := p.account.Rate(now, p.wrote)
	if p.since == 0 {
		p.since = now
	}
	p.meter.See(now, p.wrote, rate)
	quantum := p.quantum(rate)
	until := now + p.horizon(rate)
	if change, ok := p.account.NextChange(now); ok && p.account.RateAt(change) < rate {
		until = min(until, change) // a sender that wakes up late at a step down must not find the kernel with more to send
	}
	ahead := p.account.safe.Bytes(now, until)
	ahead = min(ahead, quantum+schedule.Volume(rate, (now-p.since-rampAfter)/rampUp))
	budget := min(p.account.faster(ahead)-p.queue, p.account.Deficit(now, p.wrote)+ahead)
	decision := Decision{RateBps: paced, Quantum: quantum, WakeAt: now, InHand: budget, Ahead: ahead}
	if budget >= min(quantum, want) {
		decision.Write = budget
		return decision
	}
	// Wait until half the queue is gone, so that several quanta go at one wake-up.
	lacking := max(quantum, ahead/2) - budget
	decision.WakeAt = now + max(schedule.Duration(rate, lacking), 50)
	if change, ok := p.account.NextChange(now); ok {
		decision.WakeAt = min(decision.WakeAt, change)
	}
	return decision
}

// RateAt is the rate that is sent by at an instant, without catching up.
func (p *Pacer) RateAt(at int64) int64 { return p.account.RateAt(at) }

// NextRise is the next instant at which the rate steps up from one that is sent at, and the rate then.
func (p *Pacer) NextRise(now int64) (at, rateBps int64, ok bool) {
	rate := p.account.RateAt(now)
	at, ok = p.account.NextChange(now)
	rateBps = p.account.RateAt(at)
	return at, rateBps, ok && rate > 0 && rateBps > rate
}

// Lately is what was booked in so many microseconds until now.
func (p *Pacer) Lately(now, micros int64) int64 { return p.account.booked.Bytes(now-micros, now) }

// Wrote takes note of bytes that were handed to the kernel.
func (p *Pacer) Wrote(n int64) {
	p.wrote += n
	p.queue += n
}

// Waiting is how many bytes of those that were written are still in the kernel's queue, by the model of it.
func (p *Pacer) Waiting(now int64) int64 {
	p.drain(now)
	return p.queue
}

// Achieved is the rate that this connection has shown it can reach at the rate that is booked now, in bit/s; 0 while that is too
// short to say.
func (p *Pacer) Achieved() int64 { return p.meter.RateBps() }

func (p *Pacer) drain(now int64) {
	if now <= p.at {
		return
	}
	p.queue = max(0, p.queue-p.account.faster(p.account.safe.Bytes(p.at, now)))
	p.at = now
}

func (p *Pacer) horizon(rateBps int64) int64 {
	return max(p.style.Lookahead, min(schedule.Duration(rateBps, 2*p.style.Packet), maxLookahead))
}

// quantum is a write: whole packets, so that the share of headers is what the mechanisms reckon with.
func (p *Pacer) quantum(rateBps int64) int64 {
	packet := p.style.Packet
	q := min(max(schedule.Volume(rateBps, quantumFor), min(packet, schedule.Volume(rateBps, p.horizon(rateBps))/2)), maxQuantum)
	if q > packet {
		q -= q % packet
	}
	return max(q, 1)
}

// NotSentLowWater is how much unsent data the kernel should take at a rate (TCP_NOTSENT_LOWAT): the queue that is meant
// to be there, and little more, so that not much is left when the network is slower than the booking.
func NotSentLowWater(rateBps int64) int {
	return int(min(max(schedule.Volume(rateBps, Queued+5_000), 16<<10), 2<<20))
}
