// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"bandwidthbroker/agents/internal/agentstate"
	"bandwidthbroker/agents/internal/datachannel"
	"bandwidthbroker/agents/internal/failure"
	"bandwidthbroker/agents/internal/served"
)

// session is one proven connection of a receiver's sender.
type session struct {
	*channel
	r                *Receiver
	hello, challenge datachannel.Nonce
	lowWater         int  // see wake.go
	flows            bool // see wake.go
	quit             chan struct{}
	over             chan struct{}
	once             sync.Once
}

func (s *session) end() {
	s.once.Do(func() {
		close(s.quit)
		_ = s.conn.Close()
	})
}

// serve takes a proven connection. It replaces an earlier one: the sender was restarted, or the network let it down
// in a way that this side has not seen yet.
func (r *Receiver) serve(c *channel, hello, challenge datachannel.Nonce) {
	s := &session{channel: c, r: r, hello: hello, challenge: challenge, quit: make(chan struct{}), over: make(chan struct{})}
	defer close(s.over)
	defer s.end()
	r.mu.Lock()
	earlier, stopped := r.session, r.stopped
	r.session = s
	r.mu.Unlock()
	if earlier != nil {
		earlier.end()
		<-earlier.over
	}
	<-r.ready
	if stopped {
		return
	}
	r.gauges.connected.Store(true)
	defer r.gauges.connected.Store(false)
	err := s.run()
	var fail *failure.Failure
	switch {
	case err == nil:
	case errors.As(err, &fail):
		if r.failed == nil {
			_ = s.write(datachannel.Error{Code: fail.Code, Detail: fail.Detail})
			r.fail(fail)
		}
	default:
		r.log.Warn("connection lost", "error", err, "safe_bytes", r.gauges.safe.Load())
	}
}

func (s *session) run() error {
	r := s.r
	if r.failed != nil {
		return s.write(datachannel.Error{Code: r.failed.Code, Detail: r.failed.Detail})
	}
	if r.done != nil {
		return s.confirm(*r.done)
	}
	o := r.orders.Load()
	in, fail := r.folder.Begin(o.Transfer, o.Path, o.Overwrite)
	if fail != nil && fail.Code == failure.DestinationExists && !o.Overwrite {
		if there, found := r.folder.Existing(o.Path, o.Volume); found {
			defer there.Close()
			return s.compare(o, there)
		}
	}
	if fail != nil {
		return fail
	}
	defer in.Close()
	offset := s.safeOffset(o, in)
	r.gauges.bytes.Store(offset)
	r.gauges.safe.Store(offset)
	if err := r.state.SaveJournal(o.Transfer, journal(o, offset)); err != nil {
		return served.WriteFailure("journal", err)
	}
	if fail := in.Reserve(o.Volume); fail != nil { // after the journal, which knows what to remove
		return fail
	}
	if err := s.write(datachannel.Resume{Offset: uint64(offset)}); err != nil {
		return err
	}
	r.log.Info("receiving", "resume_at", offset, "path", o.Path)
	go s.tell()
	out := startSink(in, offset, &r.marks, func(safe int64) {
		if err := r.state.SaveJournal(o.Transfer, journal(o, safe)); err == nil {
			r.gauges.safe.Store(safe)
		}
	})
	end, err := s.take(o, out, offset)
	if err != nil {
		close(out.stop)
		if failed := out.close(); failed != nil && !errors.Is(failed, errStopped) {
			return served.WriteFailure(o.Path, failed)
		}
		if safe := r.gauges.safe.Load(); safe < chunkSize { // not begun yet: the space is for the transfer that begins first
			in.GiveBack(safe)
		}
		return err
	}
	if err := out.close(); err != nil {
		return served.WriteFailure(o.Path, err)
	}
	digest := datachannel.Digest(out.hash.Sum(nil))
	if digest != end.Digest {
		return failure.New(failure.ChecksumMismatch, "%s: written %s, sent %s", o.Path, checksum(digest), checksum(end.Digest))
	}
	return s.commit(o, in, digest)
}

// commit gives the verified file its name, tells the broker, then the sender: in this order, so that whatever is
// lost on the way can be told again.
func (s *session) commit(o *Orders, in *served.Incoming, digest datachannel.Digest) error {
	r := s.r
	if err := in.File.Truncate(o.Volume); err != nil { // gives back what was reserved beyond the last block
		return served.WriteFailure(o.Path, err)
	}
	if err := in.File.Sync(); err != nil {
		return served.WriteFailure(o.Path, err)
	}
	j := journal(o, o.Volume)
	j.Digest = checksum(digest)
	if err := r.state.SaveJournal(o.Transfer, j); err != nil {
		// The file is whole and checked: it shall not fail for what only matters if this host crashes right now.
		r.log.Error("journal not saved: after a crash in this moment the transfer would fail although its file is there", "error", err)
	}
	if fail := in.Commit(o.Overwrite); fail != nil {
		if fail.Code == failure.DestinationExists {
			if there, same := s.yield(o, in, digest); same {
				defer there.Close()
				return s.accept(o, there, digest)
			}
		}
		return fail
	}
	r.done = &digest
	r.gauges.safe.Store(o.Volume)
	r.finish(digest)
	return s.write(datachannel.Done{Digest: digest})
}

