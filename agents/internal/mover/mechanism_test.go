// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"log/slog"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bandwidthbroker/agents/internal/failure"
	"bandwidthbroker/agents/internal/mechanism"
	"bandwidthbroker/agents/internal/pacing"
	"bandwidthbroker/agents/internal/schedule"
)

func (p *pair) senderBy(host Mechanisms) *Sender {
	o := p.orders
	o.Send = true
	s := StartSender(SenderOptions{
		Clock: wallClock{}, Folder: p.serving, Outbox: p.sent, Log: slog.New(slog.DiscardHandler), PeerTimeout: 5 * time.Second, Mechanisms: host,
	}, o)
	p.t.Cleanup(func() { s.Stop(false) })
	return s
}

func everything() *mechanism.Host {
	return mechanism.Known.Probe([]mechanism.Name{mechanism.Pacing}, mechanism.Means{})
}

// By every mechanism the file arrives, at no instant more of it than was booked until then.
func TestEveryMechanismStaysWithinTheBooking(t *testing.T) {
	for _, r := range everything().Reports() {
		name := r.Name
		if !r.Available {
			t.Logf("NOT SHOWN by %s: %s", name, r.Reason)
			continue
		}
		t.Run(string(name), func(t *testing.T) {
			t.Parallel()
			p := newPair(t, 6_000_000)
			begin := time.Now().UnixMicro() + 150_000
			p.orders.Mechanism = name
			p.orders.Segments = []schedule.Segment{
				{Begin: begin, End: begin + 400_000, RateBps: 40_000_000}, {Begin: begin + 500_000, End: begin + 60_000_000, RateBps: 80_000_000},
			}
			plan := schedule.New(p.orders.Segments)
			r := p.receiver()
			p.senderBy(everything())
			over := make(chan struct{})
			go func() { p.sent.wait(t, "sent"); close(over) }()
			for looking := true; looking; {
				select {
				case <-over:
					looking = false
				case <-time.After(20 * time.Millisecond):
				}
				got := r.Progress().Bytes
				now := time.Now().UnixMicro()
				// Catching up lends from the past, never from the future, but for what the sender's queue may be ahead.
				if most := plan.Bytes(0, now+3_000) + 64<<10; got > most {
					t.Fatalf("%d bytes %d ms after the begin, booked are %d", got, (now-begin)/1000, most)
				}
			}
			p.same()
		})
	}
}

// counted counts the limiters that were made and those that were closed.
type counted struct {
	*mechanism.Host
	made, closed atomic.Int32
}

type countedLimiter struct {
	pacing.Limiter
	closed *atomic.Int32
}

func (c *counted) Own(name mechanism.Name, transfer string) (pacing.Limiter, error) {
	l, err := c.Host.Own(name, transfer)
	c.made.Add(1)
	return countedLimiter{l, &c.closed}, err
}

func (l countedLimiter) Close() error {
	l.closed.Add(1)
	return l.Limiter.Close()
}

// first notes the rate that a connection was attached with.
type first struct {
	*mechanism.Host
	rate atomic.Int64
}

type firstLimiter struct {
	pacing.Limiter
	asked int64
	rate  *atomic.Int64
}

func (f *first) Own(name mechanism.Name, transfer string) (pacing.Limiter, error) {
	l, err := f.Host.Own(name, transfer)
	return &firstLimiter{Limiter: l, rate: &f.rate}, err
}

func (l *firstLimiter) SetRate(rateBps int64) (int64, error) {
	l.asked = rateBps
	return l.Limiter.SetRate(rateBps)
}

func (l *firstLimiter) Attach(s pacing.Socket) error {
	l.rate.Store(l.asked)
	return l.Limiter.Attach(s)
}

// A connection that was ever held to a lower rate sends its first packets by that one.
func TestAConnectionIsHeldToItsFirstRateBeforeAnythingIsSent(t *testing.T) {
	p := newPair(t, 1_000_000)
	begin := time.Now().UnixMicro() + 300_000
	p.orders.Segments = []schedule.Segment{
		{Begin: begin, End: begin + 100_000, RateBps: 24_000_000}, {Begin: begin + 100_000, End: begin + 60_000_000, RateBps: 40_000_000},
	}
	p.receiver()
	host := &first{Host: everything()}
	p.senderBy(host)
	p.sent.wait(t, "sent")
	if got := host.rate.Load(); got != 24_000_000 {
		t.Errorf("attached at %d bit/s", got)
	}
}

// New orders with another mechanism: the connection stays, and what held it before lets go.
func TestAChangeOfMechanism(t *testing.T) {
	p := newPair(t, 20_000_000)
	p.orders.Segments[0].RateBps = 40_000_000
	p.receiver()
	host := &counted{Host: everything()}
	s := p.senderBy(host)
	var connection *link
	o := p.orders
	o.Send = true
	for i, name := range []mechanism.Name{"", mechanism.Userland, mechanism.Window, mechanism.Pacing} {
		o.Mechanism = name
		o.Revision++
		update := o
		s.Update(update)
		paced := name == "" || name == mechanism.Pacing
		before := s.Progress().Bytes
		for deadline := time.Now().Add(8 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("step %d, %q: it does not go on by it", i, name)
			}
			l := s.live.Load()
			if l == nil {
				continue
			}
			if connection == nil {
				connection = l
			}
			if l != connection {
				t.Fatalf("step %d, %q: a new connection", i, name)
			}
			if pacedAt(l) == paced && s.Progress().Bytes > before {
				break
			}
		}
	}
	o.Segments = []schedule.Segment{{Begin: o.Segments[0].Begin, End: o.Segments[0].End, RateBps: 1_000_000_000}}
	o.Revision++
	s.Update(o)
	p.sent.wait(t, "sent")
	p.same()
	s.Stop(false)
	if made, closed := host.made.Load(), host.closed.Load(); made != 4 || closed != made {
		t.Errorf("%d limiters were made, %d closed", made, closed)
	}
}

// pacedAt says whether the kernel holds a connection to a rate.
func pacedAt(l *link) (paced bool) {
	_ = l.tcp.Control(func(fd uintptr) {
		held, err := unix.GetsockoptUint64(int(fd), unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE)
		paced = err == nil && held != math.MaxUint64
	})
	return paced
}

// A mechanism that one more row adds carries a file.
func TestAMechanismIsOneRow(t *testing.T) {
	var used atomic.Int32
	row := mechanism.Mechanism{
		Name: "slow", Probe: func(mechanism.Means) error { return nil },
		Own:         func(mechanism.Means, string) pacing.Limiter { used.Add(1); return mechanism.NewPacing() },
		LookaheadUs: 10_000,
	}
	p := newPair(t, 500_000)
	p.orders.Mechanism = "slow"
	p.receiver()
	p.senderBy(mechanism.Table{row}.Probe([]mechanism.Name{"slow"}, mechanism.Means{}))
	p.sent.wait(t, "sent")
	p.same()
	if used.Load() != 1 {
		t.Errorf("%d limiters of it were made", used.Load())
	}
}

func TestAMechanismThatTheHostLacks(t *testing.T) {
	for name, host := range map[string]Mechanisms{"probed": everything(), "nothing known": nil} {
		p := newPair(t, 1000)
		p.orders.Mechanism = mechanism.HTB
		p.receiver()
		p.senderBy(host)
		p.sent.wait(t, "failed "+failure.MechanismUnavailable)
		if t.Failed() {
			t.Log(name)
		}
	}
}
