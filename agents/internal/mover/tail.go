// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"fmt"
	"sync"
	"time"

	"bandwidthbroker/agents/internal/schedule"
	"bandwidthbroker/agents/internal/signal"
	"bandwidthbroker/agents/internal/signalport"
)

// EndSignal is whom a predecessor's sender tells that the link is free.
type EndSignal struct {
	Successor SignalPeer
	Kind      SignalKind
	Timeout   int64 // µs
	Delay     bool  // late, it goes on at its rate while the successor waits; otherwise it goes on at its fallback rate
}

const (
	// stopping is how long a sender may send on after its lease is over: what its kernel holds (pacer's look ahead), and one
	// wait for a full queue. The lease is given up so much earlier.
	stopping    int64 = 20_000 + leasedWait // µs
	leasedWait  int64 = 10_000              // µs
	lookEvery   int64 = 10_000              // µs
	extendBy    int64 = 100_000             // µs: several looks
	stalledFor  int64 = 500_000             // µs without an acknowledgement: not using the link
	maxAbsorb   int64 = 2_000_000           // µs: what is later than that is for the broker to book anew
	drainPoll         = 250 * time.Microsecond
	nearTheEnd  int64 = 500_000 // µs: an overrun is thought about from then on
	driftFactor       = 250     // 0.4 %: more than two clocks drift apart
)

// Tail is the end of a transfer that has successors: it holds the link as the end comes near, goes on beyond it where it may,
// and tells every successor when it is free. A wrapped mover uses it as the Sender does: Update, Look every 10 ms
// or more often, GoesOn to know what comes after the schedule's end, Release at the end, Leave. It is safe for concurrent use.
type Tail struct {
	port   *signalport.Port
	clock  Clock
	report func(code, detail string)

	mu      sync.Mutex
	orders  *Orders
	plan    schedule.Schedule
	pairs   map[EndSignal]*signalport.Predecessor
	freed   bool // GO was said
	cause   signal.Cause
	overran bool // reported
	nextAt  int64
	acked   int64 // bytes when the peer's kernel last acknowledged some, and when that was
	ackedAt int64
	goes    bool
	yields  bool
}

// NewTail makes one without successors.
func NewTail(port *signalport.Port, clock Clock, report func(code, detail string)) *Tail {
	return &Tail{port: port, clock: clock, report: report, pairs: map[EndSignal]*signalport.Predecessor{}}
}

// Yielding makes it the tail of a mover that never goes on at its rate beyond its booked end, whatever its successors would grant.
func (t *Tail) Yielding() *Tail {
	t.yields = true
	return t
}

// Update takes the orders at the beginning and whenever they change.
func (t *Tail) Update(o *Orders) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.orders, t.plan, t.nextAt = o, schedule.New(o.Segments), 0
	if t.freed && t.cause == signal.Paused && !o.Paused {
		t.freed = false // it has the link again, says the broker; successors that have started will say so
		t.drop(func(EndSignal) bool { return true })
	}
	wanted := map[EndSignal]bool{}
	for _, e := range o.EndSignals {
		wanted[e] = true
		if e.Kind == OnDirect && t.pairs[e] == nil && !t.freed && !o.Paused {
			t.pairs[e] = t.port.Precede(signal.PredecessorConfig{
				Pair: signal.Pair{Predecessor: o.Transfer, Successor: e.Successor.Transfer}, Nonce: nonce(),
				Timeout: e.Timeout, Margin: stopping + e.Timeout/driftFactor,
			}, key(e.Successor.Key), e.Successor.Address)
		}
	}
	t.drop(func(e EndSignal) bool { return !wanted[e] })
	if !t.freed {
		t.tell(schedule.Forever)
	}
}

// drop forgets pairs. A GO that is not answered yet goes on. t.mu is held.
func (t *Tail) drop(unwanted func(EndSignal) bool) {
	for e, pair := range t.pairs {
		if unwanted(e) {
			if !t.freed {
				pair.Leave()
			}
			delete(t.pairs, e)
		}
	}
}

// tell gives the pairs the booked end, and when the transfer expects to be done, in the host's monotonic time. t.mu is held.
func (t *Tail) tell(expected int64) {
	if t.plan.Empty() {
		return
	}
	local := t.port.Now() - t.clock.Now()
	for _, pair := range t.pairs {
		pair.Plan(t.plan.End()+local, min(expected, schedule.Forever)+local)
	}
}

