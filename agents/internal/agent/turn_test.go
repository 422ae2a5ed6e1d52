// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bandwidthbroker/agents/internal/mover"
	"bandwidthbroker/agents/internal/schedule"
	"bandwidthbroker/agents/internal/signal"
	"bandwidthbroker/agents/internal/signalport"
)

type wall struct{}

func (wall) Now() int64   { return time.Now().UnixMicro() }
func (wall) Guard() int64 { return 1_000 }

// command is a wrapped transfer without its command: what it would do is done by the test.
type command struct {
	*turn
	mu    sync.Mutex
	acked int64
	began int64 // µs; 0: not yet
	codes []string
}

// chain makes wrapped transfers of one host, one second and a megabyte each, the first from 1 s on. Their turns are looked at as by
// wrapped.takeTurn, on virtual time.
func chain(t *testing.T, cancel bool, names ...string) []*command {
	port := signalport.Mute(slog.New(slog.NewTextHandler(io.Discard, nil)))
	begin := wall{}.Now() + 1_000_000
	peer := func(name string) mover.SignalPeer {
		return mover.SignalPeer{Transfer: name, Host: "h", Address: "192.0.2.1:1", Key: "k"}
	}
	var made []*command
	for i, name := range names {
		from := begin + int64(i)*1_000_000
		o := mover.Orders{
			Transfer: name, Send: true, Wrapped: true, Volume: 1_000_000,
			Segments: []schedule.Segment{{Begin: from, End: from + 1_000_000, RateBps: 8_000_000}},
		}
		if i > 0 {
			o.StartAfter = mover.StartAfter{
				Predecessor: peer(names[i-1]), Kind: mover.OnDirect, EarlyFrom: begin, Timeout: 200_000, Cancel: cancel,
			}
		}
		if i < len(names)-1 {
			o.EndSignals = []mover.EndSignal{{Successor: peer(names[i+1]), Kind: mover.OnDirect, Timeout: 200_000, Delay: true}}
		}
		c := &command{}
		c.turn = newTurn(port, wall{}, false, func(code, _ string) { c.codes = append(c.codes, code) })
		made = append(made, c)
		before := o
		before.EndSignals = nil // nobody knows yet that somebody will wait for it
		c.update(&before)
		go c.follow()
		synctest.Wait()
		c.mu.Lock()
		c.update(&o)
		c.mu.Unlock()
		t.Cleanup(c.leave)
	}
	return made
}

func (c *command) follow() {
	for {
		c.mu.Lock()
		_, again := c.look(c.acked)
		if c.pass.Open && c.began == 0 {
			c.began = max(c.clock.Now(), c.orders.Segments[0].Begin-c.pass.Advance)
		}
		c.mu.Unlock()
		select {
		case <-time.After(again):
		case <-c.changed:
		case <-c.over:
			return
		}
	}
}

// end is what wrapped does when its supervisor reports the end.
func (c *command) end(cause signal.Cause) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.release(0, cause)
}

func (c *command) start() int64 {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.began
}

func TestACommandThatEndsEarlyStartsTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := chain(t, true, "tr_1", "tr_2")
		first, next := made[0], made[1]
		time.Sleep(1500 * time.Millisecond)
		if next.start() != 0 {
			t.Fatal("began before the other had ended")
		}
		now := next.clock.Now()
		first.end(signal.Done)
		time.Sleep(time.Millisecond)
		if began := next.start(); began < now || began > now+1_000 {
			t.Errorf("began %d µs after the signal", began-now)
		}
	})
}

// What its successors would grant is no use to a command: nothing would slow it down when they take it back.
func TestACommandThatIsLateYieldsAtItsBookedEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := chain(t, true, "tr_1", "tr_2")
		first, next := made[0], made[1]
		time.Sleep(1990 * time.Millisecond)
		if next.start() != 0 {
			t.Fatal("began before the booked end")
		}
		time.Sleep(30 * time.Millisecond)
		if next.start() == 0 {
			t.Error("waits for a command that goes on at the fallback rate")
		}
		first.mu.Lock()
		defer first.mu.Unlock()
		if !slices.Equal(first.codes, []string{"overrun", "go_sent"}) {
			t.Error(first.codes)
		}
	})
}

// In a chain of three, a transfer that is cancelled while it waits must not say that the link is free: it was never its own.
func TestWhoNeverHadTheLinkDoesNotFreeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := chain(t, false, "tr_1", "tr_2", "tr_3")
		time.Sleep(1200 * time.Millisecond)
		made[1].end(signal.Cancelled)
		time.Sleep(300 * time.Millisecond)
		if made[2].start() != 0 {
			t.Error("began while the first still sends")
		}
	})
}

func TestWithoutASignalACommandIsCancelledByPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := chain(t, true, "tr_1", "tr_2")
		next := made[1]
		made[0].leave() // it falls silent
		time.Sleep(2190 * time.Millisecond)
		lost := func() bool {
			synctest.Wait()
			next.mu.Lock()
			defer next.mu.Unlock()
			found, _ := next.look(0)
			return found != nil
		}
		if lost() {
			t.Fatal("given up before its time-out")
		}
		time.Sleep(20 * time.Millisecond)
		if !lost() || next.start() != 0 {
			t.Error("neither heard nor given up")
		}
	})
}
