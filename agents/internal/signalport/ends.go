// SPDX-License-Identifier: Apache-2.0

package signalport

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"bandwidthbroker/agents/internal/signal"
)

// resolveAgain is how often a name that could not be resolved is asked for again.
const resolveAgain = 2 * time.Second

// address finds out where the other sender is, without making anybody wait.
type address struct {
	mu    sync.Mutex
	known netip.AddrPort
}

func (a *address) get() netip.AddrPort {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.known
}

func (a *address) set(to netip.AddrPort) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known = to
}

// resolve asks for a host name until it is known or no longer wanted.
func (a *address) resolve(hostPort string, over func() bool) {
	if at, err := netip.ParseAddrPort(hostPort); err == nil {
		a.set(at)
		return
	}
	go func() {
		for !over() {
			if found, err := net.ResolveUDPAddr("udp", hostPort); err == nil {
				a.set(found.AddrPort())
				return
			}
			time.Sleep(resolveAgain)
		}
	}()
}

// Predecessor is the side that has the link, as it runs.
type Predecessor struct {
	port   *Port
	role   role
	secret signal.Key
	peer   address

	mu      sync.Mutex
	machine *signal.Predecessor
	timer   *time.Timer
	left    bool
}

// Precede begins to hold a pair's link, once Plan has said when. peer is the data address of the successor's sender.
func (p *Port) Precede(cfg signal.PredecessorConfig, key signal.Key, peer string) *Predecessor {
	e := &Predecessor{port: p, role: role{cfg.Pair, true}, secret: key, machine: signal.NewPredecessor(cfg)}
	e.timer = time.AfterFunc(time.Hour, e.wake)
	p.register(e.role, e)
	e.peer.resolve(peer, e.over)
	return e
}

func (e *Predecessor) key() signal.Key { return e.secret }

func (e *Predecessor) over() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	over, _ := e.machine.Over()
	return over || e.left
}

// Plan says when the booking ends and when the transfer expects to be done, in local µs.
func (e *Predecessor) Plan(end, expected int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.machine.Plan(end, expected)
	e.advance()
}

// Extend holds the link beyond the booked end, up to a local instant.
func (e *Predecessor) Extend(until int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.machine.Extend(until)
	e.advance()
}

// Release frees the link, at a local instant. The GO is repeated until it is answered, also after the transfer is gone.
func (e *Predecessor) Release(at int64, cause signal.Cause) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.machine.Release(e.port.Now(), at, cause)
	e.advance()
}

// Leave falls silent, as a crash would.
func (e *Predecessor) Leave() {
	e.mu.Lock()
	e.left = true
	e.timer.Stop()
	e.mu.Unlock()
	e.port.forget(e.role, e)
}

// Holding is what a predecessor knows of its pair.
type Holding struct {
	LeaseUntil int64 // local µs; 0 without one
	RoundTrip  int64 // µs; 0 while not measured
	ReleasedAt int64 // local µs of the first GO; 0 before
	Over       bool  // nothing more will be sent
	Answered   bool  // the successor said STARTED
}

// Look returns what is known now.
func (e *Predecessor) Look() Holding {
	e.mu.Lock()
	defer e.mu.Unlock()
	h := Holding{LeaseUntil: e.machine.LeaseUntil(), RoundTrip: e.machine.RoundTrip()}
	h.ReleasedAt, _ = e.machine.Released()
	h.Over, h.Answered = e.machine.Over()
	return h
}

func (e *Predecessor) wake() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.advance()
}

// advance lets the machine do what is due. e.mu is held.
func (e *Predecessor) advance() {
	if e.left {
		return
	}
	now := e.port.Now()
	frames, wakeAt := e.machine.Advance(now)
	e.send(frames)
	if over, _ := e.machine.Over(); over {
		e.timer.Stop()
		e.port.forget(e.role, e)
		return
	}
	e.timer.Reset(until(now, wakeAt))
}

