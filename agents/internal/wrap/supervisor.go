// SPDX-License-Identifier: Apache-2.0

// Package wrap supervises a command of a user, so that its connections follow a booked schedule although it knows
// nothing of it: each is held by a duplicate from before it is made, paced by the kernel, and counted; an outer loop
// (package pacing) keeps the sum on the account. It runs as the user who calls it and needs no privilege.
package wrap

import (
	"context"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"bandwidthbroker/agents/internal/flows"
	"bandwidthbroker/agents/internal/local"
	"bandwidthbroker/agents/internal/pacing"
	"bandwidthbroker/agents/internal/schedule"
	"bandwidthbroker/agents/internal/tcpsock"
)

// Options are what a supervisor is started with.
type Options struct {
	Command  []string
	Shim     []string // the arguments with which this program becomes the shim: our process id and the command's arguments follow
	Choice   Choice
	Client   *local.Client
	Limiter  func() pacing.Limiter // for a connection that this process holds by itself
	Signals  <-chan os.Signal
	Messages io.Writer // warnings, for people
	Status   io.Writer // a line that is written over and over; nil: none
}

const (
	tick                = 40 * time.Millisecond
	soon                = 5 * time.Millisecond
	scanEvery     int64 = 35_000  // µs
	progressEvery int64 = 500_000 // µs
	// terminated is how long a command that shall end may take before it is killed.
	terminated = 10 * time.Second
)

// Supervisor follows the orders with one command. Everything in it belongs to the goroutine of Run.
type Supervisor struct {
	Options
	command *command
	streams map[uint64]*stream // by inode
	limits  map[uint64]pacing.Limiter
	passed  map[uint64]bool // sockets that are none of ours
	done    flows.Counts    // of the connections that have ended

	orders    *local.Orders
	plan      schedule.Schedule
	account   *pacing.Account
	applied   int64
	meter     *pacing.Meter
	began     int64 // broker time; 0: not yet
	checkAt   int64
	asked     int64 // bytes sent when the rest was asked for last
	patience  int64 // until the next time
	scanned   int64
	quietFrom int64 // nothing is booked since
	progress  int64
	shown     int64
	wide      int

	admissions chan admission
	gone       chan struct{} // closed when admissions are no longer answered
	ends       string        // why the command was made to end; "": it was not
	interrupts int
	killAt     time.Time
	warned     map[string]bool
	joined     int  // daemons that know what is attached
	deserted   bool // the daemon's mechanism did not hold: this process paces by itself
	slow       bool // see quicken
	roundTrip  int  // sysctl tcp_tso_rtt_log
}

// admission is a connection that waits to be made.
type admission struct {
	connecting
	done chan struct{}
}

// New prepares a supervisor.
func New(o Options) *Supervisor {
	return &Supervisor{
		Options: o, streams: map[uint64]*stream{}, limits: map[uint64]pacing.Limiter{}, passed: map[uint64]bool{}, asked: -1, patience: askAgain,
		admissions: make(chan admission), gone: make(chan struct{}), warned: map[string]bool{}, meter: pacing.NewMeter(pacing.CommandSampling), roundTrip: tcpsock.TSORoundTripLog(),
	}
}

// Run supervises from the first orders to the last report and returns the command's exit code.
func (s *Supervisor) Run(ctx context.Context) (int, error) {
	defer close(s.gone)
	if err := s.firstOrders(ctx); err != nil {
		return CannotRun, err
	}
	// A process of the command's tree that loses its parent becomes our child, and so stays in the tree.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		s.warn("orphans of the command cannot be followed: %v", err)
	}
	var err error
	if s.command, err = prepare(s.Shim, s.Command); err != nil {
		return s.notStarted(err)
	}
	if s.command.listener >= 0 {
		go answerAll(s.command.listener, s.admit)
	} else {
		s.warn("NEW CONNECTIONS ARE FOUND BY LOOKING EVERY %v, NOT BEFORE THEY BEGIN (%s): the first milliseconds of each are not paced",
			tick, s.command.reason)
	}
	if !s.waitForStart(ctx) {
		_ = s.command.talk.Close()
		return s.givenUp()
	}
	if err := s.command.start(); err != nil {
		return s.notStarted(err)
	}
	s.began = s.Client.Now()
	s.Client.Began()
	s.report("started", "", "")
	status := s.supervise()
	return s.finish(status), nil
}

