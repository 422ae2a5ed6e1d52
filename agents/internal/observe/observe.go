// SPDX-License-Identifier: Apache-2.0

// Package observe is the mode in which another program moves the data: the packets of a transfer are put into a class of
// their own, which holds them to the booked rate and counts them. It needs no word from their sender.
package observe

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"bandwidthbroker/agents/internal/agentstate"
	"bandwidthbroker/agents/internal/brokerapi"
	"bandwidthbroker/agents/internal/failure"
	"bandwidthbroker/agents/internal/mover"
	"bandwidthbroker/agents/internal/schedule"
	"bandwidthbroker/agents/internal/tclinux"
	"bandwidthbroker/agents/internal/wirerate"
)

const (
	// ahead is how long before the first booked instant the class is there.
	ahead int64 = 2_000_000 // µs
	// look is how often the class is read.
	look int64 = 100_000
	// retry spaces attempts at what may pass: a name that is not found, a route that is missing.
	retry int64 = 1_000_000
	// renew is how often the kernel is compared with what is wanted although nothing changed: routes do, and people.
	renew int64 = 5_000_000
	// quiet, after the end of what is booked, is taken for the end of the data.
	quiet       int64 = 30_000_000
	nameTimeout       = 3 * time.Second
	// day: there is nothing more to do.
	day int64 = 86_400_000_000
)

// Classes is what is needed of tclinux.Shaper.
type Classes interface {
	Want(owner string, class tclinux.Class) error
	Drop(owner string)
	Sync() ([]tclinux.Operation, error)
	Read(owner string) (tclinux.Reading, error)
	Framing(to netip.Addr, protocol tclinux.Protocol) (wirerate.Framing, error)
}

// Outbox is where events go, and what is remembered across restarts.
type Outbox interface {
	mover.Outbox
	Counted() agentstate.Counted
	Count(agentstate.Counted)
}

// Options are what an observer needs beside its orders.
type Options struct {
	Clock   mover.Clock
	Classes Classes
	Names   Resolver
	Rules   Rules // what this host lets be observed
	Outbox  Outbox
	Log     *slog.Logger
}

// Observer classes and counts the packets of one transfer.
type Observer struct {
	Options
	cancel  context.CancelFunc
	stopped chan struct{}
	orders  atomic.Pointer[mover.Orders]
	changed chan struct{}

	bytes, applied atomic.Int64
	held           atomic.Bool

	// Of the loop alone.
	ended    brokerapi.AgentReportKind // how; nothing while it goes on
	aimed    mover.Match               // what target was made of
	aimedFor string                    // the other host's address then
	target   target
	count    *count
	wireBps  int64 // of the class as it was wanted last; 0: it must be wanted anew
	synced   int64 // when the kernel was brought up to date last
	lastSeen int64 // when payload was counted last
	obstacle string
}

// Start begins to carry out orders.
func Start(options Options, o mover.Orders) *Observer {
	ctx, cancel := context.WithCancel(context.Background())
	made := &Observer{Options: options, cancel: cancel, stopped: make(chan struct{}), changed: make(chan struct{}, 1)}
	made.Log = options.Log.With("transfer", o.Transfer, "role", "observe")
	made.orders.Store(&o)
	var first int64
	if _, err := netip.ParseAddr(o.Match.Address); err == nil {
		// At once, so that a class that an earlier run left is taken over before the rest is swept. A name may take time.
		first = made.step(ctx, made.Clock.Now())
	}
	go func() {
		defer close(made.stopped)
		made.run(ctx, first)
	}()
	return made
}

// Update changes the plan, or the packets that are meant.
func (o *Observer) Update(orders mover.Orders) {
	o.orders.Store(&orders)
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// Stop removes the class. When the transfer goes on after a restart (remove is false), the count is kept.
func (o *Observer) Stop(bool) {
	o.cancel()
	<-o.stopped
}

// Progress is what the class says.
func (o *Observer) Progress() mover.Progress {
	return mover.Progress{Bytes: o.bytes.Load(), AppliedBps: o.applied.Load(), Connected: o.held.Load()}
}

func (o *Observer) run(ctx context.Context, first int64) {
	defer o.leave()
	timer := time.NewTimer(time.Duration(first) * time.Microsecond)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.changed:
		case <-timer.C:
		}
		timer.Reset(time.Duration(o.step(ctx, o.Clock.Now())) * time.Microsecond)
	}
}

