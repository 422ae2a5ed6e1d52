// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"testing"
	"time"
)

// virtual is a host with a clock of its own that only moves when told.
type virtual struct {
	at    time.Time
	clock *Clock
}

func newVirtual() *virtual {
	v := &virtual{at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	read := func() time.Time { return v.at }
	v.clock = newClock(read, read, 0)
	return v
}

// exchange asks a broker whose clock is ahead by offset, over a path with different delays each way.
func (v *virtual) exchange(offset, there, back time.Duration) {
	sent := v.at
	v.at = v.at.Add(there)
	broker := v.at.Add(offset)
	v.at = v.at.Add(back)
	v.clock.Observe(sent, v.at, broker)
}

func (v *virtual) off(offset time.Duration) time.Duration {
	return time.Duration(v.clock.Now()-v.at.Add(offset).UnixMicro()) * time.Microsecond
}

func TestTheSmallestRoundTripIsBelieved(t *testing.T) {
	v := newVirtual()
	const ahead = 3 * time.Second
	v.exchange(ahead, 40*time.Millisecond, 400*time.Millisecond)
	v.exchange(ahead, 500*time.Microsecond, 600*time.Microsecond)
	for range kept - 2 {
		v.exchange(ahead, 90*time.Millisecond, time.Millisecond)
	}
	v.at = v.at.Add(5 * time.Minute) // the correction is bent in
	if off := v.off(ahead).Abs(); off > 100*time.Microsecond {
		t.Errorf("off by %s", off)
	}
	if r := v.clock.Read(); r.Error != 550*time.Microsecond || !r.Known {
		t.Errorf("%+v", r)
	}
	for range kept { // and is forgotten after as many
		v.exchange(ahead, 90*time.Millisecond, time.Millisecond)
	}
	if r := v.clock.Read(); r.Error != 45500*time.Microsecond {
		t.Errorf("%+v", r)
	}
}

func TestCorrectionsBendTimeALittle(t *testing.T) {
	v := newVirtual()
	v.exchange(0, time.Millisecond, time.Millisecond)
	v.exchange(20*time.Millisecond, 100*time.Microsecond, 100*time.Microsecond)
	last := v.clock.Now()
	for range 200 {
		v.at = v.at.Add(100 * time.Millisecond)
		now := v.clock.Now()
		if step := now - last; step < 99_800 || step > 100_200 {
			t.Fatalf("100 ms took %d us", step)
		}
		last = now
	}
	if off := v.off(20 * time.Millisecond).Abs(); off > time.Microsecond {
		t.Errorf("after 20 s still off by %s", off)
	}
	v.exchange(time.Hour, 50*time.Microsecond, 50*time.Microsecond) // plainly wrong: at once
	if off := v.off(time.Hour).Abs(); off > time.Microsecond {
		t.Errorf("off by %s", off)
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
	v.exchange(0, 10*time.Microsecond, 10*time.Microsecond)
	if g := v.clock.Guard(); g != 1_000 {
		t.Errorf("10 us: %d", g)
	}
}
