// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"bandwidthbroker/agents/internal/brokerapi"
	"bandwidthbroker/agents/internal/datachannel"
	"bandwidthbroker/agents/internal/mechanism"
	"bandwidthbroker/agents/internal/pacer"
	"bandwidthbroker/agents/internal/schedule"
)

// transmission is the paced part of one connection: from RESUME to END.
type transmission struct {
	*Sender
	link   *link
	src    *source
	offset int64 // next byte of the file to be written

	orders    *Orders // being followed
	plan      schedule.Schedule
	pacer     *pacer.Pacer
	limiter   mechanism.Limiter
	asked     mechanism.Name // by the orders that limiter was chosen for
	rate      int64          // last asked of it
	packet    int64          // payload of a full segment
	room      int64          // bytes that the kernel was asked to keep for what is in flight
	started   bool
	aside     sync.WaitGroup // reports being written to disk: the pace does not wait for an fsync
	nextCheck int64          // for a shortfall, broker time
}

// blockedFor is how long a full kernel queue may keep us from looking at new orders.
const blockedFor = 50 * time.Millisecond

// shortfallEvery is how often a running transfer asks itself whether the plan still carries the rest.
const shortfallEvery int64 = 200_000 // µs

// run sends every byte from the offset on. It returns when all are handed to the kernel.
func (t *transmission) run(ctx context.Context) error {
	var frame []byte // what is left of the current DATA frame
	var whole []byte // the same buffer, to give back
	for {
		if frame == nil {
			var err error
			if whole, err = t.nextFrame(ctx); whole == nil {
				return err
			}
			frame = whole
			t.offset -= datachannel.DataPrefix // it is written, and paced, but no part of the file
		}
		now := t.clock.Now()
		if o := t.currentOrders(); o != t.orders {
			if err := t.follow(o, now); err != nil {
				return err
			}
		}
		if t.orders.Paused {
			_ = t.pace(0)
			if err := t.wait(ctx, time.Minute); err != nil {
				return err
			}
			continue
		}
		t.checkShortfall(now)
		decision := t.pacer.Next(now, int64(len(frame)))
		if decision.RateBps == 0 && decision.WakeAt < schedule.Forever {
			n, lookAt, err := t.warm(now, decision.WakeAt, t.pacer.RateAt(decision.WakeAt), frame)
			t.wrote(n)
			frame = frame[n:]
			if err == nil {
				err = t.wait(ctx, micros(lookAt-now))
			}
			if err != nil {
				return err
			}
			continue
		}
		if err := t.pace(decision.RateBps); err != nil {
			return err
		}
		allowed, wakeAt, err := t.allowed(now, decision, int64(len(frame)))
		if err != nil {
			return err
		}
		if allowed == 0 {
			if err := t.wait(ctx, micros(wakeAt-now)); err != nil {
				return err
			}
			continue
		}
		if ready, err := t.link.tcp.Writable(blockedFor); err != nil {
			return fmt.Errorf("send: %w", err)
		} else if !ready {
			continue
		}
		n, err := t.link.conn.Write(frame[:min(int64(len(frame)), allowed, decision.Quantum)])
		t.wrote(n)
		if err != nil {
			return fmt.Errorf("send: %w", err)
		}
		if !t.started {
			t.started = true
			t.aside.Go(func() {
				if t.book.StartOnce() {
					t.report(brokerapi.Started, Facts{Bytes: t.gauges.bytes.Load()})
				}
			})
		}
		if frame = frame[n:]; len(frame) == 0 {
			t.src.free <- whole
			frame = nil
		}
	}
}

// wrote takes note of bytes that the kernel has taken.
func (t *transmission) wrote(n int) {
	t.pacer.Wrote(int64(n))
	t.offset += int64(n)
	t.gauges.written.Store(t.offset)
}

