// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"crypto/rand"
	"fmt"
	"slices"
	"sync"

	"bandwidthbroker/agents/internal/failure"
	"bandwidthbroker/agents/internal/schedule"
	"bandwidthbroker/agents/internal/signal"
	"bandwidthbroker/agents/internal/signalport"
)

// SignalKind is on what a transfer with a predecessor starts (RR-6205, section 2.2).
type SignalKind string

// Kinds of start signals, as the API calls them.
const (
	OnClock  SignalKind = "clock"  // its booked time
	OnDirect SignalKind = "direct" // a handshake between the two senders
	OnBroker SignalKind = "broker" // the broker's word
)

// SignalPeer is the sender at the other end of a start signal.
type SignalPeer struct {
	Transfer, Host, Address string
	Key                     string // raw bytes; a string so that Orders compare
}

// StartAfter is what a successor's sender waits for. The zero value: nothing.
type StartAfter struct {
	Predecessor SignalPeer
	Kind        SignalKind
	EarlyFrom   int64 // broker µs: from then on a signal may start it before its first segment; schedule.Forever: never
	Timeout     int64 // µs
	Cancel      bool  // without a signal it fails; otherwise it starts
	Released    bool  // the predecessor has ended, says the broker
}

// Signal codes of reports of kind `signal`.
const (
	codeGoReceived = "go_received"
	codeReleased   = "released"
	codeTimeout    = "timeout"
	codeGoSent     = "go_sent"
	codeOverrun    = "overrun"
	codeLeaseLost  = "lease_lost"
)

// Pass is what a gate says of a transfer. Passes compare.
type Pass struct {
	Open    bool  // it may send
	Advance int64 // µs by which its schedule is carried out earlier
}

// Gate holds a transfer back until its predecessor has ended. It serves every kind of sender, not only this package's: a
// wrapped mover makes one with NewGate, tells it of new orders with Update, asks it with Pass before it lets bytes out (and
// builds its schedule as Schedule(orders, pass) whenever the pass differs from the last one), and calls Leave at the end. changed
// is called, from any goroutine and without blocking, when it is worth asking again. It is safe for concurrent use.
type Gate struct {
	port    *signalport.Port
	clock   Clock
	changed func()
	report  func(code, detail string)

	mu      sync.Mutex
	after   StartAfter // the pair that waiting is about
	plan    schedule.Schedule
	booked  []schedule.Segment // plan is made of
	started bool               // an earlier run has begun to send
	waiting *signalport.Successor
	open    bool
	advance int64
	lost    *failure.Failure
}

// NewGate makes the gate of one transfer. started says that an earlier run has sent already: it does not wait again.
func NewGate(port *signalport.Port, clock Clock, started bool, changed func(), report func(code, detail string)) *Gate {
	return &Gate{port: port, clock: clock, started: started, changed: changed, report: report}
}

// Update takes the orders at the beginning and whenever they change.
func (g *Gate) Update(o *Orders) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !slices.Equal(g.booked, o.Segments) || g.plan.Empty() {
		g.booked, g.plan = o.Segments, schedule.New(o.Segments)
		g.advance = 0 // a new plan begins when the broker means it to
	}
	after := o.StartAfter
	samePair := after.Predecessor == g.after.Predecessor && after.Kind == g.after.Kind && after.Timeout == g.after.Timeout
	g.after = after
	if !samePair && g.waiting != nil {
		g.waiting.Leave()
		g.waiting = nil
	}
	if after.Kind == "" || after.Kind == OnClock || g.open {
		return
	}
	if g.waiting == nil {
		pair := signal.Pair{Predecessor: after.Predecessor.Transfer, Successor: o.Transfer}
		g.waiting = g.port.Succeed(signal.SuccessorConfig{Pair: pair, Nonce: nonce(), Timeout: after.Timeout}, key(after.Predecessor.Key), g.changed)
	}
	g.tell()
	if g.started {
		g.waiting.Skip()
	}
	if after.Released {
		g.waiting.Release()
	}
}