// leave removes the class. What it counted last is remembered first.
func (o *Observer) leave() {
	orders := o.orders.Load()
	o.read(orders, o.Clock.Now())
	if o.count != nil {
		o.Outbox.Count(o.count.kept)
	}
	o.Classes.Drop(orders.Transfer)
	if _, err := o.Classes.Sync(); err != nil {
		o.Log.Warn("class not removed", "error", err)
	}
	o.held.Store(false)
}

// step does what is due now and returns after how many microseconds to look again.
func (o *Observer) step(ctx context.Context, now int64) (wait int64) {
	orders := o.orders.Load()
	booked := schedule.New(orders.Segments)
	if o.ended == brokerapi.Failed {
		return day
	}
	if begin := booked.Begin(); booked.Empty() || now < begin-ahead {
		if err := o.refused(ctx, orders); err != nil {
			return o.obstructed(err, now, booked.End())
		}
		return min(max(begin-ahead-now, look), 60_000_000)
	}
	// Steps down come early by the guard and steps up late, as with the mover.
	plan := booked.Guarded(o.Clock.Guard()).Then(orders.Fallback)
	rate := plan.RateAt(now)
	if orders.Paused {
		rate = 0
	}
	wait = look
	if next, more := plan.NextChange(now); more {
		wait = min(wait, next-now)
	}
	if err := o.hold(ctx, orders, rate, now); err != nil {
		return o.obstructed(err, now, booked.End())
	}
	o.obstacle = ""
	o.read(orders, now)
	if o.ended == "" {
		o.judge(orders, now, booked.End())
	}
	return max(wait, 0)
}

// hold gives the packets their class, or another rate.
func (o *Observer) hold(ctx context.Context, orders *mover.Orders, rate, now int64) error {
	if o.aimed != orders.Match || o.aimedFor != orders.Peer.Address || o.count == nil {
		if err := o.aim(ctx, orders); err != nil {
			return err
		}
	}
	wire := max(o.count.framing.Wire(rate), tclinux.MinRateBps)
	if wire == o.wireBps && now < o.synced+renew {
		return nil
	}
	class := tclinux.Class{Remote: o.target.addresses[0], RateBps: wire, Matches: o.target.matches}
	if err := o.Classes.Want(orders.Transfer, class); err != nil {
		return err
	}
	o.Outbox.Count(o.count.kept)
	o.synced, o.wireBps = now, 0
	done, err := o.Classes.Sync()
	for _, op := range done {
		o.Log.Debug("tc", "operation", op.String())
	}
	reading, missing := o.Classes.Read(orders.Transfer)
	if missing != nil {
		return errors.Join(err, missing)
	}
	o.wireBps = wire
	o.applied.Store(min(rate, o.count.framing.Carried(reading.RateBps)))
	o.held.Store(true)
	return nil
}

func (o *Observer) aim(ctx context.Context, orders *mover.Orders) error {
	ctx, cancel := context.WithTimeout(ctx, nameTimeout)
	defer cancel()
	aimed, err := o.permitted(ctx, orders)
	if err != nil {
		return err
	}
	full, err := o.Classes.Framing(aimed.addresses[0], aimed.protocol)
	if err != nil {
		return err
	}
	kept := o.Outbox.Counted()
	if o.count != nil {
		kept = o.count.kept
	}
	o.aimed, o.aimedFor, o.target, o.count, o.wireBps = orders.Match, orders.Peer.Address, aimed, newCount(kept, full), 0
	o.bytes.Store(kept.Payload)
	return nil
}

// permitted is which packets are meant, if this host lets them be observed; otherwise a *failure.Failure.
func (o *Observer) permitted(ctx context.Context, orders *mover.Orders) (target, error) {
	aimed, err := aim(ctx, orders.Match, o.Names)
	if err != nil {
		return target{}, err
	}
	peer, port, err := peerOf(ctx, orders, o.Names)
	if err != nil {
		return target{}, err
	}
	if refused := o.Rules.permit(aimed, peer, port); refused != nil {
		return target{}, refused
	}
	return aimed, nil
}

