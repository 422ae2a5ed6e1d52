// SPDX-License-Identifier: Apache-2.0

// Package wrap supervises a command of somebody, so that its connections follow a booked schedule although it knows
// nothing of it: each is held by a duplicate from before it is made, paced by the kernel, and counted; an outer loop
// (package share) keeps the sum on the account. It runs as the user who calls it and needs no privilege.
package wrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"bandwidthbroker/agents/internal/failure"
	"bandwidthbroker/agents/internal/flows"
	"bandwidthbroker/agents/internal/local"
	"bandwidthbroker/agents/internal/mechanism"
	"bandwidthbroker/agents/internal/pacer"
	"bandwidthbroker/agents/internal/schedule"
	"bandwidthbroker/agents/internal/share"
)

// Limiter holds one connection, or several together; see mechanism.Limiter.
type Limiter interface {
	Attach(s mechanism.Socket) error
	Detach(s mechanism.Socket)
	SetRate(rateBps int64) (heldBps int64, err error)
	Close() error
}

// Options are what a supervisor is started with.
type Options struct {
	Command  []string
	Shim     []string // the arguments with which this program becomes the shim: our process id and the command's arguments follow
	Choice   Choice
	Client   *local.Client
	Limiter  func() Limiter // for a connection that this process holds by itself
	Signals  <-chan os.Signal
	Messages io.Writer // warnings, for people
	Status   io.Writer // a line that is written over and over; nil: none
}

const (
	tick                = 40 * time.Millisecond
	soon                = 5 * time.Millisecond
	scanEvery     int64 = 35_000  // µs
	progressEvery int64 = 500_000 // µs
	statusEvery   int64 = 500_000
	checkEvery    int64 = 200_000 // for a shortfall
	// askAgain is how long a new plan is followed before another one is asked for, askSeldom the longest: a command that
	// thinks for a while would have the broker plan all the time.
	askAgain  int64 = 1_000_000
	askSeldom int64 = 30_000_000
	// edges is how much is booked beyond what is missing when the rest is booked anew.
	edges int64 = 300_000
	// terminated is how long a command that shall end may take before it is killed.
	terminated = 10 * time.Second
	// handOver is how long the end of the command waits for a daemon that is away to take the reports.
	handOver = 15 * time.Second
)

// Supervisor follows the orders with one command. Everything in it belongs to the goroutine of Run.
type Supervisor struct {
	Options
	command *command
	streams map[uint64]*stream // by inode
	limits  map[uint64]Limiter
	passed  map[uint64]bool // sockets that are none of ours
	done    flows.Counts    // of the connections that have ended

	orders    *local.Orders
	plan      schedule.Schedule
	account   *share.Account
	applied   int64
	achieved  achieved
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
	gone       chan struct{} // closed when nobody answers admissions any more
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
		Options: o, streams: map[uint64]*stream{}, limits: map[uint64]Limiter{}, passed: map[uint64]bool{}, asked: -1, patience: askAgain,
		admissions: make(chan admission), gone: make(chan struct{}), warned: map[string]bool{}, roundTrip: roundTripLog(),
	}
}

// Run supervises from the first orders to the last report and answers the command's exit code.
func (s *Supervisor) Run(ctx context.Context) (int, error) {
	defer close(s.gone)
	if err := s.firstOrders(ctx); err != nil {
		return CannotRun, err
	}
	// Whoever loses its parent in the command's tree becomes our child, and is still in the tree.
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
	least := int64(1e12)
	for _, segment := range segments {
		if segment.RateBps > 0 {
			least = min(least, segment.RateBps)
		}
	}
	owed := int64(0)
	if now < s.plan.End() && s.began > 0 {
		owed = pacer.Owed(now, s.plan, o.Volume-s.sent())
	}
	s.account = share.Open(max(now, 0), s.plan.Then(o.Fallback), s.Client.Guard()+share.Train(least), owed, s.sent())
	return true
}

// waitForStart waits for the first instant at which something may be sent; false: nobody wants it any more.
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
		s.askForRest(now)
		s.show(now, "starts in "+(time.Duration(max(0, next-now))*time.Microsecond).Round(time.Second).String())
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
				wait = time.Millisecond // its last packet must not be missed: see share.Hold
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
		s.achieved.see(now, s.sent(), s.applied)
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

// wanted is how much the broker shall book anew: what is missing, what waits beyond that, and room for a start and an end. A
// slice that is hardly longer than its guarded edges would carry nothing.
func (s *Supervisor) wanted(sent int64) int64 {
	missing := max(0, s.orders.Volume-sent)
	for _, st := range s.streams {
		missing += st.counts.Sent - st.counts.Acked // may be lost on its way
	}
	return missing + schedule.Volume(s.peak(), edges)
}

// backlog says that the command has handed over bytes that wait for their time.
func (s *Supervisor) backlog() bool {
	for _, st := range s.streams {
		if st.counts.Unsent > 0 {
			return true
		}
	}
	return false
}

