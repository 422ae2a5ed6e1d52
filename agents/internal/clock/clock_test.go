// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// virtual is a host with a clock of its own that only moves when told.
type virtual struct {
	at    time.Time
	lead  time.Duration // of the wall clock
	host  Host
	clock *Clock
}

func newVirtual() *virtual {
	v := &virtual{at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), host: Host{Synchronised: true}}
	v.clock = newClock(func() time.Time { return v.at }, func() time.Time { return v.at.Add(v.lead) }, func() Host { return v.host }, 0)
	return v
}

// exchange asks a broker whose clock is ahead by offset, over a path with different delays each way.
func (v *virtual) exchange(offset, there, back time.Duration) time.Duration {
	return v.slowExchange(offset, there, 0, back)
}

// slowExchange asks a broker that needs a while for its answer.
func (v *virtual) slowExchange(offset, there, took, back time.Duration) time.Duration {
	sent := v.at
	v.at = v.at.Add(there + took/2)
	broker := v.at.Add(offset)
	v.at = v.at.Add(took - took/2 + back)
	return v.clock.Observe(sent, v.at, broker, took)
}

func (v *virtual) off(offset time.Duration) time.Duration {
	return time.Duration(v.clock.Now()-v.at.Add(offset).UnixMicro()) * time.Microsecond
}

// The time that an answer takes is known, and tells nothing about the path.
func TestWhatTheBrokerNeedsIsNoError(t *testing.T) {
	v := newVirtual()
	v.slowExchange(time.Hour, 200*time.Microsecond, 15*time.Millisecond, 100*time.Microsecond)
	if off := v.off(time.Hour).Abs(); off > 50*time.Microsecond {
		t.Errorf("off by %s", off)
	}
	if r := v.clock.Read(); !near(r.Error, 150*time.Microsecond, 10*time.Microsecond) {
		t.Errorf("%+v", r)
	}
	if sent := v.at; v.clock.Observe(sent, sent.Add(time.Millisecond), sent, time.Second) != 0 || v.off(time.Hour).Abs() > 50*time.Microsecond {
		t.Error("an answer that took longer than the whole exchange was believed")
	}
}

func near(got, want, by time.Duration) bool { return (got - want).Abs() <= by }

func TestTheSmallestRoundTripIsBelieved(t *testing.T) {
	v := newVirtual()
	const ahead = 3 * time.Second
	v.exchange(ahead, 40*time.Millisecond, 400*time.Millisecond)
	v.exchange(ahead, 500*time.Microsecond, 600*time.Microsecond)
	for range kept - 2 {
		v.exchange(ahead, 90*time.Millisecond, time.Millisecond)
	}
	if off := v.off(ahead).Abs(); off > 100*time.Microsecond {
		t.Errorf("off by %s", off)
	}
	if r := v.clock.Read(); !near(r.Error, 590*time.Microsecond, 10*time.Microsecond) || !r.Known {
		t.Errorf("%+v", r)
	}
	for range kept { // and is forgotten after as many
		v.exchange(ahead, 90*time.Millisecond, time.Millisecond)
	}
	if r := v.clock.Read(); r.Error < 45500*time.Microsecond {
		t.Errorf("%+v", r)
	}
}

func TestCorrectionsBendTimeALittle(t *testing.T) {
	v := newVirtual()
	v.exchange(0, 15*time.Millisecond, 15*time.Millisecond)
	v.exchange(9*time.Millisecond, 100*time.Microsecond, 100*time.Microsecond)
	if r := v.clock.Read(); !near(r.Error, 9100*time.Microsecond, 10*time.Microsecond) {
		t.Errorf("what is not bent in yet is an error too: %s", r.Error)
	}
	last := v.clock.Now()
	for range 100 {
		v.at = v.at.Add(100 * time.Millisecond)
		now := v.clock.Now()
		if step := now - last; step < 99_800 || step > 100_200 {
			t.Fatalf("100 ms took %d us", step)
		}
		last = now
	}
	if off := v.off(9 * time.Millisecond).Abs(); off > time.Microsecond {
		t.Errorf("after 10 s still off by %s", off)
	}
}

