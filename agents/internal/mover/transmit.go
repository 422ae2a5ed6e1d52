// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"bandwidthbroker/agents/internal/brokerapi"
	"bandwidthbroker/agents/internal/datachannel"
	"bandwidthbroker/agents/internal/mechanism"
	"bandwidthbroker/agents/internal/pacing"
	"bandwidthbroker/agents/internal/schedule"
	"bandwidthbroker/agents/internal/signal"
)

// transmission is the paced part of one connection: from RESUME to END.
type transmission struct {
	*Sender
	link   *link
	src    *source
	offset int64 // next byte of the file to be written

	orders    *Orders // being followed
	pass      Pass    // of the gate
	goesOn    bool    // at its last rate, beyond the booked end
	plan      schedule.Schedule
	pacer     *pacing.Pacer
	limiter   pacing.Limiter
	holder    mechanism.Name // that limiter belongs to
	asked     mechanism.Name // by the orders that limiter was chosen for
	rate      int64          // last asked of it
	packet    int64          // payload of a full segment
	warming   bool           // see warm.go
	warmedAt  int64          // broker time
	riseAt    int64          // broker time of the next look
	risen     int64          // bytes that left singly for the step up that comes
	room      int64          // bytes that the kernel was asked to keep for what is in flight
	started   bool
	aside     sync.WaitGroup // reports being written to disk: the pace does not wait for an fsync
	nextCheck int64          // for a shortfall, broker time
	settled   bool           // a loss was seen, and its consequence drawn
	settleAt  int64          // broker time of the next look for one
}

// blockedFor is how long a full kernel queue may keep us from looking at new orders.
const blockedFor = 50 * time.Millisecond

// standing is how often a transfer that waits for a signal looks whether one is expected.
const standing int64 = 1_000_000 // µs

// postponedBy is how far ahead the first booked instant must lie for a connection to be given up until then.
const postponedBy = 10 * connectAhead

// errPostponed ends a connection that is not needed yet.
var errPostponed = errors.New("the transfer was postponed")

// overdue is how soon a signal is expected that should have been here.
const overdue int64 = 5_000 // µs