// rate is what the command sends now, in bit/s.
func (s *Supervisor) rate() int64 {
	var total int64
	for _, st := range s.streams {
		total += st.rate
	}
	return max(0, total)
}

// askForRest tells the broker when what is still booked cannot carry what is missing.
func (s *Supervisor) askForRest(now int64) {
	if now < s.checkAt || s.plan.Empty() || s.orders.Paused {
		return
	}
	s.checkAt = now + checkEvery
	sent := s.sent()
	// A command has its own idea of how much it sends: behind the end of the plan it is short when it wants to send more.
	wants := s.backlog() || (sent < s.orders.Volume && len(s.streams) > 0)
	if !pacer.Shortfall(now, s.plan, s.orders.Volume-sent) && (now < s.plan.End() || !wants) {
		return
	}
	// Who did not use what was booked anew the last time is asked for less and less often.
	s.patience = min(2*s.patience, askSeldom)
	if sent != s.asked {
		s.patience = askAgain
	}
	s.checkAt, s.asked = schedule.Forever, sent // said once for this plan
	s.Client.Report(local.Report{
		Kind: "shortfall", Revision: s.orders.Revision, Bytes: s.orders.Volume - min(s.orders.Volume, s.wanted(sent)), RateBps: s.achieved.rate(),
		AppliedBps: s.applied,
	})
}

func (s *Supervisor) report(kind, code, detail string) {
	s.Client.Report(local.Report{
		Kind: kind, Revision: s.orders.Revision, Bytes: s.acked(), RateBps: s.rate(), AppliedBps: s.applied, Code: code, Detail: detail,
	})
}

// notStarted reports a command that could not be executed.
func (s *Supervisor) notStarted(err error) (int, error) {
	code := CannotRun
	var cannot *CannotStart
	if errors.As(err, &cannot) {
		code = cannot.Code
	}
	s.report("failed", failure.CommandFailed, "cannot be started: "+err.Error())
	s.deliver()
	return code, err
}

// givenUp ends what has not begun.
func (s *Supervisor) givenUp() (int, error) {
	if s.Client.Over() == nil {
		s.report("failed", failure.CommandFailed, "given up: "+s.ends)
		s.deliver()
	}
	if s.interrupts > 0 {
		return 128 + int(syscall.SIGINT), errors.New(s.ends)
	}
	return CannotRun, errors.New(s.ends)
}

// finish reports how the command ended and answers its exit code.
func (s *Supervisor) finish(status syscall.WaitStatus) int {
	code := status.ExitStatus()
	detail := fmt.Sprintf("%s: exit status %d", s.Command[0], code)
	if status.Signaled() {
		code = 128 + int(status.Signal())
		detail = fmt.Sprintf("%s: ended by signal %d (%v)", s.Command[0], int(status.Signal()), status.Signal())
	}
	if s.ends != "" {
		detail += " (" + s.ends + ")"
	}
	s.Client.Progress(local.Progress{Bytes: s.acked()})
	if s.Client.Over() == nil {
		if code == 0 {
			s.report("finished", "", "")
		} else {
			s.report("failed", failure.CommandFailed, detail)
		}
		s.deliver()
	}
	s.show(s.Client.Now(), "")
	s.leaveLine()
	if s.command.listener >= 0 {
		s.leaveAnswerer()
	}
	return code
}

// deliver waits until the daemon has all reports.
func (s *Supervisor) deliver() {
	for deadline := time.Now().Add(handOver); s.Client.Untaken() > 0; {
		if time.Now().After(deadline) {
			s.warn("THE AGENT DID NOT TAKE %d REPORTS: it will tell the broker that the supervisor was lost", s.Client.Untaken())
			return
		}
		timer := time.NewTimer(time.Second)
		select {
		case <-s.Client.News():
		case <-timer.C:
		case <-s.Signals: // whoever is impatient has seen the command end
			return
		}
		timer.Stop()
	}
}

func (s *Supervisor) warn(format string, values ...any) {
	text := fmt.Sprintf(format, values...)
	if !s.warned[text] {
		s.warned[text] = true
		s.leaveLine()
		fmt.Fprintln(s.Messages, "bwb-agent: "+text)
	}
}

// show keeps the status line up to date.
func (s *Supervisor) show(now int64, instead string) {
	if s.Status == nil || (now-s.shown < statusEvery && instead == "") {
		return
	}
	s.shown = now
	text := instead
	if text == "" {
		text = fmt.Sprintf("%s of %s, %s (booked %s), %d connections", size(s.acked()), size(s.orders.Volume), rateText(s.rate()),
			rateText(s.plan.RateAt(now)), len(s.streams))
	}
	if !s.Client.Connected() {
		text += ", agent away"
	}
	s.wide = max(s.wide, len(text))
	fmt.Fprintf(s.Status, "\r%s%s", text, strings.Repeat(" ", s.wide-len(text)))
}

func (s *Supervisor) leaveLine() {
	if s.Status != nil && s.wide > 0 {
		fmt.Fprintln(s.Status)
		s.wide = 0
	}
}