// allowed is how much of what the account allows the mechanism allows too, and when to ask again if that is nothing.
func (t *transmission) allowed(now int64, d pacer.Decision, want int64) (bytes, wakeAt int64, err error) {
	gate, holdsWriter := t.limiter.(mechanism.Gate)
	if !holdsWriter || d.RateBps == 0 {
		return d.Write, d.WakeAt, nil
	}
	room, askAt, err := gate.Room(now, d.InHand, d.Ahead)
	if err != nil {
		return 0, 0, fmt.Errorf("send: %w", err)
	}
	if d.Write == 0 {
		return 0, d.WakeAt, nil
	}
	if bytes = min(d.Write, room); bytes < min(2*t.packet, want) {
		return 0, askAt, nil
	}
	return bytes, now, nil
}

// nextFrame is the next DATA frame; nil at the end of the file, with the reason if it came too early.
func (t *transmission) nextFrame(ctx context.Context) ([]byte, error) {
	select {
	case frame, ok := <-t.src.chunks:
		if !ok {
			return nil, t.src.err
		}
		return frame, nil
	case <-t.link.gone:
		return nil, t.link.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// follow takes new orders: the connection stays, the pace changes.
func (t *transmission) follow(o *Orders, now int64) error {
	t.orders, t.nextCheck = o, 0
	if err := t.hold(o.Mechanism); err != nil {
		return err
	}
	style := t.style()
	t.packet = style.Packet
	t.plan = schedule.New(o.Segments)
	missing := o.Volume - t.offset
	owed := int64(0)
	if now < t.plan.End() {
		owed = pacer.Owed(now, t.plan, missing)
	}
	t.pacer = pacer.Start(now, t.plan.Then(o.Fallback), t.clock.Guard(), owed, style)
	t.log.Debug("follow plan", "plan_revision", o.Revision, "segments", len(o.Segments), "missing_bytes", missing, "owed_bytes", owed, "paused", o.Paused,
		"mechanism", t.limiter.Name())
	return nil
}

func (t *transmission) checkShortfall(now int64) {
	if now < t.nextCheck || t.plan.Empty() {
		return
	}
	t.nextCheck = now + shortfallEvery
	if !pacer.Shortfall(now, t.plan, t.orders.Volume-t.offset) {
		return
	}
	t.nextCheck = schedule.Forever // said once for this plan
	revision := t.orders.Revision
	// The rates tell the broker what this pair of hosts reaches, where that is less than what was booked.
	facts := Facts{Bytes: t.gauges.safe.Load(), RateBps: t.pacer.Achieved(now), AppliedBps: t.gauges.applied.Load()}
	t.aside.Go(func() {
		if t.book.ShortfallOnce(revision) {
			t.report(brokerapi.Shortfall, facts)
		}
	})
}

// pace tells the kernel when the rate changes. A rate of 0 is kept by not writing.
func (t *transmission) pace(rateBps int64) error {
	if rateBps == t.rate {
		return nil
	}
	t.rate = rateBps
	if rateBps == 0 {
		t.gauges.applied.Store(0)
		return nil
	}
	held, err := t.limiter.SetRate(rateBps)
	if err != nil {
		return unavailable(err)
	}
	t.gauges.applied.Store(held)
	return t.link.tcp.SetNotSentLowWater(pacer.NotSentLowWater(rateBps))
}

// precise is a wait that is slept by the kernel's high-resolution timer: the runtime's own timers are up to a
// millisecond late.
const precise = 3 * time.Millisecond

// micros is a wait of so many microseconds, at most long enough to look again.
func micros(n int64) time.Duration {
	return time.Duration(min(n, int64(time.Minute/time.Microsecond))) * time.Microsecond
}

// wait sleeps until it is time, or until there is a reason to look again.
func (t *transmission) wait(ctx context.Context, d time.Duration) error {
	if d <= precise {
		nap := unix.NsecToTimespec(int64(max(d, 50*time.Microsecond)))
		_ = unix.Nanosleep(&nap, nil) // an early return is a reason to look again
		select {
		case <-t.link.gone:
			return t.link.err
		default:
			return ctx.Err()
		}
	}
	timer := time.NewTimer(d - precise/2)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.changed:
	case <-t.link.gone:
		return t.link.err
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