// How often a running transfer asks itself whether the plan still carries the rest, and how often near its end.
const (
	shortfallEvery int64 = 200_000 // µs
	shortfallNear  int64 = 20_000  // µs
)

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
		if err := t.look(now); err != nil {
			return err
		}
		if t.postponed(now) {
			return errPostponed
		}
		if t.orders.Paused || !t.pass.Open {
			n, err := t.stand(ctx, now, frame)
			t.wrote(n)
			if frame = frame[n:]; err != nil {
				return err
			}
			continue
		}
		t.pacer.Guard(t.clock.Guard())
		t.settle(now)
		t.checkShortfall(now)
		decision := t.pacer.Next(now, int64(len(frame)))
		if decision.RateBps == 0 && decision.WakeAt < schedule.Forever {
			if !t.warming {
				_ = t.pace(0)
			}
			n, lookAt, err := t.warm(now, decision.WakeAt, t.pacer.RateAt(decision.WakeAt), frame)
			t.wrote(n)
			frame = frame[n:]
			if err == nil {
				err = t.wait(ctx, t.nap(now, lookAt))
			}
			if err != nil {
				return err
			}
			continue
		}
		t.warmed()
		if err := t.pace(decision.RateBps); err != nil {
			return err
		}
		single, riseAt, err := t.rise(now, frame)
		t.wrote(single)
		if frame = frame[single:]; err != nil {
			return err
		}
		allowed, wakeAt, err := t.allowed(now, decision, int64(len(frame)))
		if err != nil {
			return err
		}
		wakeAt = min(wakeAt, riseAt)
		if allowed == 0 {
			if err := t.wait(ctx, t.nap(now, wakeAt)); err != nil {
				return err
			}
			continue
		}
		patience := blockedFor
		if t.goesOn {
			patience = time.Duration(leasedWait) * time.Microsecond
		}
		if ready, err := t.link.tcp.Writable(patience); err != nil {
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
				if t.outbox.StartOnce() {
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

// postponed says that a transfer which has not begun will not soon, by a plan that came after the connection: its receiver holds the disk space for
// as long as there is a connection.
func (t *transmission) postponed(now int64) bool {
	if t.started || t.link.resume >= chunkSize || t.orders.Paused {
		return false
	}
	next, booked := t.plan.Then(t.orders.Fallback).NextActive(now)
	return booked && min(next, t.gate.Expected())-now > postponedBy
}

// wrote takes note of bytes that the kernel has taken.
func (t *transmission) wrote(n int) {
	t.pacer.Wrote(int64(n))
	t.offset += int64(n)
	t.gauges.written.Store(t.offset)
}

// allowed is how much of what the account allows the mechanism allows too, and when to ask again if that is nothing.
func (t *transmission) allowed(now int64, d pacing.Decision, want int64) (bytes, wakeAt int64, err error) {
	window, holdsWriter := t.limiter.(mechanism.SendWindow)
	if !holdsWriter || d.RateBps == 0 {
		return d.Write, d.WakeAt, nil
	}
	room, askAt, err := window.Room(now, mechanism.Budget{
		RateBps: d.RateBps, InHand: d.InHand, Ahead: d.Ahead, Lately: func(micros int64) int64 { return t.pacer.Lately(now, micros) },
	})
	if err != nil {
		return 0, 0, fmt.Errorf("send: %w", err)
	}
	if d.Write == 0 {
		return 0, d.WakeAt, nil
	}
	if bytes = min(d.Write, room); bytes < min(2*t.packet, d.Quantum, want) {
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

// look finds out whether something has changed: the orders, the gate, or what comes after the booked end.
func (t *transmission) look(now int64) error {
	o, pass := t.currentOrders(), t.gate.Pass(now)
	if len(o.EndSignals) > 0 {
		inFlight, _ := t.link.tcp.InFlight()
		t.tail.Look(now, o.Volume-t.offset, t.offset-inFlight)
	}
	goesOn := pass.Open && t.tail.GoesOn(now)
	if o == t.orders && pass == t.pass && goesOn == t.goesOn {
		return nil
	}
	t.pass, t.goesOn = pass, goesOn
	return t.follow(o, now)
}

// stand keeps the connection while nothing may be sent, and prepares it for the moment of the signal. It returns how many
// bytes of the frame went into that.
func (t *transmission) stand(ctx context.Context, now int64, frame []byte) (sent int, err error) {
	if lost := t.gate.Lost(); lost != nil {
		return 0, lost
	}
	if t.orders.Paused {
		_ = t.pace(0)
		if t.pass.Open {
			t.drain(t.link, t.link.tcp.Written(), signal.Paused)
		}
		return 0, t.wait(ctx, time.Minute)
	}
	lookAt := now + standing
	if begin := t.gate.Expected(); begin < schedule.Forever {
		if sent, lookAt, err = t.warm(now, max(begin, now+overdue), t.plan.RateAt(t.plan.Begin()), frame); err != nil {
			return sent, err
		}
	}
	return sent, t.wait(ctx, micros(min(lookAt-now, standing)))
}

// nap is how long to wait for an instant: not beyond the booked end, at which successors learn how it goes on.
func (t *transmission) nap(now, until int64) time.Duration {
	if end := t.plan.End(); end > now && len(t.orders.EndSignals) > 0 {
		until = min(until, end)
	}
	return micros(until - now)
}

// follow takes new orders: the connection stays, the pace changes.
func (t *transmission) follow(o *Orders, now int64) error {
	t.orders, t.nextCheck = o, 0
	if err := t.holdBy(o.Mechanism); err != nil {
		return err
	}
	style := t.style()
	t.packet = style.Packet
	t.plan = Schedule(o, t.pass)
	missing := o.Volume - t.offset
	owed := int64(0)
	if now < t.plan.End() {
		owed = pacing.Owed(now, t.plan, missing)
	}
	after := o.Fallback
	if t.goesOn {
		after = t.plan.RateAt(t.plan.End() - 1)
	}
	t.pacer = pacing.NewPacer(now, t.plan.Then(after), t.clock.Guard(), owed, style)
	t.log.Debug("follow plan", "plan_revision", o.Revision, "segments", len(o.Segments), "missing_bytes", missing, "owed_bytes", owed, "paused", o.Paused,
		"mechanism", t.holder)
	return nil
}

func (t *transmission) checkShortfall(now int64) {
	if now < t.nextCheck || t.plan.Empty() {
		return
	}
	t.nextCheck = now + shortfallEvery
	if t.plan.End()-now < pacing.NearEnd+shortfallEvery {
		t.nextCheck = now + shortfallNear
	}
	missing := t.orders.Volume - t.offset
	short := pacing.Shortfall(now, t.plan, missing) || pacing.EndsShort(now, t.plan, missing+t.pacer.Waiting(now))
	if !short || t.tail.Absorbs(missing-t.plan.Bytes(now, t.plan.End())) {
		return
	}
	t.nextCheck = schedule.Forever // said once for this plan
	revision := t.orders.Revision
	// The rates tell the broker what this pair of hosts reaches, where that is less than what was booked.
	facts := Facts{Bytes: t.gauges.safe.Load(), RateBps: t.pacer.Achieved(), AppliedBps: t.gauges.applied.Load()}
	t.aside.Go(func() {
		if t.outbox.ShortfallOnce(revision) {
			t.report(brokerapi.Shortfall, facts)
		}
	})
}

// settle has another congestion control take over once something was lost (link.go says why).
func (t *transmission) settle(now int64) {
	if t.settled || now < t.settleAt {
		return
	}
	t.settleAt = now + shortfallEvery
	if info, err := t.link.tcp.Info(); err == nil && lost(info) {
		t.settled = true
		_, _ = t.link.tcp.ChooseCongestionControl(afterLoss...)
	}
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
	return t.link.tcp.SetNotSentLowWater(pacing.NotSentLowWater(rateBps))
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
