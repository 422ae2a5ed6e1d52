// SPDX-License-Identifier: Apache-2.0

package signal

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// stopping is how long a host sends on at most after its lease has ended: a busy sender, and what its kernel holds.
const stopping = 20_000

// world is two senders and a network between them, on virtual time. Everything that can go wrong is drawn from one seed.
// Times are true time in µs; each host's monotonic clock runs a little wrong, and what it takes for the booked instants is
// wrong by up to guard.
type world struct {
	rng     *rand.Rand
	now     int64
	pair    Pair
	timeout int64
	margin  int64
	guard   int64
	delay   int64 // one way, at most
	loss    float64
	copies  float64
	dead    bool // no datagram arrives at all
	wire    []inFlight
	old     []inFlight // everything ever sent, for whoever records and replays
	replays float64

	end, begin int64 // booked, true time
	early      int64

	p      *Predecessor
	pClock drift
	pEnd   int64 // by its own clock
	done   bool  // all bytes are acknowledged
	stops  int64 // true time at which its full rate ends after it decided so, or died
	policy bool  // delay: it goes on while it has the lease

	yielding bool

	s        *Successor
	sClock   drift
	sStarted bool // remembered over crashes, as the real one is

	sent int
}

// drift is a monotonic clock that is not quite right and began at some other time.
type drift struct {
	rate  float64
	since int64
}

func (d drift) read(now int64) int64 { return d.since + int64(float64(now)*d.rate) }

type inFlight struct {
	at  int64
	f   Frame
	toP bool
}

func newWorld(seed uint64) *world {
	rng := rand.New(rand.NewPCG(seed, 1))
	w := &world{rng: rng, pair: Pair{"p", "s"}}
	w.timeout = []int64{50_000, 100_000, 200_000, 1_000_000}[rng.IntN(4)]
	w.guard = rng.Int64N(10_000)
	w.margin = stopping + 1_000 + w.timeout/250 // and a step of this simulation
	w.delay = []int64{50, 1_000, 5_000, 50_000, 200_000}[rng.IntN(5)]
	w.loss = []float64{0, 0.02, 0.3, 0.9}[rng.IntN(4)]
	w.copies = []float64{0, 0.2}[rng.IntN(2)]
	w.replays = []float64{0, 0.01}[rng.IntN(2)]
	w.policy = rng.IntN(4) > 0
	w.end = 1_500_000
	w.begin = w.end
	w.early = []int64{Never, 0, 1_300_000}[rng.IntN(3)]
	w.pClock, w.sClock = w.clock(), w.clock()
	w.startPredecessor()
	w.startSuccessor()
	return w
}

// clock errs by up to 0.1 %; the protocol's margin allows for 0.4 % between two.
func (w *world) clock() drift {
	return drift{1 + (w.rng.Float64()-0.5)/500, w.rng.Int64N(1 << 40)}
}

func (w *world) nonce() (n Nonce) {
	for i := range n {
		n[i] = byte(w.rng.Uint32())
	}
	return n
}

// wrong is a booked instant as a host's clock tells it.
func (w *world) wrong(at int64) int64 { return at + w.rng.Int64N(2*w.guard+1) - w.guard }

func (w *world) startPredecessor() {
	w.yielding = false
	w.p = NewPredecessor(PredecessorConfig{Pair: w.pair, Nonce: w.nonce(), Timeout: w.timeout, Margin: w.margin})
	// The sender's schedule is guarded: by its own clock it stops early by the guard.
	w.pEnd = w.pClock.read(w.wrong(w.end) - w.guard)
	w.p.Plan(w.pEnd, Never)
}

func (w *world) startSuccessor() {
	now := w.sClock.read(w.now)
	w.s = NewSuccessor(SuccessorConfig{Pair: w.pair, Nonce: w.nonce(), Timeout: w.timeout}, now)
	begin := w.wrong(w.begin) + w.guard
	early := w.early
	if early != Never {
		early = w.sClock.read(early)
	}
	w.s.Plan(w.sClock.read(begin), early)
	if w.sStarted {
		w.s.Skip(now)
	}
}

func (w *world) send(frames []Frame, toP bool) {
	for _, f := range frames {
		w.sent++
		m := inFlight{at: w.now + 10 + w.rng.Int64N(w.delay), f: f, toP: toP}
		w.old = append(w.old, m)
		if w.dead || w.rng.Float64() < w.loss {
			continue
		}
		w.wire = append(w.wire, m)
		if w.rng.Float64() < w.copies {
			m.at += w.rng.Int64N(4 * w.delay)
			w.wire = append(w.wire, m)
		}
	}
}

