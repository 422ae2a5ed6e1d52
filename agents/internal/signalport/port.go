// SPDX-License-Identifier: Apache-2.0

// Package signalport carries start signals between agents: one UDP socket on the agent's data address, with the same port
// number as its TCP listener, on which every pair's state machine (package signal) sends and is found by its two transfer
// ids. Pairs whose two senders are on this host meet in memory. Without the socket everything else still works: nothing is
// heard, so that successors go by the broker's word or by their timeouts.
package signalport

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"bandwidthbroker/agents/internal/signal"
)

// Port is the agent's end of all its pairs. It is safe for concurrent use.
type Port struct {
	socket *net.UDPConn // nil: err says why
	err    error
	log    *slog.Logger
	since  time.Time
	closed atomic.Bool

	mu   sync.Mutex
	ends map[role]end

	stranger Stranger

	counters counters
	warned   atomic.Int64 // local µs of the last warning of forged datagrams
}

type counters struct {
	sent, received, forged, malformed, unknown, unsent atomic.Int64
}

// Statistics count datagrams since the start.
type Statistics struct {
	Sent      int64 `json:"sent"`
	Received  int64 `json:"received"`  // believed
	Forged    int64 `json:"forged"`    // for a pair of ours, by a sender without its key, or changed on the way
	Malformed int64 `json:"malformed"` // no start signal at all
	Unknown   int64 `json:"unknown"`   // of a pair that we have no part in, or no more
	Unsent    int64 `json:"unsent"`    // could not be sent
}

// role finds the end of a pair: both may be on one host.
type role struct {
	signal.Pair
	predecessor bool
}

// end is one side of one pair.
type end interface {
	key() signal.Key
	deliver(f signal.Frame, from netip.AddrPort)
}

// Stranger may register a pair that is not known, before its first datagram is looked at: for measurements alone.
type Stranger func(p *Port, pair signal.Pair, from string)

// Open binds the socket to an address, "host:port" with a port that is not 0. It always returns a Port; Err says what is
// wrong with it.
func Open(address string, log *slog.Logger) *Port { return OpenFor(address, log, nil) }

// OpenFor is Open for a caller that also takes pairs that it has not been told of.
func OpenFor(address string, log *slog.Logger, stranger Stranger) *Port {
	p := Mute(log)
	p.stranger = stranger
	local, err := net.ResolveUDPAddr("udp", address)
	if err == nil {
		p.socket, err = net.ListenUDP("udp", local)
	}
	p.err = err
	if err != nil {
		log.Error("start signals cannot be received or sent directly: successors wait for the broker's word or their timeouts", "error", err)
		return p
	}
	go p.read()
	return p
}

// Mute is a Port without a socket.
func Mute(log *slog.Logger) *Port {
	return &Port{log: log, since: time.Now(), ends: map[role]end{}, err: errMute}
}

var errMute = errors.New("no socket was asked for")

// Err is why there is no socket; nil when there is one.
func (p *Port) Err() error { return p.err }

// Close ends all pairs in silence: the other side of each finds out by its timeout.
func (p *Port) Close() {
	p.closed.Store(true)
	if p.socket != nil {
		_ = p.socket.Close()
	}
}

// Now is this host's monotonic time in µs, in which the pairs are told their instants.
func (p *Port) Now() int64 { return time.Since(p.since).Microseconds() }

// Statistics are the counts so far.
func (p *Port) Statistics() Statistics {
	c := &p.counters
	return Statistics{
		Sent: c.sent.Load(), Received: c.received.Load(), Forged: c.forged.Load(), Malformed: c.malformed.Load(),
		Unknown: c.unknown.Load(), Unsent: c.unsent.Load(),
	}
}

const (
	// maxPerMilli bounds how many datagrams are looked at, so that a flood costs a few percent of a core: beyond it
	// the kernel's queue overflows, and what is lost of our own is said again.
	maxPerMilli  = 40
	burst        = 1_000
	receiveQueue = 256 << 10
)

// read takes datagrams as they come.
func (p *Port) read() {
	_ = p.socket.SetReadBuffer(receiveQueue)
	buf := make([]byte, signal.MaxFrame+1)
	allowance := bucket{perMilli: maxPerMilli, size: burst, left: burst}
	for {
		n, from, err := p.socket.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // an ICMP error of something that was sent before
			continue
		}
		if wait := allowance.take(p.Now()); wait > 0 {
			time.Sleep(time.Duration(wait) * time.Microsecond)
		}
		p.take(buf[:n], from)
	}
}

// take finds out whether a datagram is to be believed, and hands it on. A sender that cannot prove itself gets no answer.
func (p *Port) take(datagram []byte, from netip.AddrPort) {
	sealed, err := signal.Parse(datagram)
	if err != nil {
		p.counters.malformed.Add(1)
		return
	}
	to := p.find(role{sealed.Pair(), !sealed.FromPredecessor()})
	if to == nil && p.stranger != nil && sealed.FromPredecessor() {
		p.stranger(p, sealed.Pair(), from.String())
		to = p.find(role{sealed.Pair(), false})
	}
	if to == nil {
		p.counters.unknown.Add(1)
		return
	}
	frame, genuine := sealed.Open(to.key())
	if !genuine {
		p.forged(sealed.Pair(), from)
		return
	}
	p.counters.received.Add(1)
	to.deliver(frame, from)
}

// forged counts, and warns now and then.
func (p *Port) forged(pair signal.Pair, from netip.AddrPort) {
	const warnEvery = 10_000_000 // µs
	n := p.counters.forged.Add(1)
	now, last := p.Now(), p.warned.Load()
	if n == 1 || now-last >= warnEvery {
		p.warned.Store(now)
		p.log.Warn("a start signal that does not hold the pair's key was ignored", "predecessor", pair.Predecessor, "successor", pair.Successor,
			"from", from, "forged_so_far", n)
	}
}

func (p *Port) find(r role) end {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ends[r]
}

// register puts an end in its place; one that was there before has lost it.
func (p *Port) register(r role, e end) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ends[r] = e
}

// forget removes an end unless another has taken its place.
func (p *Port) forget(r role, e end) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ends[r] == e {
		delete(p.ends, r)
	}
}

// post sends a frame: in memory when the other end is here too, else as a datagram.
func (p *Port) post(f signal.Frame, key signal.Key, to netip.AddrPort) {
	if p.closed.Load() {
		return
	}
	toPredecessor := f.Kind == signal.Held || f.Kind == signal.Started
	if other := p.find(role{f.Pair, toPredecessor}); other != nil && other.key() == key {
		go other.deliver(f, netip.AddrPort{})
		return
	}
	if p.socket == nil || !to.IsValid() {
		p.counters.unsent.Add(1)
		return
	}
	var room [signal.MaxFrame]byte
	if _, err := p.socket.WriteToUDPAddrPort(f.Append(room[:0], key), to); err != nil {
		p.counters.unsent.Add(1)
		p.log.Debug("start signal not sent", "kind", f.Kind, "to", to, "error", err)
		return
	}
	p.counters.sent.Add(1)
}

// bucket is a token bucket; time is an argument.
type bucket struct {
	perMilli, size, left int64
	at                   int64 // µs
}

// take takes one token and returns how long to wait for it, in µs.
func (b *bucket) take(now int64) int64 {
	gained := (now - b.at) * b.perMilli / 1000
	if gained > 0 {
		b.left, b.at = min(b.size, b.left+gained), now
	}
	b.left--
	if b.left >= 0 {
		return 0
	}
	return -b.left*1000/b.perMilli + 1
}
