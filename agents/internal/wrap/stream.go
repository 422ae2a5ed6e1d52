// SPDX-License-Identifier: Apache-2.0

package wrap

import (
	"errors"

	"golang.org/x/sys/unix"

	"bandwidthbroker/agents/internal/flows"
	"bandwidthbroker/agents/internal/pacing"
)

const (
	// fresh is how long a connection may take until what it sends says what it wants.
	fresh int64 = 150_000 // µs
	// drainFor is how long what the command left to be sent may make no progress.
	drainFor int64 = 20_000_000 // µs
	// quiet is after how long without a byte a connection that outlives the command is left to it.
	quiet int64 = 2_000_000 // µs
	// missed is how many scans in a row must not find a socket before it counts as closed: it may be on its way from one
	// process to another.
	missed = 2
	// smoothing is the time over which rates are averaged.
	smoothing int64 = 150_000 // µs
)

// stream is one connection of the command, held by a duplicate.
type stream struct {
	socket *flows.Socket
	holder flows.Descriptor // where the command has it open
	found  int64            // broker time at which we got it
	base   flows.Counts     // what it had sent before the command began
	counts flows.Counts
	at     int64 // of the counts
	rate   int64 // bit/s, averaged
	cap    int64 // asked of the kernel
	moved  int64 // when a byte was sent or acknowledged last
	spoke  int64 // when its first byte was seen; 0: none yet
	quiet  silence
	held   bool // by the network or the other end, not by us

	listens bool
	lost    int  // scans in a row that did not find it
	closed  bool // by the command; what is left is being sent
}

// look asks the kernel; over says that the connection has ended and the counts are final.
func (s *stream) look(now int64) (over bool) {
	counts, err := s.socket.Counts()
	if err != nil {
		return true
	}
	if counts.State == flows.Listen {
		s.listens = true
		return false
	}
	if span := now - s.at; span > 0 {
		recent := (counts.Sent - s.counts.Sent) * 8_000_000 / span
		weight := min(span, smoothing)
		s.rate += (recent - s.rate) * weight / smoothing
	}
	if counts.Sent != s.counts.Sent || counts.Acked != s.counts.Acked {
		s.moved = now
	}
	if s.spoke == 0 && counts.Sent > s.base.Sent {
		s.spoke = now
	}
	s.held = counts.Full || counts.Closed > s.counts.Closed
	s.counts, s.at = counts, now
	if !s.closed {
		return false
	}
	switch counts.State {
	case flows.Established, flows.SynSent, flows.SynReceived, flows.FinWait1, flows.CloseWait, flows.LastAck, flows.Closing:
		return now-s.moved > drainFor
	}
	return true
}

// shut does what the command meant by closing its last descriptor; over says that nothing is left to be sent.
func (s *stream) shut(now int64) (over bool) {
	s.closed, s.moved = true, now
	err := s.socket.Shut()
	return errors.Is(err, unix.ECONNABORTED) || errors.Is(err, unix.ENOTCONN)
}

// opening says that the first packets, which leave at once, are still to be made up for.
func (s *stream) opening(now int64) bool { return s.spoke == 0 || now-s.spoke < pacing.Opening }

// segment is the payload of a full packet; known only after the connection is made.
func (s *stream) segment() int64 { return max(s.counts.Segment, 1448) }

func (s *stream) sent() int64  { return s.counts.Sent - s.base.Sent }
func (s *stream) acked() int64 { return s.counts.Acked - s.base.Acked }

func (s *stream) demand(now int64) pacing.Stream {
	return pacing.Stream{RateBps: s.rate, Hungry: now-s.found < fresh || (s.counts.Unsent > 0 && !s.held)}
}