// fullRate says whether the predecessor sends at its full rate now.
func (w *world) fullRate() bool {
	if w.p == nil {
		return w.now < w.stops
	}
	local := w.pClock.read(w.now)
	return !w.done && (local < w.pEnd || local < w.p.LeaseUntil()) || w.now < w.stops
}

// tick is one step of both hosts; a busy host's is late.
func (w *world) tick() {
	if w.p != nil {
		local := w.pClock.read(w.now)
		// What the sender does past its booked end: it looks at its lease, late by up to the margin minus what the clocks need.
		if past := local >= w.pEnd; past && !w.done && (!w.policy || local >= w.p.LeaseUntil()) {
			if over, _ := w.p.Over(); !over && !w.yielding {
				w.yielding = true
				late := int64(0)
				if w.p.LeaseUntil() > w.pEnd { // it was on a lease; its booked end it has known for long
					late = w.rng.Int64N(stopping)
				}
				w.stops = w.now + late
				w.p.Release(local, local+late, Overrun) // it has stopped before it says so
			}
		}
		if local >= w.pEnd && !w.done && w.policy {
			w.p.Extend(local + 5_000)
		}
		frames, _ := w.p.Advance(local)
		w.send(frames, false)
	}
	if w.s != nil {
		w.s.Advance(w.sClock.read(w.now))
		w.noteStart()
	}
}

func (w *world) noteStart() {
	if v, _, _ := w.s.Verdict(); v != Waiting {
		w.sStarted = true
	}
}

func (w *world) deliver() {
	slices.SortStableFunc(w.wire, func(a, b inFlight) int { return cmp.Compare(a.at, b.at) })
	for len(w.wire) > 0 && w.wire[0].at <= w.now {
		m := w.wire[0]
		w.wire = w.wire[1:]
		switch {
		case m.toP && w.p != nil:
			w.send(w.p.Receive(w.pClock.read(w.now), m.f), false)
		case !m.toP && w.s != nil:
			w.send(w.s.Receive(w.sClock.read(w.now), m.f), true)
			w.noteStart()
		}
	}
	if len(w.old) > 0 && w.rng.Float64() < w.replays {
		m := w.old[w.rng.IntN(len(w.old))]
		m.at = w.now
		w.wire = append(w.wire, m)
	}
}

// TestNeverBothAtFullRate is the main property: whatever is lost, doubled, delayed, replayed, and whoever crashes, a
// successor that has started never finds its predecessor at more than its fallback rate; and it starts in bounded time.
func TestNeverBothAtFullRate(t *testing.T) {
	var starts, early, leased int
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		w := newWorld(seed)
		finish := w.end - 300_000 + w.rng.Int64N(1_500_000) // by itself: early, or an overrun
		crashP, crashS := w.event(), w.event()
		backP, backS := crashP+w.rng.Int64N(600_000), crashS+w.rng.Int64N(600_000)
		cut := w.event()
		const step = 500
		for w.now = 0; w.now < 6_000_000; w.now += step {
			at := func(instant int64) bool { return instant >= w.now && instant < w.now+step }
			switch {
			case at(cut):
				w.dead = true
			case at(crashP):
				if local := w.pClock.read(w.now); w.p != nil && !w.done && local >= w.pEnd && local < w.p.LeaseUntil() {
					w.stops = w.now + stopping // what its kernel still holds
				}
				w.p = nil
			case at(backP) && crashP < finish:
				w.startPredecessor()
			case at(crashS):
				w.s = nil
			case at(backS):
				w.startSuccessor()
			}
			w.deliver()
			if w.p != nil && !w.done && w.now >= finish {
				w.done = true
				local := w.pClock.read(w.now)
				w.p.Release(local, local, Done)
			}
			w.tick()
			if w.fullRate() && !w.done && w.sStarted {
				t.Fatalf("both at full rate at %d: seed %d", w.now, seed)
			}
			if w.fullRate() && w.now >= w.end {
				leased++
			}
			if w.sStarted && w.now < w.begin {
				early++
			}
		}
		// Alive at the end, it has started: at the latest one timeout after the link's last use, its own restart, and its begin.
		if w.s != nil && !w.sStarted {
			t.Fatalf("the successor never started: seed %d", seed)
		}
		starts++
		if w.sent > 20_000 {
			t.Fatalf("%d datagrams: seed %d", w.sent, seed)
		}
	})
	t.Logf("%d runs; %d steps on a lease, %d steps of early starts", starts, leased, early)
	if leased == 0 || early == 0 {
		t.Error("the cases that matter did not come up")
	}
}