// Look takes how far the transfer is: bytes that are not written yet, and how many the peer's kernel has acknowledged.
func (t *Tail) Look(now, missing, acked int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now < t.nextAt || len(t.pairs) == 0 || t.freed {
		return
	}
	t.nextAt = now + lookEvery
	if acked != t.acked || t.ackedAt == 0 {
		t.acked, t.ackedAt = acked, now
	}
	expected := t.plan.End()
	if rate := t.plan.RateAt(now); rate > 0 {
		expected = now + schedule.Duration(rate, missing)
	}
	t.tell(expected)
	if t.goes && now >= t.plan.End()-nearTheEnd && now-t.ackedAt < stalledFor {
		for _, pair := range t.pairs {
			pair.Extend(t.port.Now() + extendBy)
		}
	}
}

// Wait holds the link on behalf of a predecessor that has not let go of it: the transfer's own successors must not start
// while that is late, whatever their policy.
func (t *Tail) Wait() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, pair := range t.pairs {
		pair.Extend(t.port.Now() + extendBy)
	}
}

// GoesOn says whether the transfer may go on at its last rate beyond its booked end: every successor is told to wait for it,
// and has just said that it does. Before the end it is a forecast; from the end on, the first no is final, and
// frees the link: the caller has its fallback rate from then on.
func (t *Tail) GoesOn(now int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	end := t.plan.End()
	if t.plan.Empty() || len(t.orders.EndSignals) == 0 || t.freed || now < end-nearTheEnd {
		return false
	}
	was := t.goes
	t.goes = t.leased() && now-t.ackedAt < stalledFor
	switch {
	case now < end:
	case t.goes && !t.overran:
		t.overran = true
		t.report(codeOverrun, "not done at its booked end: goes on at its rate while its successors wait")
	case !t.goes:
		if was {
			t.report(codeLeaseLost, fmt.Sprintf("%.1f ms after its booked end: goes on at its fallback rate", float64(now-end)/1000))
		} else if !t.overran {
			t.overran = true
			t.report(codeOverrun, "not done at its booked end: goes on at its fallback rate")
		}
		drain := int64(0) // the schedule had its step down at the booked end
		if was {
			drain = stopping
		}
		t.free(drain, signal.Overrun)
	}
	return t.goes
}

// leased says that every successor waits, for now. t.mu is held.
func (t *Tail) leased() bool {
	if !t.mayDelay() {
		return false
	}
	now := t.port.Now()
	for _, e := range t.orders.EndSignals {
		pair := t.pairs[e]
		if pair == nil || now >= pair.Look().LeaseUntil {
			return false
		}
	}
	return true
}

// mayDelay says that by policy every successor waits for a predecessor that is late. t.mu is held.
func (t *Tail) mayDelay() bool {
	if t.yields || t.orders == nil || len(t.orders.EndSignals) == 0 || t.freed {
		return false
	}
	for _, e := range t.orders.EndSignals {
		if e.Kind != OnDirect || !e.Delay {
			return false
		}
	}
	return true
}

// Absorbs says that missing so many bytes at the booked end is for the successors to wait for, not for the broker to book
// anew.
func (t *Tail) Absorbs(lacking int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mayDelay() && !t.plan.Empty() && schedule.Duration(t.plan.RateAt(t.plan.End()-1), lacking) <= maxAbsorb
}

// Release tells every successor that the link is free, not before so many microseconds from now. The first cause stays.
func (t *Tail) Release(after int64, cause signal.Cause) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free(after, cause)
}

// free is Release. t.mu is held.
func (t *Tail) free(after int64, cause signal.Cause) {
	if t.freed || t.orders == nil {
		return
	}
	t.freed, t.cause, t.goes = true, cause, false
	for e, pair := range t.pairs {
		trip := "not measured"
		if seen := pair.Look(); seen.RoundTrip > 0 {
			trip = fmt.Sprintf("%.1f ms", float64(seen.RoundTrip)/1000)
		}
		pair.Release(t.port.Now()+after, cause)
		t.report(codeGoSent, fmt.Sprintf("%s; to successor %s at %s, round trip %s", cause, e.Successor.Transfer, e.Successor.Host, trip))
	}
}

// Leave falls silent: successors find out by their timeouts. A GO that is not answered yet goes on.
func (t *Tail) Leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(func(EndSignal) bool { return true })
}
