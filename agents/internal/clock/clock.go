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
	// bendMost is the largest correction that is bent in, in five seconds at most; until it is, broker time here is known
	// to be wrong. A larger one is made at once: the pacer's account forbids a burst, whatever the clock does.
	bendMost = 10 * time.Millisecond
	// unknown stands for the error of an offset that rests on an earlier run, or on nothing.
	unknown = 500 * time.Millisecond

	minGuard     = time.Millisecond // the granularity of timers on a busy host
	defaultGuard = 10 * time.Millisecond
	// wallStep is a change of the wall clock against monotonic time that is no adjustment any more.
	wallStep = 100 * time.Millisecond
)

// Clock is broker time. It is safe for concurrent use.
type Clock struct {
	now      func() time.Time // local, monotonic
	wall     func() time.Time // what the host calls the time
	readHost func() Host
	maxGuard time.Duration // set before use

	mu    sync.Mutex
	est   estimate
	host  Host
	known bool
	// The applied offset moves from applied (at since) towards target.
	applied, target time.Duration
	since           time.Time
	steps           int
	lastStep        time.Duration
	wallLead        time.Duration // wall clock minus local time when it was looked at last
}

// New starts from an offset remembered from an earlier run (0 when there is none).
func New(remembered time.Duration) *Clock {
	start := time.Now()
	local := func() time.Time { return start.Add(time.Since(start)) }
	return newClock(local, func() time.Time { return time.Now().Round(0) }, ReadHost, remembered)
}

func newClock(local, wall func() time.Time, host func() Host, remembered time.Duration) *Clock {
	now := local()
	return &Clock{
		now: local, wall: wall, readHost: host, maxGuard: defaultGuard,
		applied: remembered, target: remembered, since: now, host: host(), wallLead: wall().Sub(now),
	}
}

// LimitGuard sets the largest guard time; 0 leaves it as it is. It is called before the clock is used.
func (c *Clock) LimitGuard(most time.Duration) {
	if most > 0 {
		c.maxGuard = most
	}
}

// Local is the local time to take with a request and its answer.
func (c *Clock) Local() time.Time { return c.now() }

// Observe takes an exchange with the broker: its time in the middle of its work on the answer, and how long that took.
// stepped is by how much the broker's clock was found to be stepped; one exchange alone is not enough to find that.
func (c *Clock) Observe(sent, received, broker time.Time, took time.Duration) (stepped time.Duration) {
	host := c.readHost()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.host = host
	if stepped = c.est.add(sent, received, broker, max(took, 0), host); stepped != 0 {
		c.steps++
		c.lastStep = stepped
	}
	now := c.now()
	best, ok := c.est.best(now, host)
	if !ok {
		return stepped
	}
	c.applied, c.since = c.offset(now), now
	c.target = best.offset
	if gap := (c.target - c.applied).Abs(); !c.known || gap > bendMost {
		c.applied = c.target
	}
	c.known = true
	return stepped
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
	// Error bounds how far Now is off: half the round trip of the exchange it rests on, the drift since then, and what
	// of a correction is still to be bent in.
	Error    time.Duration
	Known    bool // at least one exchange in this run
	Doubted  bool // the newest exchanges contradict the offset: asking again decides
	Steps    int  // of the broker's clock, in this run
	LastStep time.Duration
	Host     Host
}

// Read returns the reading now.
func (c *Clock) Read() Reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	offset := c.offset(now)
	r := Reading{
		Offset: now.Add(offset).Sub(c.wall()), Error: unknown, Known: c.known, Doubted: len(c.est.doubts) > 0,
		Steps: c.steps, LastStep: c.lastStep, Host: c.host,
	}
	if best, ok := c.est.best(now, c.host); ok {
		r.Error = best.bound(now, c.host) + (c.target - offset).Abs()
	}
	return r
}

// Guard is by how many microseconds schedules are narrowed at each step: the error of the clock, at least the
// granularity of timers and at most what is worth losing.
func (c *Clock) Guard() int64 {
	return max(minGuard, min(c.Read().Error, c.maxGuard)).Microseconds()
}

// WallStepped is by how much the host's wall clock was stepped since it was last asked; 0 when it was not. Broker time
// here does not follow such a step.
func (c *Clock) WallStepped() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	lead := c.wall().Sub(c.now())
	by := lead - c.wallLead
	c.wallLead = lead
	if by.Abs() < wallStep {
		return 0
	}
	return by
}