// event is an instant at which something breaks; half of the time never.
func (w *world) event() int64 {
	if w.rng.IntN(2) == 0 {
		return Never / 2
	}
	return 400_000 + w.rng.Int64N(2_500_000)
}

// duel runs the two over a network of a fixed delay without faults, event by event, and returns when the successor started
// after the release.
func duel(t *testing.T, delay, timeout, releaseAt int64, drop func(f Frame) bool) (startedAfter int64, sent []Frame) {
	t.Helper()
	pair := Pair{"p", "s"}
	p := NewPredecessor(PredecessorConfig{Pair: pair, Nonce: Nonce{1}, Timeout: timeout, Margin: timeout / 5})
	s := NewSuccessor(SuccessorConfig{Pair: pair, Nonce: Nonce{2}, Timeout: timeout}, 0)
	const end = 2_000_000
	p.Plan(end, Never)
	s.Plan(end, 0)
	type arrival struct {
		at  int64
		f   Frame
		toP bool
	}
	var wire []arrival
	post := func(now int64, frames []Frame, toP bool) {
		for _, f := range frames {
			sent = append(sent, f)
			if drop == nil || !drop(f) {
				wire = append(wire, arrival{now + delay, f, toP})
			}
		}
	}
	released := false
	for now := int64(0); now < end+10*timeout; {
		for len(wire) > 0 && wire[0].at <= now {
			m := wire[0]
			wire = wire[1:]
			if m.toP {
				post(now, p.Receive(now, m.f), false)
			} else {
				post(now, s.Receive(now, m.f), true)
			}
		}
		if !released && now >= releaseAt {
			released = true
			p.Release(now, now, Done)
		}
		frames, wakeP := p.Advance(now)
		post(now, frames, false)
		wakeS := s.Advance(now)
		if v, at, _ := s.Verdict(); v != Waiting && startedAfter == 0 {
			startedAfter = at - releaseAt
			if v != Signalled {
				t.Logf("%s", v)
			}
		}
		next := min(wakeP, wakeS)
		if len(wire) > 0 {
			next = min(next, wire[0].at)
		}
		if !released {
			next = min(next, releaseAt)
		}
		if next == Never {
			break
		}
		now = max(now, next)
	}
	return startedAfter, sent
}

// RR-6205 counts 1.5 round trips for a signal; with the first two messages ahead of time, half of one is left.
func TestWhatASignalCosts(t *testing.T) {
	for _, roundTrip := range []int64{100, 10_000, 100_000} {
		half := roundTrip / 2
		if got, _ := duel(t, half, 400_000, 1_900_000, nil); got != half {
			t.Errorf("RTT %d us, armed: started after %d us, want %d", roundTrip, got, half)
		}
		// Released before it began to hold: the whole handshake.
		if got, _ := duel(t, half, 400_000, 100_000, nil); got != 3*half {
			t.Errorf("RTT %d us, not armed: started after %d us, want %d", roundTrip, got, 3*half)
		}
	}
}

func TestALostGoIsSaidAgain(t *testing.T) {
	for _, roundTrip := range []int64{100, 10_000, 100_000} {
		gos := 0
		got, _ := duel(t, roundTrip/2, 400_000, 1_900_000, func(f Frame) bool {
			if f.Kind == Go {
				gos++
			}
			return f.Kind == Go && gos == 1
		})
		if most := roundTrip/2 + max(minRetry, roundTrip+roundTrip/4+1_000); got > most {
			t.Errorf("RTT %d us: started %d us after a GO that was lost, want at most %d", roundTrip, got, most)
		}
		if gos != 2 && roundTrip > 1_000 {
			t.Errorf("RTT %d us: %d GOs", roundTrip, gos)
		}
	}
}

// A successor that is dead costs a bounded number of datagrams, and does not keep the predecessor.
func TestADeadSuccessorIsGivenUp(t *testing.T) {
	_, sent := duel(t, 50, 200_000, 1_900_000, func(Frame) bool { return true })
	if len(sent) > 200 {
		t.Errorf("%d datagrams to nobody", len(sent))
	}
}

