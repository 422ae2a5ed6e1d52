// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"io"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"bandwidthbroker/agents/internal/failure"
	"bandwidthbroker/agents/internal/schedule"
	"bandwidthbroker/agents/internal/signal"
	"bandwidthbroker/agents/internal/signalport"
)

// brokerTime is the bubble's time, a second wrong until somebody sets it right.
type brokerTime struct{ ahead int64 }

const guard int64 = 1_000

func (b *brokerTime) Now() int64   { return time.Now().UnixMicro() + b.ahead }
func (b *brokerTime) Guard() int64 { return guard }

// said collects what a gate or a tail reports.
type said struct{ codes []string }

func (s *said) report(code, _ string) { s.codes = append(s.codes, code) }

func (s *said) want(t *testing.T, codes ...string) {
	t.Helper()
	if !slices.Equal(s.codes, codes) {
		t.Errorf("reports %v, want %v", s.codes, codes)
	}
}

// bed is a pair of transfers of one host, on virtual time: datagrams go through memory.
type bed struct {
	t     *testing.T
	clock *brokerTime
	port  *signalport.Port
	heard said // of the gate
	told  said // of the tail
	gate  *Gate
	tail  *Tail
	first Orders
	next  Orders
}

const second int64 = 1_000_000

// newBed books the first from 1 s to 3 s and the next from 3 s to 4 s, as seen from now.
func newBed(t *testing.T) *bed {
	b := &bed{t: t, clock: &brokerTime{}, port: signalport.Mute(slog.New(slog.NewTextHandler(io.Discard, nil)))}
	now := b.clock.Now()
	peer := func(id string) SignalPeer {
		return SignalPeer{Transfer: id, Host: "h", Address: "192.0.2.1:1", Key: "k"}
	}
	b.first = Orders{
		Transfer: "tr_1", Send: true, Volume: 2_000_000, Segments: []schedule.Segment{{Begin: now + second, End: now + 3*second, RateBps: 8_000_000}},
		EndSignals: []EndSignal{{Successor: peer("tr_2"), Kind: OnDirect, Timeout: 200_000, Delay: true}},
	}
	b.next = Orders{
		Transfer: "tr_2", Send: true, Volume: 1_000_000, Segments: []schedule.Segment{{Begin: now + 3*second, End: now + 4*second, RateBps: 8_000_000}},
		StartAfter: StartAfter{Predecessor: peer("tr_1"), Kind: OnDirect, EarlyFrom: now + second, Timeout: 200_000},
	}
	b.gate = NewGate(b.port, b.clock, false, func() {}, b.heard.report)
	b.tail = NewTail(b.port, b.clock, b.told.report)
	return b
}

func (b *bed) begin() {
	b.gate.Update(&b.next)
	b.tail.Update(&b.first)
}

// run lets a sender look at its tail every 10 ms, with everything acknowledged as it goes and so many bytes missing at the end.
func (b *bed) run(d time.Duration, missing int64) {
	for range int64(d / (10 * time.Millisecond)) {
		time.Sleep(10 * time.Millisecond)
		now := b.clock.Now()
		b.tail.Look(now, missing, now)
		b.tail.GoesOn(now)
	}
}

func (b *bed) pass() Pass {
	synctest.Wait()
	return b.gate.Pass(b.clock.Now())
}

func TestAnEarlySignalMovesTheScheduleOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.begin()
		b.run(2*time.Second, 0)
		if p := b.pass(); p.Open {
			t.Fatalf("%+v before the signal", p)
		}
		b.tail.Release(0, signal.Done)
		time.Sleep(time.Millisecond)
		pass := b.pass()
		now := b.clock.Now()
		early := b.next.Segments[0].Begin - now
		if !pass.Open || pass.Advance != early+guard {
			t.Fatalf("%+v, %d early", pass, early)
		}
		if got := Schedule(&b.next, pass).Guarded(guard).Begin(); got != now {
			t.Errorf("sends from %d, the signal came at %d", got, now)
		}
		// The same plan in new words changes nothing; a new one is the broker's, and begins when that says.
		b.next.StartAfter.Released = true
		b.gate.Update(&b.next)
		if again := b.pass(); again != pass {
			t.Errorf("%+v after the same plan", again)
		}
		b.next.Segments = []schedule.Segment{{Begin: now - 20_000, End: now + second, RateBps: 8_000_000}}
		b.next.Revision++
		b.gate.Update(&b.next)
		if moved := b.pass(); moved != (Pass{Open: true}) {
			t.Errorf("%+v under a plan that begins already", moved)
		}
		b.heard.want(t, codeGoReceived)
		b.told.want(t, codeGoSent)
	})
}

func TestASignalBeforeThereIsRoomWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.next.StartAfter.EarlyFrom = schedule.Forever
		b.begin()
		b.run(500*time.Millisecond, 0)
		b.tail.Release(0, signal.Failed)
		b.run(2400*time.Millisecond, 0)
		if p := b.pass(); p.Open {
			t.Errorf("%+v 100 ms before its begin", p)
		}
		time.Sleep(101 * time.Millisecond)
		if p := b.pass(); !p.Open || p.Advance > guard {
			t.Errorf("%+v at its begin", p)
		}
	})
}

func TestWithoutASignalItGoesByPolicy(t *testing.T) {
	for _, cancel := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := newBed(t)
			b.next.StartAfter.Cancel = cancel
			b.gate.Update(&b.next) // nobody holds
			time.Sleep(3199 * time.Millisecond)
			if p := b.pass(); p.Open {
				t.Fatalf("%+v before the timeout", p)
			}
			time.Sleep(2 * time.Millisecond)
			p, lost := b.pass(), b.gate.Lost()
			if p.Open == cancel || (lost != nil) != cancel || p.Advance != 0 {
				t.Errorf("cancel %v: %+v, %v", cancel, p, lost)
			}
			if cancel && lost.Code != failure.SignalLost {
				t.Error(lost)
			}
			b.heard.want(t, codeTimeout)
		})
	}
}

func TestAStepOfTheClockEndsNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.begin()
		b.run(2900*time.Millisecond, 500_000)
		b.clock.ahead = 600_000 // now the end is over, by half a second, for both
		b.run(500*time.Millisecond, 500_000)
		if p := b.pass(); p.Open {
			t.Errorf("%+v while the first goes on", p)
		}
		if !b.tail.GoesOn(b.clock.Now()) {
			t.Error("the lease is lost")
		}
	})
}

func TestALateFirstGoesOnWhileTheNextWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.begin()
		b.run(3500*time.Millisecond, 100_000)
		if p := b.pass(); p.Open || !b.tail.GoesOn(b.clock.Now()) {
			t.Fatalf("%+v half a second late", p)
		}
		if !b.tail.Absorbs(100_000) || b.tail.Absorbs(100_000_000) {
			t.Error("what is little for the successors to wait for, and what is much, are not told apart")
		}
		b.tail.Release(0, signal.Done)
		time.Sleep(time.Millisecond)
		if p := b.pass(); !p.Open || p.Advance != 0 {
			t.Errorf("%+v after the signal", p)
		}
		b.told.want(t, codeOverrun, codeGoSent)
	})
}

// A sender that gets nothing acknowledged does not use the link, whatever it says.
func TestAStalledFirstLosesTheLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.begin()
		b.run(3100*time.Millisecond, 100_000)
		for range 100 {
			time.Sleep(10 * time.Millisecond)
			b.tail.Look(b.clock.Now(), 100_000, 7)
			b.tail.GoesOn(b.clock.Now())
		}
		if p := b.pass(); !p.Open {
			t.Errorf("%+v: still held up", p)
		}
		b.told.want(t, codeOverrun, codeLeaseLost, codeGoSent)
	})
}

func TestWhoMayNotGoOnFreesTheLinkAtTheBookedEnd(t *testing.T) {
	t.Run("by policy", func(t *testing.T) {
		freesTheLink(t, func(b *bed) { b.first.EndSignals[0].Delay = false })
	})
	t.Run("by its nature", func(t *testing.T) {
		freesTheLink(t, func(b *bed) { b.tail.Yielding() })
	})
}

func freesTheLink(t *testing.T, yield func(b *bed)) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		yield(b)
		b.begin()
		b.run(3010*time.Millisecond, 100_000)
		if b.tail.GoesOn(b.clock.Now()) || b.tail.Absorbs(1) {
			t.Error("goes on beyond its end")
		}
		if p := b.pass(); !p.Open {
			t.Errorf("%+v", p)
		}
		b.told.want(t, codeOverrun, codeGoSent)
	})
}

// In a chain, a transfer that waits for a late predecessor keeps its own successor waiting, even beyond its own booked end.
func TestWhoWaitsHoldsTheLinkForThoseBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.begin()
		third := b.next
		third.Transfer, third.StartAfter.Predecessor.Transfer = "tr_3", "tr_2"
		third.Segments = []schedule.Segment{{Begin: b.next.Segments[0].End, End: b.next.Segments[0].End + second, RateBps: 8_000_000}}
		middle := b.next
		middle.EndSignals = []EndSignal{{Successor: SignalPeer{Transfer: "tr_3", Key: "k"}, Kind: OnDirect, Timeout: 200_000}}
		var nothing said
		between := NewTail(b.port, b.clock, nothing.report)
		between.Update(&middle)
		last := NewGate(b.port, b.clock, false, func() {}, nothing.report)
		last.Update(&third)
		for range 250 { // until a second after the end of the middle one
			between.Wait()
			b.run(20*time.Millisecond, 100_000)
		}
		synctest.Wait()
		if p := last.Pass(b.clock.Now()); p.Open {
			t.Errorf("%+v: the last began while the first was on the link", p)
		}
	})
}

func TestKindsThatDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.next.StartAfter.Kind = OnClock
		b.gate.Update(&b.next)
		if p := b.pass(); p != (Pass{Open: true}) {
			t.Errorf("clock: %+v", p)
		}
		started := NewGate(b.port, b.clock, true, func() {}, b.heard.report)
		b.next.StartAfter.Kind = OnDirect
		started.Update(&b.next)
		synctest.Wait()
		if p := started.Pass(b.clock.Now()); p != (Pass{Open: true}) {
			t.Errorf("one that has started before: %+v", p)
		}
		b.heard.want(t)
	})
}

func TestTheBrokersWordOpensTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.next.StartAfter.Kind, b.next.StartAfter.Timeout = OnBroker, 5_000_000
		b.gate.Update(&b.next)
		time.Sleep(2 * time.Second)
		if p := b.pass(); p.Open {
			t.Fatalf("%+v", p)
		}
		b.next.StartAfter.Released = true
		b.gate.Update(&b.next)
		if p := b.pass(); !p.Open || p.Advance != second+guard {
			t.Errorf("%+v", p)
		}
		b.heard.want(t, codeReleased)
	})
}

func TestExpectedFollowsThePredecessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.begin()
		if got := b.gate.Expected(); got != b.next.Segments[0].Begin {
			t.Errorf("%d", got)
		}
		b.run(1500*time.Millisecond, 500_000) // at 8 Mbit/s half a second
		synctest.Wait()
		if off := b.gate.Expected() - (b.clock.Now() + 500_000); off < -100_000 || off > 100_000 {
			t.Errorf("%d us from the truth", off)
		}
	})
}
