// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"context"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"bandwidthbroker/agents/internal/brokerapi"
	"bandwidthbroker/agents/internal/datachannel"
	"bandwidthbroker/agents/internal/failure"
	"bandwidthbroker/agents/internal/schedule"
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
	book        Book
	log         *slog.Logger
	peerTimeout time.Duration
	mechanisms  Mechanisms
	gauges      gauges
	marks       marks
	ended       chan struct{}
	cancel      context.CancelFunc

	gate  *Gate          // what it starts on
	tail  *Tail          // whom it tells that it has ended
	aside sync.WaitGroup // reports of signals: nobody waits for their fsync

	orders  atomic.Pointer[Orders]
	changed chan struct{} // wakes the sender after new orders

	alive atomic.Int64         // broker time since when silence of the peer counts
	first fs.FileInfo          // the file as it was when this run began to send it
	live  atomic.Pointer[link] // the connection, while there is one
}

// SenderOptions are what a sender needs beside its orders.
type SenderOptions struct {
	Clock       Clock
	Folder      *served.Folder
	Book        Book
	Log         *slog.Logger
	PeerTimeout time.Duration
	Mechanisms  Mechanisms       // nil: pacing alone
	Signals     *signalport.Port // nil: none
	Started     bool             // an earlier run has begun to send
}