// refused finds out ahead of the booked time what needs no names to be looked up.
func (o *Observer) refused(ctx context.Context, orders *mover.Orders) error {
	_, err := netip.ParseAddr(orders.Match.Address)
	at, err2 := netip.ParseAddrPort(orders.Peer.Address)
	if err != nil || err2 != nil || !at.IsValid() {
		return nil
	}
	_, err = o.permitted(ctx, orders)
	return err
}

// read takes what the class counted.
func (o *Observer) read(orders *mover.Orders, now int64) {
	if o.count == nil || !o.held.Load() {
		return
	}
	reading, err := o.Classes.Read(orders.Transfer)
	if err != nil {
		o.Log.Warn("the class cannot be read, made anew", "error", err)
		o.wireBps = 0
		return
	}
	before := o.count.kept.Payload
	payload := o.count.take(reading.Bytes, reading.Packets)
	if payload > before {
		o.lastSeen = now
	}
	o.bytes.Store(payload)
	if o.count.learn() {
		o.Log.Debug("packets are of another size", "payload", o.count.framing.Payload, "headers", o.count.framing.Headers)
	}
}

// judge reports what the count means.
func (o *Observer) judge(orders *mover.Orders, now, end int64) {
	payload := o.bytes.Load()
	silent := now > end+quiet && now > o.lastSeen+quiet
	facts := mover.Facts{Bytes: payload, AppliedBps: o.applied.Load()}
	if payload > 0 && o.Outbox.StartOnce() {
		o.Outbox.Count(o.count.kept)
		o.report(brokerapi.Started, facts)
	}
	switch {
	case payload >= orders.Volume && payload > 0:
		o.end(brokerapi.Finished, facts)
	case silent && payload > 0:
		o.Log.Info("the packets have ended before the volume", "bytes", payload, "volume", orders.Volume)
		o.end(brokerapi.Finished, facts)
	case silent:
		facts.Code, facts.Detail = failure.NothingObserved, "no packet matched until "+time.UnixMicro(now).UTC().Format(time.RFC3339)
		o.end(brokerapi.Failed, facts)
	}
}

// obstructed deals with what is in the way: for ever, or until what is booked is over.
func (o *Observer) obstructed(err error, now, end int64) (wait int64) {
	o.held.Store(false)
	o.applied.Store(0)
	o.wireBps = 0
	if err.Error() != o.obstacle {
		o.obstacle = err.Error()
		o.Log.Warn("the packets cannot be classed", "error", err)
	}
	code, detail := failure.MechanismUnavailable, "htb: "+err.Error()
	final := failure.Of(err)
	if final != nil {
		code, detail = final.Code, final.Detail
	}
	foreign := new(tclinux.ForeignQdisc)
	if passes := final == nil && !errors.As(err, &foreign) && !errors.Is(err, tclinux.ErrNoPrivilege); passes && now < end || o.ended != "" {
		return retry
	}
	o.end(brokerapi.Failed, mover.Facts{Bytes: o.bytes.Load(), Code: code, Detail: detail})
	return retry
}

// end reports the outcome. The class stays, and follows what is booked, until the broker no longer lists the transfer.
func (o *Observer) end(outcome brokerapi.AgentReportKind, facts mover.Facts) {
	if !o.report(outcome, facts) {
		return
	}
	o.ended = outcome
	if err := o.Outbox.End(outcome); err != nil {
		o.Log.Error("outcome not saved", "error", err)
	}
	o.Log.Info("observed", "outcome", outcome, "bytes", facts.Bytes, "code", facts.Code, "detail", facts.Detail)
}

// report says whether the event is safe; the next look tries again otherwise.
func (o *Observer) report(kind brokerapi.AgentReportKind, facts mover.Facts) bool {
	if err := o.Outbox.Report(kind, facts); err != nil {
		o.Log.Error("report not kept", "kind", kind, "error", err)
		return false
	}
	return true
}