// confirm tells a sender that missed it that the file is in place already.
func (s *session) confirm(digest datachannel.Digest) error {
	if err := s.write(datachannel.Resume{Offset: uint64(s.r.orders.Load().Volume)}); err != nil {
		return err
	}
	go s.tell()
	end, err := s.awaitEnd(s.r.orders.Load())
	if err != nil {
		return err
	}
	if s.r.orders.Load().Unchecked {
		digest = end.Digest // of nothing, or of the file where it was asked for: what the sender wants to hear again
	}
	return s.write(datachannel.Done{Digest: digest})
}

// awaitEnd is for a sender that has nothing to send.
func (s *session) awaitEnd(o *Orders) (datachannel.End, error) {
	body, err := s.read(datachannel.KindEnd)
	if err != nil {
		return datachannel.End{}, err
	}
	return s.parseEnd(o, body)
}

// safeOffset is what the journal and the partial file agree on.
func (s *session) safeOffset(o *Orders, in *served.Incoming) int64 {
	j, found := s.r.state.Journal(o.Transfer)
	info, err := in.File.Stat()
	if !found || err != nil || j.Partial != served.PartialPath(o.Transfer, o.Path) || j.Volume != o.Volume {
		return 0
	}
	return max(0, min(j.Safe, info.Size(), o.Volume))
}

func journal(o *Orders, safe int64) agentstate.Journal {
	return agentstate.Journal{Partial: served.PartialPath(o.Transfer, o.Path), Destination: o.Path, Volume: o.Volume, Safe: safe}
}

// take reads DATA until END.
func (s *session) take(o *Orders, out *sink, expected int64) (datachannel.End, error) {
	for {
		h, err := datachannel.ReadHeader(s.reader, s.scratch[:])
		if err != nil {
			return datachannel.End{}, err
		}
		switch h.Kind {
		case datachannel.KindData:
			expected, err = s.takeData(o, out, h.Length, expected)
			if err != nil {
				return datachannel.End{}, err
			}
		case datachannel.KindEnd, datachannel.KindError:
			body := s.scratch[:h.Length]
			if _, err := io.ReadFull(s.reader, body); err != nil {
				return datachannel.End{}, err
			}
			if h.Kind == datachannel.KindError {
				return datachannel.End{}, peerError(body)
			}
			s.acknowledge()
			if expected != o.Volume {
				return datachannel.End{}, fmt.Errorf("END after %d of %d bytes", expected, o.Volume)
			}
			return s.parseEnd(o, body)
		default:
			return datachannel.End{}, fmt.Errorf("message type %d from a sender", h.Kind)
		}
	}
}

func (s *session) takeData(o *Orders, out *sink, length uint32, expected int64) (int64, error) {
	if _, err := io.ReadFull(s.reader, s.scratch[:8]); err != nil {
		return 0, err
	}
	offset, left, err := datachannel.ParseData(s.scratch[:8], length)
	if err != nil {
		return 0, err
	}
	if offset != uint64(expected) || int64(left) > o.Volume-expected {
		return 0, fmt.Errorf("DATA of %d bytes at %d, expected at %d of %d", left, offset, expected, o.Volume)
	}
	defer s.sleepUntil(1)
	for left > 0 {
		var buf []byte
		select {
		case buf = <-out.free:
		case <-out.failed:
			return 0, errStopped
		case <-s.quit:
			return 0, errStopped
		}
		n, err := s.readMany(buf[:min(left, len(buf))], left)
		if n > 0 {
			out.pieces <- piece{buf, n, expected}
			expected += int64(n)
			left -= n
			s.r.gauges.bytes.Store(expected)
			if n <= single {
				s.acknowledge()
			}
		} else {
			out.free <- buf
		}
		if err != nil {
			return 0, err
		}
	}
	return expected, nil
}

func (s *session) parseEnd(o *Orders, body []byte) (datachannel.End, error) {
	end, err := datachannel.ParseEnd(body)
	if err != nil {
		return end, err
	}
	want := datachannel.EndMAC(datachannel.Key(o.Key), s.hello, s.challenge, end.Volume, end.Digest)
	if !end.MAC.Equal(want) || end.Volume != uint64(o.Volume) {
		return end, errForged
	}
	return end, nil
}

// tell sends PROGRESS while the session lasts: on news, and now and then without.
func (s *session) tell() {
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	var last datachannel.Progress
	spoke := time.Now()
	for {
		select {
		case <-ticker.C:
		case <-s.quit:
			return
		}
		news := datachannel.Progress{Received: uint64(s.r.gauges.bytes.Load()), Safe: uint64(s.r.gauges.safe.Load())}
		if news == last && time.Since(spoke) < heartbeat {
			continue
		}
		if s.write(news) != nil {
			s.end()
			return
		}
		last, spoke = news, time.Now()
	}
}