// StartSender begins to carry out orders.
func StartSender(opt SenderOptions, o Orders) *Sender {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Sender{
		clock: opt.Clock, folder: opt.Folder, book: opt.Book, peerTimeout: opt.PeerTimeout,
		log:   opt.Log.With("transfer", o.Transfer, "role", "send"),
		ended: make(chan struct{}), cancel: cancel, changed: make(chan struct{}, 1), mechanisms: opt.Mechanisms,
	}
	if s.mechanisms == nil {
		s.mechanisms = plain{}
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

// release frees the link as soon as what the kernel may still hold of a connection has left. Who never had the link says
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

// attempt is one connection, from opening the file to DONE.
func (s *Sender) attempt(ctx context.Context) (datachannel.Digest, error) {
	var none datachannel.Digest
	o := s.currentOrders()
	file, info, fail := s.folder.OpenSource(o.Path)
	if fail != nil {
		return none, fail
	}
	defer file.Close()
	if info.Size() != o.Volume {
		return none, failure.New(failure.FileSize, "%s has %d bytes, booked are %d", o.Path, info.Size(), o.Volume)
	}
	if s.first == nil {
		s.first = info
	}
	l, err := s.connect(ctx, o)
	if err != nil {
		return none, err
	}
	defer func() { l.end(errStopped) }()
	stop := context.AfterFunc(ctx, func() { l.end(context.Canceled) })
	defer stop()
	s.gauges.bytes.Store(l.resume)
	s.gauges.safe.Store(l.resume)
	s.gauges.connected.Store(true)
	go l.listen(&s.gauges, s.sawLife)

	src := readAhead(file, s.first, l.resume, &s.marks)
	defer src.close()
	s.gauges.written.Store(l.resume)
	s.live.Store(l)
	defer s.live.Store(nil)
	t := &transmission{Sender: s, link: l, src: src, offset: l.resume}
	defer t.letGo() // not before DONE: what waits in the kernel is still held
	defer t.aside.Wait()
	if err := t.run(ctx); err != nil {
		return none, l.reason(err)
	}
	end := datachannel.End{
		Volume: uint64(o.Volume), Digest: src.digest,
		MAC: datachannel.EndMAC(datachannel.Key(o.Key), l.hello, l.challenge, uint64(o.Volume), src.digest),
	}
	carried := l.tcp.Written()
	if err := l.write(end); err != nil {
		return none, l.reason(err)
	}
	s.drain(l, carried, signal.Done)
	<-l.gone
	select {
	case digest := <-l.done:
		if digest != src.digest {
			return none, failure.New(failure.ChecksumMismatch, "the receiver wrote %s, sent was %s", checksum(digest), checksum(src.digest))
		}
		return digest, nil
	default:
		return none, l.err
	}
}

// drain waits until the first so many bytes that were written are acknowledged by the peer's kernel, and frees the link then.
func (s *Sender) drain(l *link, bytes int64, cause signal.Cause) {
	begin := time.Now()
	for len(s.currentOrders().EndSignals) > 0 {
		inFlight, err := l.tcp.InFlight()
		if err == nil && l.tcp.Written()-inFlight >= bytes {
			s.tail.Release(0, cause)
			info, _ := l.tcp.Info()
			s.log.Debug("acknowledged", "after", time.Since(begin), "tcp", info)
			return
		}
		now := s.clock.Now()
		s.tail.Look(now, 0, s.gauges.written.Load()-inFlight)
		s.tail.GoesOn(now)
		nap := unix.NsecToTimespec(int64(drainPoll))
		_ = unix.Nanosleep(&nap, nil)
		select {
		case <-l.gone:
			return
		default:
		}
	}
}

// reason prefers what the receiver said to what the broken connection looked like from here.
func (l *link) reason(err error) error {
	if failure.Of(err) != nil {
		return err
	}
	select {
	case <-l.gone:
	case <-time.After(progressEvery): // its ERROR may still be on the way
	}
	select {
	case <-l.gone:
		if failure.Of(l.err) != nil {
			return l.err
		}
	default:
	}
	return err
}

// final turns an error into the end of the transfer, or nil while trying again makes sense.
func (s *Sender) final(err error) *failure.Failure {
	if f := failure.Of(err); f != nil {
		return f
	}
	o := s.currentOrders()
	since := s.alive.Load()
	// The peer owes an answer only while there is something to send.
	if planned, ok := schedule.New(o.Segments).Then(o.Fallback).NextActive(since); ok {
		since = planned
	}
	if silent := s.clock.Now() - since; o.Paused || silent < s.peerTimeout.Microseconds() {
		return nil
	}
	if errors.Is(err, errForged) {
		return failure.New(failure.Authentication, "%s: %v", o.Peer.Host, err)
	}
	return failure.New(failure.PeerUnreachable, "%s at %s: no progress for %s: %v", o.Peer.Host, o.Peer.Address, s.peerTimeout, err)
}

func (s *Sender) sawLife() { s.alive.Store(s.clock.Now()) }

func (s *Sender) finish(digest datachannel.Digest) {
	s.tail.Release(0, signal.Done)
	s.gauges.bytes.Store(s.currentOrders().Volume)
	o := s.currentOrders()
	s.log.Info("sent", "bytes", o.Volume, "checksum", o.checksum(digest))
	s.report(brokerapi.Sent, Facts{Bytes: o.Volume, Checksum: o.checksum(digest)})
	s.over(brokerapi.Sent)
}

func (s *Sender) fail(f *failure.Failure) {
	s.release(signal.Failed)
	s.log.Error("transfer failed", "code", f.Code, "detail", f.Detail)
	s.report(brokerapi.Failed, Facts{Bytes: s.gauges.safe.Load(), Code: f.Code, Detail: f.Detail})
	s.over(brokerapi.Failed)
}

func (s *Sender) over(outcome brokerapi.AgentReportKind) {
	if err := s.book.End(outcome); err != nil {
		s.log.Error("outcome not saved: a restart will try again", "error", err)
	}
}

func (s *Sender) report(kind brokerapi.AgentReportKind, f Facts) {
	if err := s.book.Report(kind, f); err != nil {
		s.log.Error("report not kept", "kind", kind, "error", err)
	}
}

// checksum is what the broker hears of a digest: nothing where nothing was hashed.
func (o *Orders) checksum(d datachannel.Digest) string {
	if o.Unchecked {
		return ""
	}
	return checksum(d)
}

func checksum(d datachannel.Digest) string { return "sha256:" + hex.EncodeToString(d[:]) }
