// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"sync"
	"time"

	"bandwidthbroker/agents/internal/brokerapi"
	"bandwidthbroker/agents/internal/failure"
	"bandwidthbroker/agents/internal/mover"
	"bandwidthbroker/agents/internal/signal"
	"bandwidthbroker/agents/internal/signalport"
)

const (
	// pausing is how long a command may send on after its transfer was paused: a turn of its supervisor, and what waits in the kernel.
	pausing int64 = 60_000 // µs
	// holdEvery is how often successors are told to wait for a predecessor of ours; a lease is 100 ms.
	holdEvery = 25 * time.Millisecond
	nearEnd   = 10 * time.Millisecond
	farEnd    = 100 * time.Millisecond
	endIsNear = 1_000_000 // µs
)

// turn is the place of a wrapped transfer in its chain: on what it starts, and whom it tells that the link is free (RR-6205, section 2.2).
// A command cannot be held to an agreement made after its booked end, so it never goes on at its rate while successors wait: it goes on at
// the fallback rate, and they begin. Its owner's lock guards all of it but changed and over.
type turn struct {
	clock   mover.Clock
	gate    *mover.Gate
	tail    *mover.Tail
	orders  *mover.Orders
	pass    mover.Pass
	changed chan struct{} // it is worth looking again
	over    chan struct{}
	leaving sync.Once
}

// newTurn makes the turn of one transfer. began: its command has run before, and does not wait.
func newTurn(port *signalport.Port, clock mover.Clock, began bool, report func(code, detail string)) *turn {
	t := &turn{clock: clock, changed: make(chan struct{}, 1), over: make(chan struct{})}
	t.gate = mover.NewGate(port, clock, began, func() { poke(t.changed) }, report)
	t.tail = mover.NewTail(port, clock, report).Yielding()
	return t
}

// update takes new orders.
func (t *turn) update(o *mover.Orders) {
	t.orders = o
	t.gate.Update(o)
	t.tail.Update(o)
	t.pass = t.gate.Pass(t.clock.Now())
	if o.Paused {
		t.release(pausing, signal.Paused)
	}
	poke(t.changed)
}

// look decides what time and signals decide, when so many bytes are acknowledged: whether it may start, or never shall (lost), and when to
// look again unless something changes.
func (t *turn) look(acked int64) (lost *failure.Failure, again time.Duration) {
	now := t.clock.Now()
	t.pass = t.gate.Pass(now)
	if lost := t.gate.Lost(); lost != nil {
		return lost, time.Hour
	}
	switch {
	case len(t.orders.EndSignals) == 0 || t.orders.Paused:
		return nil, time.Hour
	case !t.pass.Open:
		t.tail.Wait()
		return nil, holdEvery
	}
	t.tail.Look(now, max(0, t.orders.Volume-acked), acked)
	t.tail.GoesOn(now)
	if end := mover.Schedule(t.orders, mover.Pass{}).End(); now < end-endIsNear {
		return nil, farEnd
	}
	return nil, nearEnd
}

// release frees the link after so many µs. A transfer that never had it says nothing: it may still be its predecessor's.
func (t *turn) release(after int64, cause signal.Cause) {
	if !t.pass.Open && t.gate.Lost() == nil {
		t.tail.Leave()
		return
	}
	t.tail.Release(after, cause)
}

// leave ends the waiting on both sides. A GO that is not answered yet goes on.
func (t *turn) leave() {
	t.leaving.Do(func() {
		close(t.over)
		t.gate.Leave()
		t.tail.Leave()
	})
}

// causeOf is what successors hear of a transfer that has ended.
func causeOf(outcome brokerapi.AgentReportKind) signal.Cause {
	if outcome == brokerapi.Failed {
		return signal.Failed
	}
	return signal.Done
}