func TestALargeCorrectionIsMadeAtOnce(t *testing.T) {
	v := newVirtual()
	v.exchange(0, 200*time.Millisecond, 200*time.Millisecond)
	if by := v.exchange(60*time.Millisecond, 50*time.Microsecond, 50*time.Microsecond); by != 0 {
		t.Errorf("what an earlier exchange left open is no step, but %s was found", by)
	}
	if off := v.off(60 * time.Millisecond).Abs(); off > time.Microsecond {
		t.Errorf("off by %s", off)
	}
}

func TestTheErrorGrowsWithAge(t *testing.T) {
	for name, c := range map[string]struct {
		host Host
		want time.Duration // after 100 s, round trip 2 ms
	}{
		"steered":  {Host{Synchronised: true}, time.Millisecond + 3*time.Millisecond},
		"free":     {Host{}, time.Millisecond + 11500*time.Microsecond},
		"slewing":  {Host{Synchronised: true, Slew: -7 * time.Millisecond}, time.Millisecond + 3*time.Millisecond + 7*time.Millisecond},
		"slewing+": {Host{Synchronised: true, Slew: time.Second}, time.Millisecond + 3*time.Millisecond + 50*time.Millisecond},
	} {
		v := newVirtual()
		v.host = c.host
		v.exchange(0, time.Millisecond, time.Millisecond)
		v.at = v.at.Add(100 * time.Second)
		if r := v.clock.Read(); r.Error != c.want {
			t.Errorf("%s: %s, want %s", name, r.Error, c.want)
		}
	}
}

func TestAFreshExchangeBeatsAStaleOne(t *testing.T) {
	v := newVirtual()
	v.exchange(0, 100*time.Microsecond, 100*time.Microsecond)
	v.at = v.at.Add(10 * time.Minute) // 18 ms of drift by now
	v.exchange(2*time.Millisecond, time.Millisecond, time.Millisecond)
	if r := v.clock.Read(); !near(r.Error, 3*time.Millisecond, 10*time.Microsecond) {
		t.Errorf("%s: rests on the exchange of ten minutes ago", r.Error)
	}
}

func TestAStepOfTheBrokersClock(t *testing.T) {
	for _, step := range []time.Duration{2 * time.Second, -2 * time.Second} {
		v := newVirtual()
		for range 5 {
			v.exchange(0, time.Millisecond, time.Millisecond)
			v.at = v.at.Add(time.Second)
		}
		for n := 1; n < believed; n++ {
			if by := v.exchange(step, time.Millisecond, time.Millisecond); by != 0 || v.off(0).Abs() > time.Millisecond {
				t.Fatalf("%d exchanges were believed: step %s, off by %s", n, by, v.off(0))
			}
			if !v.clock.Read().Doubted {
				t.Error("there is nothing to ask again about")
			}
		}
		if by := v.exchange(step, time.Millisecond, time.Millisecond); !near(by, step, 2*time.Millisecond) {
			t.Errorf("stepped by %s, found %s", step, by)
		}
		if off := v.off(step).Abs(); off > time.Millisecond {
			t.Errorf("after the step by %s: off by %s", step, off)
		}
		if r := v.clock.Read(); r.Steps != 1 || !near(r.LastStep, step, 2*time.Millisecond) || r.Doubted || r.Error > 2*time.Millisecond {
			t.Errorf("%+v", r)
		}
	}
}

func TestOneWrongAnswerChangesNothing(t *testing.T) {
	v := newVirtual()
	for n := range 40 {
		wrong := time.Duration(0)
		if n%4 == 1 || n%4 == 2 { // two brokers behind one address, one of them with a wrong clock that wanders
			wrong = time.Duration(n) * time.Second
		}
		if by := v.exchange(wrong, time.Millisecond, time.Millisecond); by != 0 {
			t.Fatalf("exchange %d: believed in a step by %s", n, by)
		}
		v.at = v.at.Add(time.Second)
	}
	if off := v.off(0).Abs(); off > time.Millisecond {
		t.Errorf("off by %s", off)
	}
}

