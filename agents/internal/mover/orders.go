// SPDX-License-Identifier: Apache-2.0

// Package mover moves files between agents: a Sender follows a booked schedule over one paced connection, a Receiver
// puts the file safely on disk. Both outlive broken connections; what they know of each other they learn from the data
// channel, never from the broker.
package mover

import (
	"slices"
	"sync/atomic"
	"time"

	"bandwidthbroker/agents/internal/brokerapi"
	"bandwidthbroker/agents/internal/mechanism"
	"bandwidthbroker/agents/internal/schedule"
)

// Orders is one side of one transfer as the broker wants it. Orders are immutable: a change is a new value.
type Orders struct {
	Transfer  string
	Send      bool // otherwise receive
	Wrapped   bool // a command moves the data: its supervisor follows the orders, no sender of ours
	Match     Match
	Path      string
	Volume    int64
	Overwrite bool
	Unchecked bool   // nothing is hashed
	Key       string // raw bytes; a string so that Orders compare
	Peer      Peer

	Revision int64 // of the plan
	Segments []schedule.Segment
	Fallback int64 // bit/s after the plan's end; 0 stops
	Paused   bool

	Mechanism mechanism.Name // "": what this host prefers

	StartAfter StartAfter  // of a sender with a predecessor
	EndSignals []EndSignal // of a sender with successors
}

// Peer is where the other agent listens.
type Peer struct {
	Host, Address, Fingerprint string
}

// SameTransfer says that only the plan may differ: the transfer can go on under the new orders.
func (o Orders) SameTransfer(p Orders) bool {
	return o.Transfer == p.Transfer && o.Send == p.Send && o.Wrapped == p.Wrapped && o.Observed() == p.Observed() && o.Path == p.Path &&
		(o.Volume == p.Volume || o.Wrapped || o.Observed()) && // a file has a size, a command an estimate
		o.Overwrite == p.Overwrite && o.Unchecked == p.Unchecked && o.Key == p.Key
}

// Equal says that nothing differs at all.
func (o Orders) Equal(p Orders) bool {
	return o.SameTransfer(p) && o.Volume == p.Volume && o.Peer == p.Peer && o.Revision == p.Revision && o.Fallback == p.Fallback &&
		o.Paused == p.Paused && o.Match == p.Match && o.Mechanism == p.Mechanism && slices.Equal(o.Segments, p.Segments) &&
		o.StartAfter == p.StartAfter && slices.Equal(o.EndSignals, p.EndSignals)
}

// Facts are what a report says beside its kind.
type Facts struct {
	Bytes                  int64
	RateBps, AppliedBps    int64 // measured, and asked of the kernel; 0 where it does not matter
	Checksum, Code, Detail string
}

// Outbox is where a transfer's events go and what is remembered of it across restarts. Report returns when the event is
// safely on disk.
type Outbox interface {
	Report(kind brokerapi.AgentReportKind, f Facts) error
	StartOnce() bool
	ShortfallOnce(revision int64) bool
	End(outcome brokerapi.AgentReportKind) error
}

// Clock is broker time.
type Clock interface {
	Now() int64   // µs
	Guard() int64 // µs by which schedules are narrowed
}

// Progress is what a running transfer shows of itself.
type Progress struct {
	Bytes      int64 // acknowledged by the peer (sender), received (receiver)
	AppliedBps int64 // what the kernel was told last
	Connected  bool
}

// gauges are the numbers behind Progress, written by the connection and read by reports.
type gauges struct {
	bytes, safe, applied atomic.Int64
	written              atomic.Int64 // by the sender, to the kernel
	connected            atomic.Bool
}

func (g *gauges) progress() Progress {
	return Progress{g.bytes.Load(), g.applied.Load(), g.connected.Load()}
}

const (
	handshakeTimeout = 10 * time.Second
	// heartbeat is how often a receiver speaks at least; silence of several of them means it is gone.
	heartbeat     = 5 * time.Second
	peerSilence   = 20 * time.Second
	progressEvery = 200 * time.Millisecond
	// chunkSize is one read of the file and at most one write to the socket.
	chunkSize = 256 << 10
	// buffers per connection: one being filled, one being hashed, one being sent.
	buffers = 3
)