// tell gives the pair the booked instants in the host's monotonic time, in which it counts: broker time may be corrected.
func (g *Gate) tell() {
	local := g.port.Now() - g.clock.Now()
	begin, early := signal.Never, signal.Never
	if !g.plan.Empty() {
		begin = g.plan.Begin() + local
	}
	if g.after.EarlyFrom != schedule.Forever {
		early = g.after.EarlyFrom + local
	}
	g.waiting.Plan(begin, early)
}

// Pass returns whether the transfer may send at an instant of broker time, and by what schedule.
func (g *Gate) Pass(now int64) Pass {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open || g.after.Kind == "" || g.after.Kind == OnClock {
		return Pass{true, g.advance}
	}
	if g.waiting == nil || g.lost != nil {
		return Pass{}
	}
	g.tell()
	seen := g.waiting.Look()
	if seen.Verdict == signal.Waiting {
		return Pass{}
	}
	g.decide(now, seen)
	return Pass{g.open, g.advance}
}

// decide acts on a verdict. g.mu is held.
func (g *Gate) decide(now int64, seen signalport.Waiting) {
	begin := g.plan.Begin()
	when := fmt.Sprintf("%.1f ms after its booked begin", float64(now-begin)/1000)
	if now < begin {
		when = fmt.Sprintf("%.1f ms before its booked begin", float64(begin-now)/1000)
	}
	if g.plan.Empty() {
		when = "nothing is booked now"
	}
	before := fmt.Sprintf("predecessor %s at %s", g.after.Predecessor.Transfer, g.after.Predecessor.Host)
	switch {
	case seen.Verdict == signal.TimedOut && g.after.Cancel:
		g.lost = failure.New(failure.SignalLost, "%s was not heard for %.3f s", before, float64(g.after.Timeout)/1e6)
		g.report(codeTimeout, before+": cancelled, "+when)
		return
	case seen.Verdict == signal.TimedOut:
		g.report(codeTimeout, before+" was not heard: started "+when)
	case g.started: // said in an earlier run
	case seen.Verdict == signal.Signalled:
		g.report(codeGoReceived, fmt.Sprintf("%s: %s; started %s", before, seen.Cause, when))
	default:
		g.report(codeReleased, before+" has ended, says the broker; started "+when)
	}
	g.open = true
	// A successor that was told that the link is free need not keep clear of its begin by the error of the clock.
	if may := now >= min(begin, g.after.EarlyFrom); may && seen.Verdict != signal.TimedOut && !g.started {
		g.advance = max(0, begin+g.clock.Guard()-now)
	}
}

// Lost is why the transfer must not start at all; nil while it may.
func (g *Gate) Lost() *failure.Failure {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lost
}

// Expected is the earliest instant of broker time at which the transfer may begin to send, as far as that is known;
// schedule.Forever when nothing is booked.
func (g *Gate) Expected() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.plan.Empty() {
		return schedule.Forever
	}
	begin := g.plan.Begin()
	if g.waiting == nil || g.open || g.after.EarlyFrom == schedule.Forever {
		return begin
	}
	seen := g.waiting.Look()
	if seen.Expected == signal.Never {
		return begin
	}
	return min(begin, max(seen.Expected+g.clock.Now()-g.port.Now(), g.after.EarlyFrom))
}

// Leave ends the waiting.
func (g *Gate) Leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting != nil {
		g.waiting.Leave()
		g.waiting = nil
	}
}

// Schedule is by what a transfer sends under its orders and a pass, without what comes after its end.
func Schedule(o *Orders, p Pass) schedule.Schedule {
	return schedule.New(o.Segments).Advanced(p.Advance)
}

func nonce() (n signal.Nonce) {
	_, _ = rand.Read(n[:]) // does not fail
	return n
}

func key(raw string) (k signal.Key) {
	copy(k[:], raw)
	return k
}