func TestASlowAnswerDecidesNothing(t *testing.T) {
	v := newVirtual()
	v.exchange(0, time.Millisecond, time.Millisecond)
	v.exchange(2*time.Second, time.Millisecond, time.Millisecond)
	v.exchange(2*time.Second, 3*time.Second, 3*time.Second) // fits both
	v.exchange(2*time.Second, time.Millisecond, time.Millisecond)
	if by := v.exchange(2*time.Second, time.Millisecond, time.Millisecond); by == 0 {
		t.Error("the step was forgotten over a slow answer")
	}
}

// Whatever the path does: as long as both clocks keep their rate, the truth is within the bound.
func TestTheTruthIsWithinTheBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := newVirtual()
		ahead := time.Duration(rapid.Int64Range(-1e9, 1e9).Draw(t, "ahead"))
		for range rapid.IntRange(1, 40).Draw(t, "exchanges") {
			delay := rapid.Custom(func(t *rapid.T) time.Duration { return time.Duration(rapid.Int64Range(1e4, 3e8).Draw(t, "delay")) })
			if by := v.exchange(ahead, delay.Draw(t, "there"), delay.Draw(t, "back")); by != 0 {
				t.Fatalf("a step by %s that was none", by)
			}
			v.at = v.at.Add(time.Duration(rapid.Int64Range(0, 3e10).Draw(t, "pause")))
			if off, bound := v.off(ahead).Abs(), v.clock.Read().Error; off > bound+2*time.Microsecond {
				t.Fatalf("off by %s, bound %s", off, bound)
			}
		}
	})
}

func TestAStepOfTheWallClockDoesNotMatter(t *testing.T) {
	for _, step := range []time.Duration{2 * time.Second, -2 * time.Second} {
		v := newVirtual()
		v.exchange(time.Second, time.Millisecond, time.Millisecond)
		before := v.clock.Read().Offset
		v.lead += step
		if off := v.off(time.Second).Abs(); off > time.Microsecond {
			t.Errorf("broker time followed the wall clock: off by %s", off)
		}
		if after := v.clock.Read().Offset; after != before-step {
			t.Errorf("the offset to remember was %s, is %s after a step by %s", before, after, step)
		}
		if by := v.exchange(time.Second, time.Millisecond, time.Millisecond); by != 0 {
			t.Errorf("taken for a step of the broker's clock by %s", by)
		}
		if by := v.clock.WallStepped(); by != step {
			t.Errorf("found a step of the wall clock by %s, it was %s", by, step)
		}
		v.lead += 5 * time.Millisecond
		if by := v.clock.WallStepped(); by != 0 {
			t.Errorf("an adjustment was taken for a step by %s", by)
		}
	}
}

func TestGuardFollowsTheError(t *testing.T) {
	v := newVirtual()
	if g := v.clock.Guard(); g != 10_000 {
		t.Errorf("nothing known: %d", g)
	}
	v.exchange(0, 3*time.Millisecond, 3*time.Millisecond)
	if g := v.clock.Guard(); g != 3_000 {
		t.Errorf("3 ms: %d", g)
	}
	v.at = v.at.Add(100 * time.Second)
	if g := v.clock.Guard(); g != 6_000 {
		t.Errorf("100 s later: %d", g)
	}
	v.exchange(0, 10*time.Microsecond, 10*time.Microsecond)
	if g := v.clock.Guard(); g != 1_000 {
		t.Errorf("10 us: %d", g)
	}
	wide := newVirtual()
	wide.clock.LimitGuard(50 * time.Millisecond)
	wide.exchange(0, 30*time.Millisecond, 30*time.Millisecond)
	if g := wide.clock.Guard(); g != 30_000 {
		t.Errorf("30 ms under a limit of 50: %d", g)
	}
}