func (e *Predecessor) send(frames []signal.Frame) {
	for _, f := range frames {
		e.port.post(f, e.secret, e.peer.get())
	}
}

func (e *Predecessor) deliver(f signal.Frame, from netip.AddrPort) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.left {
		return
	}
	if from.IsValid() && e.peer.get() != from {
		e.peer.set(from) // it proved itself: this is where it is
	}
	e.send(e.machine.Receive(e.port.Now(), f))
	e.advance()
}

// Successor is the side that waits for the link, as it runs.
type Successor struct {
	port    *Port
	role    role
	secret  signal.Key
	decided func()

	mu      sync.Mutex
	machine *signal.Successor
	timer   *time.Timer
	told    bool
	left    bool
	known   int64 // when the predecessor expects to be done; used to tell of news once
}

// Succeed begins to wait; decided is called once there is a verdict, and when it becomes known how long it will take.
func (p *Port) Succeed(cfg signal.SuccessorConfig, key signal.Key, decided func()) *Successor {
	e := &Successor{
		port: p, role: role{cfg.Pair, false}, secret: key, decided: decided, machine: signal.NewSuccessor(cfg, p.Now()), known: signal.Never,
	}
	e.timer = time.AfterFunc(time.Hour, e.wake)
	p.register(e.role, e)
	return e
}

func (e *Successor) key() signal.Key { return e.secret }

// Plan says when the booking begins, and from when on a signal may start it before that; in local µs.
func (e *Successor) Plan(begin, early int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.machine.Plan(begin, early)
	e.advance()
}

// Release takes the broker's word that the predecessor has ended.
func (e *Successor) Release() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.machine.Release(e.port.Now())
	e.advance()
}

// Skip ends the waiting: an earlier run has started already.
func (e *Successor) Skip() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.machine.Skip(e.port.Now())
	e.advance()
}

// Waiting is what a successor knows of its pair.
type Waiting struct {
	Verdict  signal.Verdict
	At       int64 // local µs of the verdict
	Cause    signal.Cause
	Expected int64 // local µs at which the predecessor expects to be done; signal.Never while unknown
}

// Look returns what is known now.
func (e *Successor) Look() Waiting {
	e.mu.Lock()
	defer e.mu.Unlock()
	var w Waiting
	w.Verdict, w.At, w.Cause = e.machine.Verdict()
	w.Expected = e.machine.Expected()
	return w
}

// linger is how long a successor that is gone still says STARTED to a predecessor that repeats its GO.
const linger = 5 * time.Second

// Leave stops to wait. A predecessor that still asks is answered for some time.
func (e *Successor) Leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.left {
		return
	}
	e.left = true
	e.timer.Stop()
	e.machine.Skip(e.port.Now())
	time.AfterFunc(linger, func() { e.port.forget(e.role, e) })
}

func (e *Successor) wake() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.advance()
}

// advance lets the machine do what is due. e.mu is held.
func (e *Successor) advance() {
	if e.left {
		return
	}
	now := e.port.Now()
	e.timer.Reset(until(now, e.machine.Advance(now)))
	verdict, _, _ := e.machine.Verdict()
	news := verdict != signal.Waiting && !e.told
	e.told = e.told || news
	if expected := e.machine.Expected(); e.known == signal.Never && expected != signal.Never {
		e.known, news = expected, true
	}
	if news {
		e.decided()
	}
}

func (e *Successor) deliver(f signal.Frame, from netip.AddrPort) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, answer := range e.machine.Receive(e.port.Now(), f) {
		e.port.post(answer, e.secret, from)
	}
	e.advance()
}

// until is how long to sleep, at most long enough to look again.
func until(now, wakeAt int64) time.Duration {
	const most = int64(time.Hour / time.Microsecond)
	if wakeAt == signal.Never {
		return time.Hour
	}
	return time.Duration(max(0, min(wakeAt-now, most))) * time.Microsecond
}
