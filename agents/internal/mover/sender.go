// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"bandwidthbroker/agents/internal/brokerapi"
	"bandwidthbroker/agents/internal/mechanism"
	"bandwidthbroker/agents/internal/served"
	"bandwidthbroker/agents/internal/signal"
	"bandwidthbroker/agents/internal/signalport"
)

const (
	// connectAhead is how long before the first booked instant the connection is opened.
	connectAhead int64 = 2_000_000 // µs
	firstRetry         = 250 * time.Millisecond
	lastRetry          = 5 * time.Second
)

// Sender brings one file to its receiver.
type Sender struct {
	clock       Clock
	folder      *served.Folder
	outbox      Outbox
	log         *slog.Logger
	peerTimeout time.Duration
	mechanisms  Mechanisms
	gauges      gauges
	marks       marks
	ended       chan struct{}
	cancel      context.CancelFunc

	gate  *Gate          // what it starts on
	tail  *Tail          // whom it tells that it has ended
	aside sync.WaitGroup // reports of signals, written beside the sending: fsync is slow

	orders  atomic.Pointer[Orders]
	changed chan struct{} // wakes the sender after new orders

	alive atomic.Int64         // broker time since when silence of the peer counts
	first fs.FileInfo          // the file as it was when this run began to send it
	live  atomic.Pointer[link] // the connection, while there is one

	hashes bool // the receiver has a file to compare with, although the transfer is not verified
}

// SenderOptions are what a sender needs beside its orders.
type SenderOptions struct {
	Clock       Clock
	Folder      *served.Folder
	Outbox      Outbox
	Log         *slog.Logger
	PeerTimeout time.Duration
	Mechanisms  Mechanisms       // nil: those that need a socket alone
	Signals     *signalport.Port // nil: none
	Started     bool             // an earlier run has begun to send
}

// StartSender begins to carry out orders.
func StartSender(opt SenderOptions, o Orders) *Sender {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Sender{
		clock: opt.Clock, folder: opt.Folder, outbox: opt.Outbox, peerTimeout: opt.PeerTimeout,
		log:   opt.Log.With("transfer", o.Transfer, "role", "send"),
		ended: make(chan struct{}), cancel: cancel, changed: make(chan struct{}, 1), mechanisms: opt.Mechanisms,
	}
	if s.mechanisms == nil {
		s.mechanisms = mechanism.Known.Probe([]mechanism.Name{mechanism.Pacing}, mechanism.Means{})
	}
	if opt.Signals == nil {
		opt.Signals = signalport.Mute(s.log)
	}
	s.gate = NewGate(opt.Signals, opt.Clock, opt.Started, s.wake, s.signalled)
	s.tail = NewTail(opt.Signals, opt.Clock, s.signalled)
	s.marks.off = o.Unchecked
	s.follow(&o)
	go func() {
		defer close(s.ended)
		var holding sync.WaitGroup
		defer holding.Wait()
		ctx, over := context.WithCancel(ctx)
		defer over()
		holding.Go(func() { s.hold(ctx) })
		s.run(ctx)
	}()
	return s
}

// follow takes orders.
func (s *Sender) follow(o *Orders) {
	s.orders.Store(o)
	s.sawLife()
	s.gate.Update(o)
	s.tail.Update(o)
	if o.Paused && s.live.Load() == nil {
		s.release(signal.Paused)
	}
}

// wake makes the sender look at its orders and its gate again.
func (s *Sender) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Update changes the plan of a running transfer.
func (s *Sender) Update(o Orders) {
	s.follow(&o)
	s.wake()
}

// Stop ends the transfer here. Nothing needs to be removed on a sender. Successors of a transfer that is over learn that the
// link is free; one that goes on later, after a restart of the agent, has not let go of it.
func (s *Sender) Stop(over bool) {
	s.cancel()
	<-s.ended
	if over {
		s.release(signal.Cancelled)
	}
	s.gate.Leave()
	s.tail.Leave()
	s.aside.Wait()
}

// release frees the link as soon as what the kernel may still hold of a connection has left. A transfer that never had the link says
// nothing: it may still be its predecessor's.
func (s *Sender) release(cause signal.Cause) {
	if !s.gate.Pass(s.clock.Now()).Open && s.gate.Lost() == nil {
		s.tail.Leave()
		return
	}
	s.tail.Release(stopping, cause)
}

// hold keeps the link for a predecessor that is late, as long as this transfer waits for it.
func (s *Sender) hold(ctx context.Context) {
	const often = 25 * time.Millisecond
	for {
		pause := time.Second
		if o := s.currentOrders(); len(o.EndSignals) > 0 && !o.Paused && !s.gate.Pass(s.clock.Now()).Open {
			s.tail.Wait()
			pause = often
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// signalled reports an event of a start signal.
func (s *Sender) signalled(code, detail string) {
	s.log.Info("signal", "code", code, "detail", detail)
	bytes := s.gauges.bytes.Load()
	s.aside.Go(func() { s.report(brokerapi.Signal, Facts{Bytes: bytes, Code: code, Detail: detail}) })
}

// Progress shows how far the receiver has confirmed.
func (s *Sender) Progress() Progress { return s.gauges.progress() }

// Trace is how far the peer's kernel has acknowledged, and the rate asked of ours; ok is false without a connection.
func (s *Sender) Trace() (acked, appliedBps int64, ok bool) {
	l := s.live.Load()
	if l == nil {
		return 0, 0, false
	}
	written := s.gauges.written.Load()
	inFlight, err := l.tcp.InFlight()
	return max(l.resume, written-inFlight), s.gauges.applied.Load(), err == nil
}

func (s *Sender) currentOrders() *Orders { return s.orders.Load() }

// run tries until the file is over, or cannot be brought.
func (s *Sender) run(ctx context.Context) {
	retry := firstRetry
	for s.due(ctx) {
		before := s.gauges.bytes.Load()
		digest, err := s.attempt(ctx)
		s.gauges.connected.Store(false)
		s.gauges.applied.Store(0)
		if err == nil {
			s.finish(digest)
			return
		}
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errPostponed) {
			s.log.Info("the transfer was postponed, disconnected until it begins")
			continue
		}
		if final := s.final(err); final != nil {
			s.fail(final)
			return
		}
		s.tail.GoesOn(s.clock.Now()) // without a connection nothing is acknowledged, and a lease is soon over
		if s.gauges.bytes.Load() != before {
			retry = firstRetry
		}
		pause := retry/2 + rand.N(retry)
		s.log.Warn("attempt failed, trying again", "error", err, "in", pause.Round(time.Millisecond))
		retry = min(2*retry, lastRetry)
		select {
		case <-time.After(pause):
		case <-s.changed: // the peer may have moved
			retry = firstRetry
		case <-ctx.Done():
			return
		}
	}
}

// due waits until there is something to send soon.
func (s *Sender) due(ctx context.Context) bool {
	for {
		o, now := s.currentOrders(), s.clock.Now()
		wait := time.Hour
		pass := s.gate.Pass(now)
		if lost := s.gate.Lost(); lost != nil {
			s.fail(lost)
			return false
		}
		if next, ok := Schedule(o, pass).Then(o.Fallback).NextActive(now); ok && !o.Paused {
			next = min(next, s.gate.Expected())
			if next-connectAhead <= now {
				return true
			}
			wait = min(wait, time.Duration(min(next-connectAhead-now, int64(time.Hour/time.Microsecond)))*time.Microsecond)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-s.changed:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
}

func (s *Sender) sawLife() { s.alive.Store(s.clock.Now()) }