func TestACopyOfAnOldSignalStartsNobody(t *testing.T) {
	pair := Pair{"p", "s"}
	s := NewSuccessor(SuccessorConfig{Pair: pair, Nonce: Nonce{2}, Timeout: 200_000}, 0)
	s.Plan(10_000_000, 0)
	for _, old := range []Frame{
		{Kind: Go, Cause: Done, Pair: pair, Number: 9, PredecessorNonce: Nonce{1}, SuccessorNonce: Nonce{7}}, // to an earlier run of ours
		{Kind: Go, Cause: Done, Pair: pair, Number: 9, PredecessorNonce: Nonce{1}},                           // to nobody
	} {
		if answers := s.Receive(1000, old); len(answers) != 0 {
			t.Errorf("answered %v", answers)
		}
	}
	// A HOLD that counts, recorded, does not hold for longer than it did the first time.
	hold := Frame{Kind: Hold, Pair: pair, Number: 3, PredecessorNonce: Nonce{1}, SuccessorNonce: Nonce{2}, Remaining: 5}
	s.Plan(5_000, Never)
	s.Receive(2_000, hold)
	for at := int64(10_000); at < 205_000; at += 10_000 {
		s.Receive(at, hold)
	}
	s.Advance(205_000)
	if v, at, _ := s.Verdict(); v != TimedOut || at != 205_000 {
		t.Errorf("%s at %d", v, at)
	}
}

func TestAGoBeforeItsTimeWaitsForIt(t *testing.T) {
	pair := Pair{"p", "s"}
	for _, c := range []struct{ early, want int64 }{{100_000, 100_000}, {Never, 500_000}, {0, 1_000}} {
		s := NewSuccessor(SuccessorConfig{Pair: pair, Nonce: Nonce{2}, Timeout: 200_000}, 0)
		s.Plan(500_000, c.early)
		answers := s.Receive(1_000, Frame{Kind: Go, Cause: Failed, Pair: pair, Number: 1, PredecessorNonce: Nonce{1}, SuccessorNonce: Nonce{2}})
		if len(answers) != 1 || answers[0].Kind != Started {
			t.Errorf("answered %v", answers)
		}
		for now := int64(1_000); s.Advance(now) != Never; {
			now = s.Advance(now)
		}
		if v, at, cause := s.Verdict(); v != Signalled || at != c.want || cause != Failed {
			t.Errorf("early from %d: %s at %d, %s", c.early, v, at, cause)
		}
	}
}

// The broker's word starts it at once, unless the predecessor itself says that it still has the link.
func TestTheBrokersWord(t *testing.T) {
	pair := Pair{"p", "s"}
	s := NewSuccessor(SuccessorConfig{Pair: pair, Nonce: Nonce{2}, Timeout: 200_000}, 0)
	s.Plan(500_000, 0)
	s.Release(1_000)
	s.Advance(1_000)
	if v, at, _ := s.Verdict(); v != Released || at != 1_000 {
		t.Errorf("%s at %d", v, at)
	}
	s = NewSuccessor(SuccessorConfig{Pair: pair, Nonce: Nonce{2}, Timeout: 200_000}, 0)
	s.Plan(500_000, 0)
	s.Receive(900, Frame{Kind: Hold, Pair: pair, Number: 1, PredecessorNonce: Nonce{1}, SuccessorNonce: Nonce{2}})
	s.Release(1_000)
	if wake := s.Advance(1_000); wake != 200_900 {
		t.Errorf("woken at %d", wake)
	}
	s.Advance(200_900)
	if v, _, _ := s.Verdict(); v != Released {
		t.Error(v)
	}
}

// A HOLD that did not count for the successor, because it came without its nonce, gives no lease when it is answered.
func TestOnlyAHoldThatCountsGivesALease(t *testing.T) {
	pair := Pair{"p", "s"}
	p := NewPredecessor(PredecessorConfig{Pair: pair, Nonce: Nonce{1}, Timeout: 200_000, Margin: 30_000})
	p.Plan(1_000_000, Never)
	first, _ := p.Advance(100_000)
	answer := Frame{Kind: Held, Pair: pair, Number: 1, PredecessorNonce: Nonce{1}, SuccessorNonce: Nonce{2}}
	second := p.Receive(110_000, answer)
	if len(first) != 1 || len(second) != 1 || second[0].SuccessorNonce != (Nonce{2}) || p.LeaseUntil() != 0 {
		t.Fatalf("%v, then %v, lease until %d", first, second, p.LeaseUntil())
	}
	answer.Number = 2
	p.Receive(120_000, answer)
	if want := int64(110_000 + 200_000 - 30_000); p.LeaseUntil() != want {
		t.Errorf("lease until %d, want %d", p.LeaseUntil(), want)
	}
	// A successor that restarted counts from its own begin: an answer to what the earlier run was told gives nothing new.
	p.Advance(160_000)
	answer.Number, answer.SuccessorNonce = 3, Nonce{3}
	p.Receive(170_000, answer)
	if want := int64(110_000 + 200_000 - 30_000); p.LeaseUntil() != want {
		t.Errorf("lease until %d after a restart, want %d", p.LeaseUntil(), want)
	}
	p.Release(180_000, 180_000, Done)
	if p.LeaseUntil() != 0 {
		t.Error("a lease after the end")
	}
}
