// SPDX-License-Identifier: Apache-2.0

// Package clock tells broker time on this host. Local time is the monotonic clock set to the wall clock once, at start,
// so that a step of the wall clock does not reach a running transfer; the offset to the broker is estimated from request
// time stamps and applied gently.
package clock

import (
	"sync"
	"time"
)

const (
	// slew is the most by which a correction bends time (0.2 %), so that it adds at most that to a paced rate.
	slew = 500 // 1/500
	// stepBeyond is a correction too large to be bent in: the clock was plainly wrong.
	stepBeyond = 500 * time.Millisecond
)

// Clock answers broker time. It is safe for concurrent use.
type Clock struct {
	now   func() time.Time // local, monotonic
	wall  func() time.Time // what the host calls the time
	mu    sync.Mutex
	est   estimate
	known bool
	err   time.Duration
	// The applied offset moves from applied (at since) towards target.
	applied, target time.Duration
	since           time.Time
}

// New starts from an offset remembered from an earlier run (0 when there is none).
func New(remembered time.Duration) *Clock {
	start := time.Now()
	local := func() time.Time { return start.Add(time.Since(start)) }
	return newClock(local, func() time.Time { return time.Now().Round(0) }, remembered)
}

func newClock(local, wall func() time.Time, remembered time.Duration) *Clock {
	return &Clock{now: local, wall: wall, applied: remembered, target: remembered, since: local(), err: stepBeyond}
}

// Local is the local time to take with a request and its answer.
func (c *Clock) Local() time.Time { return c.now() }

// Observe takes an exchange with the broker.
func (c *Clock) Observe(sent, received, broker time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.est.add(sent, received, broker)
	offset, bound, ok := c.est.best()
	if !ok {
		return
	}
	now := c.now()
	c.applied, c.since = c.offset(now), now
	c.target, c.err = offset, bound
	if gap := (c.target - c.applied).Abs(); !c.known || gap > stepBeyond {
		c.applied = c.target
	}
	c.known = true
}

// offset is the applied offset at a local time.
func (c *Clock) offset(now time.Time) time.Duration {
	room := now.Sub(c.since) / slew
	gap := c.target - c.applied
	return c.applied + max(-room, min(gap, room))
}

// Now is broker time in microseconds since the Unix epoch.
func (c *Clock) Now() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	return now.Add(c.offset(now)).UnixMicro()
}

// Reading is what the clock knows about itself.
type Reading struct {
	Offset time.Duration // broker time minus the host's wall clock
	Error  time.Duration // half the round trip of the exchange it rests on
	Known  bool          // at least one exchange in this run
}

// Read answers the reading now.
func (c *Clock) Read() Reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	return Reading{Offset: now.Add(c.offset(now)).Sub(c.wall()), Error: c.err, Known: c.known}
}

// Guard is by how many microseconds schedules are narrowed at each step: the error of the clock, at least the
// granularity of timers and at most what is worth losing.
func (c *Clock) Guard() int64 {
	const least, most = 1_000, 10_000
	return max(least, min(c.Read().Error.Microseconds(), most))
}
