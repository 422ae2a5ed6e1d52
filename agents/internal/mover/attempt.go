// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"bandwidthbroker/agents/internal/datachannel"
	"bandwidthbroker/agents/internal/failure"
	"bandwidthbroker/agents/internal/schedule"
	"bandwidthbroker/agents/internal/signal"
)

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
		if said := (datachannel.Error{}); errors.As(err, &said) && said.Code == datachannel.ChecksumWanted {
			s.hashes = true
		}
		return none, err
	}
	defer func() { l.end(errStopped) }()
	stop := context.AfterFunc(ctx, func() { l.end(context.Canceled) })
	defer stop()
	s.gauges.bytes.Store(l.resume)
	s.gauges.safe.Store(l.resume)
	s.gauges.connected.Store(true)
	go l.listen(&s.gauges, s.sawLife)

	m := &s.marks
	if s.hashes && l.resume == o.Volume {
		m = &marks{} // the receiver compares, whether the transfer is verified or not
	}
	src := readAhead(file, s.first, l.resume, m)
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
	if s.gate.Pass(s.clock.Now()).Open { // else it had nothing to send, and the link is not its own to free
		s.drain(l, carried, signal.Done)
	}
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