func (s *Supervisor) firstOrders(ctx context.Context) error {
	for s.Client.Orders() == nil {
		select {
		case <-s.Client.News():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	s.follow()
	return nil
}

// follow takes new orders over; it says whether there are any.
func (s *Supervisor) follow() bool {
	o := s.Client.Orders()
	if o == s.orders {
		return false
	}
	now := s.Client.Now()
	if s.orders != nil && s.orders.Revision != o.Revision {
		s.checkAt = now + s.patience
	}
	s.orders = o
	segments := make([]schedule.Segment, 0, len(o.Segments))
	for _, segment := range o.Segments {
		segments = append(segments, schedule.Segment{Begin: segment.Begin, End: segment.End, RateBps: segment.RateBps})
	}
	s.plan = schedule.New(segments)
	lowest := int64(1e12)
	for _, segment := range segments {
		if segment.RateBps > 0 {
			lowest = min(lowest, segment.RateBps)
		}
	}
	owed := int64(0)
	if now < s.plan.End() && s.began > 0 {
		owed = pacing.Owed(now, s.plan, o.Volume-s.sent())
	}
	s.account = pacing.NewAccount(max(now, 0), s.plan.Then(o.Fallback), s.Client.Guard()+pacing.TrainTime(lowest), owed, s.sent(), pacing.OuterTolerances)
	return true
}

// waitForStart waits for the first instant at which something may be sent; false: the transfer is no longer wanted.
func (s *Supervisor) waitForStart(ctx context.Context) bool {
	for {
		s.follow()
		now := s.Client.Now()
		wait := time.Minute
		next, ok := s.account.NextActive(now)
		switch {
		case s.orders.Paused || s.orders.Wait:
		case ok && next <= now:
			return true
		case ok:
			wait = min(wait, time.Duration(next-now)*time.Microsecond)
		}
		if !s.orders.Wait { // a transfer that waits for a late predecessor is moved with it
			s.askForRest(now)
		}
		s.show(now, s.awaits(next-now))
		timer := time.NewTimer(min(wait, time.Second))
		select {
		case <-timer.C:
		case <-s.Client.News():
			if over := s.Client.Over(); over != nil {
				s.ends = over.Detail
				return false
			}
		case got := <-s.Signals:
			s.ends = fmt.Sprintf("%v before it began", got)
			s.interrupts++
			return false
		case <-ctx.Done():
			s.ends = context.Cause(ctx).Error()
			return false
		}
		timer.Stop()
	}
}

// supervise runs until the command has ended and everything that it left to be sent is sent.
func (s *Supervisor) supervise() syscall.WaitStatus {
	var status syscall.WaitStatus
	ended := s.command.ended
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			s.look()
		case a := <-s.admissions:
			s.take(a)
			continue
		case <-s.Client.News():
			if over := s.Client.Over(); over != nil && s.ends == "" {
				s.ends = over.Detail
				s.terminate()
			}
			if s.follow() {
				s.pace(s.Client.Now())
			}
		case got := <-s.Signals:
			s.pass(got)
			continue
		case status = <-ended:
			ended = nil
			s.look()
		}
		if ended == nil && s.drained() {
			return status
		}
		timer.Reset(s.pause())
	}
}

// pause is until when nothing needs to be looked at.
func (s *Supervisor) pause() time.Duration {
	now := s.Client.Now()
	wait := tick
	if s.missing() {
		wait = soon
	}
	if s.applied == 0 {
		wait = min(wait, 2*soon)
		for _, st := range s.streams {
			if st.quiet.rate > 0 && !st.quiet.armed && now-s.quietFrom < fresh {
				wait = time.Millisecond // its last packet must not be missed: see pacing.QuietRate
			}
		}
	}
	if change, ok := s.account.NextChange(now); ok {
		wait = min(wait, time.Duration(change-now)*time.Microsecond)
	}
	return max(wait, 200*time.Microsecond)
}

// missing says that a socket was not found by the last scan, and should be looked for again soon.
func (s *Supervisor) missing() bool {
	for _, st := range s.streams {
		if !st.closed && (st.lost > 0 || (st.spoke > 0 && !st.holder.Holds())) {
			return true
		}
	}
	return false
}

// look is one turn of the outer loop.
func (s *Supervisor) look() {
	now := s.Client.Now()
	for inode, st := range s.streams {
		if st.look(now) {
			s.drop(inode, st)
		}
	}
	if now-s.scanned >= scanEvery {
		s.meter.See(now, s.sent(), s.applied)
	}
	if now-s.scanned >= scanEvery || s.missing() {
		s.scanned = now
		s.scan(now)
	}
	s.pace(now)
	s.askForRest(now)
	if now-s.progress >= progressEvery {
		s.progress = now
		s.Client.Progress(local.Progress{Bytes: s.acked(), AppliedBps: s.applied, Sockets: len(s.streams)})
	}
	s.show(now, "")
	if !s.killAt.IsZero() && time.Now().After(s.killAt) {
		s.kill()
		s.killAt = time.Time{}
	}
}

func (s *Supervisor) sent() int64 {
	total := s.done.Sent
	for _, st := range s.streams {
		total += st.sent()
	}
	return total
}

func (s *Supervisor) acked() int64 {
	total := s.done.Acked
	for _, st := range s.streams {
		total += st.acked()
	}
	return total
}

// rate is what the command sends now, in bit/s.
func (s *Supervisor) rate() int64 {
	var total int64
	for _, st := range s.streams {
		total += st.rate
	}
	return max(0, total)
}

func (s *Supervisor) report(kind, code, detail string) {
	s.Client.Report(local.Report{
		Kind: kind, Revision: s.orders.Revision, Bytes: s.acked(), RateBps: s.rate(), AppliedBps: s.applied, Code: code, Detail: detail,
	})
}
