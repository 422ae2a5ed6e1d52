// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"bandwidthbroker/agents/internal/brokerapi"
	"bandwidthbroker/agents/internal/failure"
	"bandwidthbroker/agents/internal/local"
	"bandwidthbroker/agents/internal/mechanism"
	"bandwidthbroker/agents/internal/mover"
	"bandwidthbroker/agents/internal/signal"
)

const (
	// supervisorGrace is how long a supervisor that lost its line may take to come back; one that is dead does not.
	supervisorGrace = 10 * time.Second
	deadGrace       = 500 * time.Millisecond
	// restartGrace: after a restart of ours, the supervisors come back by themselves.
	restartGrace = 15 * time.Second
)

// startWrapped makes a transfer's orders available to the supervisor of its command. a.mu is held.
func (a *Agent) startWrapped(t *transfer) {
	if outcome := t.Outcome(); outcome != "" {
		a.endedBefore(t.orders, outcome) // the broker has the report, or it waits in the spool
		return
	}
	w := &wrapped{agent: a, outbox: t.outbox, log: a.log.With("transfer", t.orders.Transfer, "role", "wrapped"), orders: t.orders}
	w.began = t.Began()
	w.turn = newTurn(a.signals, a.clock, w.began, w.signalled)
	o := t.orders
	w.turn.update(&o)
	t.mover, t.progress = w, w.Progress
	if w.began {
		w.lost = time.AfterFunc(restartGrace, w.giveUp)
	}
	go w.takeTurn()
}

// wrapped is a transfer whose data a command of a user moves. It stands where the mover's sender stands.
type wrapped struct {
	agent  *Agent
	outbox *outbox
	log    *slog.Logger

	mu        sync.Mutex
	orders    mover.Orders
	line      *local.Line // to the supervisor; nil: there is none
	pid       int         // of the supervisor
	began     bool
	stopped   bool
	progress  local.Progress
	mechanism mechanism.Name
	lost      *time.Timer // until then a supervisor may come back
	turn      *turn
	aside     sync.WaitGroup // reports of signals, written beside the sending: fsync is slow
}

// join takes a supervisor, the only one.
func (w *wrapped) join(line *local.Line, pid int, began bool) *local.Refusal {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.line != nil {
		return &local.Refusal{Code: "busy", Detail: fmt.Sprintf("process %d supervises a command for this transfer already", w.pid)}
	}
	if w.stopped {
		return &local.Refusal{Code: "ended", Detail: "the transfer is no longer wanted"}
	}
	chosen, err := w.agent.mechanisms.ChooseForeign(w.orders.Mechanism)
	if err != nil {
		return &local.Refusal{Code: failure.MechanismUnavailable, Detail: err.Error()}
	}
	w.mechanism = chosen
	if w.lost != nil {
		w.lost.Stop()
		w.lost = nil
	}
	w.line, w.pid, w.began = line, pid, w.began || began
	// Time comes first: the schedule means nothing without it.
	if line.Send(local.Message{Time: w.agent.localTime()}, -1) == nil {
		w.push()
	}
	return nil
}

// push sends the orders as they are. w.mu is held.
func (w *wrapped) push() {
	if w.line == nil {
		return
	}
	o := w.orders
	told := local.Orders{
		Transfer: o.Transfer, Revision: o.Revision, Volume: o.Volume, Fallback: o.Fallback, Paused: o.Paused, Peer: o.Peer.Host,
		Mechanism: string(w.mechanism), Remote: w.mechanism != mechanism.Pacing,
		Wait: !w.turn.pass.Open, After: o.StartAfter.Predecessor.Transfer,
	}
	for _, s := range o.Segments {
		earlier := w.turn.pass.Advance
		told.Segments = append(told.Segments, local.Segment{Begin: s.Begin - earlier, End: s.End - earlier, RateBps: s.RateBps})
	}
	if err := w.line.Send(local.Message{Orders: &told}, -1); err != nil {
		w.log.Warn("orders not told", "error", err)
		w.line.Close()
	}
}

// takeTurn waits for the signal to start, has the command begin, and tells the successors when the link is free.
func (w *wrapped) takeTurn() {
	for {
		timer := time.NewTimer(w.look())
		select {
		case <-w.turn.changed:
			timer.Stop()
		case <-timer.C:
		case <-w.turn.over:
			timer.Stop()
			return
		}
	}
}

// look returns when to look again.
func (w *wrapped) look() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return time.Hour
	}
	was := w.turn.pass
	lost, again := w.turn.look(w.progress.Bytes)
	switch {
	case lost != nil && !w.began && w.outbox.Outcome() == "":
		why := &local.Refusal{Code: lost.Code, Detail: lost.Detail}
		w.fail(why)
		if w.line != nil {
			_ = w.line.Send(local.Message{Over: why}, -1)
		}
	case w.turn.pass != was:
		w.push()
	}
	return again
}

// signalled reports an event of a start signal.
func (w *wrapped) signalled(code, detail string) {
	w.log.Info("signal", "code", code, "detail", detail)
	w.aside.Go(func() {
		if err := w.outbox.Report(brokerapi.Signal, mover.Facts{Bytes: w.Progress().Bytes, Code: code, Detail: detail}); err != nil {
			w.log.Error("report not kept", "kind", brokerapi.Signal, "error", err)
		}
	})
}

// converse hears the supervisor until the line breaks.
func (w *wrapped) converse(line *local.Line) {
	var holding held
	defer func() {
		if err := holding.close(); err != nil {
			w.log.Error("mechanism not undone", "mechanism", w.mechanism, "error", err)
		}
	}()
	for {
		m, fd, err := line.Receive()
		var malformed *local.Malformed
		switch {
		case errors.As(err, &malformed):
			w.log.Warn("the supervisor says what is no message", "error", err)
		case err != nil:
			return
		case m.Progress != nil:
			w.mu.Lock()
			w.progress = *m.Progress
			w.mu.Unlock()
		case m.Attach != nil && fd >= 0:
			if err := holding.attach(w.agent.mechanisms, w.mechanism, w.outbox.transfer, *m.Attach, fd); err != nil {
				w.log.Error("connection not held", "mechanism", w.mechanism, "error", err)
				_ = line.Send(local.Message{Rate: &local.Rate{Error: err.Error()}}, -1)
			}
		case m.Detach != nil:
			holding.detach(m.Detach.Socket)
		case m.Rate != nil:
			answer := holding.rate(m.Rate.Bps)
			_ = line.Send(local.Message{Rate: &answer}, -1)
		case m.Report != nil:
			if err := w.take(*m.Report); err != nil {
				w.log.Error("report not kept, the supervisor will send it again", "kind", m.Report.Kind, "error", err)
				return
			}
			_ = line.Send(local.Message{Taken: &local.Taken{Number: m.Report.Number}}, -1)
		}
	}
}

// take keeps an event. The supervisor sends it again when it is not sure that it arrived: each counts once.
func (w *wrapped) take(r local.Report) error {
	kind := brokerapi.AgentReportKind(r.Kind)
	facts := mover.Facts{Bytes: r.Bytes, RateBps: r.RateBps, AppliedBps: r.AppliedBps, Code: r.Code, Detail: r.Detail}
	switch kind {
	case brokerapi.Started:
		w.mu.Lock()
		w.began = true
		w.mu.Unlock()
		if !w.outbox.StartOnce() {
			return nil
		}
	case brokerapi.Shortfall:
		if !w.outbox.ShortfallOnce(r.Revision) {
			return nil
		}
	case brokerapi.Finished, brokerapi.Failed:
		w.mu.Lock()
		w.progress.Bytes = r.Bytes
		w.turn.release(0, causeOf(kind)) // the supervisor has seen everything acknowledged
		w.mu.Unlock()
		if w.outbox.Outcome() != "" {
			return nil
		}
		if err := w.outbox.Report(kind, facts); err != nil {
			return err
		}
		w.log.Info("command ended", "outcome", kind, "bytes", r.Bytes, "code", r.Code, "detail", r.Detail)
		return w.outbox.End(kind)
	}
	return w.outbox.Report(kind, facts)
}

// leave takes note that the supervisor's line is broken.
func (w *wrapped) leave(line *local.Line) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.line != line {
		return
	}
	w.line = nil
	if w.stopped {
		w.turn.release(0, signal.Cancelled) // the command is gone with its supervisor
		w.turn.leave()
	}
	if w.stopped || !w.began || w.outbox.Outcome() != "" {
		return
	}
	grace := supervisorGrace
	if errors.Is(syscall.Kill(w.pid, 0), syscall.ESRCH) {
		grace = deadGrace
	}
	w.log.Warn("the supervisor of the command is gone", "pid", w.pid, "grace", grace)
	w.lost = time.AfterFunc(grace, w.giveUp)
}

// giveUp reports a command that is no longer supervised.
func (w *wrapped) giveUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.line != nil || w.stopped || w.outbox.Outcome() != "" {
		return
	}
	w.log.Error("transfer failed", "code", failure.SupervisorLost)
	facts := mover.Facts{Bytes: w.progress.Bytes, Code: failure.SupervisorLost, Detail: "bwb-agent exec, which supervised the command, is gone"}
	w.turn.release(0, signal.Failed)
	if err := w.outbox.Report(brokerapi.Failed, facts); err != nil {
		w.log.Error("report not kept", "error", err)
		w.lost = time.AfterFunc(supervisorGrace, w.giveUp)
		return
	}
	if err := w.outbox.End(brokerapi.Failed); err != nil {
		w.log.Error("outcome not saved", "error", err)
	}
}

// fail ends a transfer that cannot be carried out here. w.mu is held.
func (w *wrapped) fail(why *local.Refusal) {
	w.turn.release(0, signal.Failed)
	facts := mover.Facts{Code: why.Code, Detail: why.Detail}
	if err := w.outbox.Report(brokerapi.Failed, facts); err != nil {
		w.log.Error("report not kept", "error", err)
		return
	}
	if err := w.outbox.End(brokerapi.Failed); err != nil {
		w.log.Error("outcome not saved", "error", err)
	}
}

// Update changes the plan of a running command.
func (w *wrapped) Update(o mover.Orders) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.orders = o
	w.turn.update(&o)
	w.push()
}

// Stop ends the conversation. remove: the transfer is no longer wanted, and the command shall end.
func (w *wrapped) Stop(remove bool) {
	w.stop(remove)
	if !remove {
		w.aside.Wait()
	}
}

func (w *wrapped) stop(remove bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	if w.lost != nil {
		w.lost.Stop()
	}
	switch {
	case remove && w.line != nil && w.outbox.Outcome() == "":
		over := &local.Refusal{Code: "cancelled", Detail: "the broker no longer wants the transfer"}
		_ = w.line.Send(local.Message{Over: over}, -1)
		return // the supervisor ends the command and goes; then the link is free
	case remove:
		w.turn.release(0, signal.Cancelled)
	}
	w.turn.leave()
	if w.line != nil {
		w.line.Close()
		w.line = nil // what runs on has not let go of the link
	}
}

// Progress shows what the supervisor said last.
func (w *wrapped) Progress() mover.Progress {
	w.mu.Lock()
	defer w.mu.Unlock()
	return mover.Progress{Bytes: w.progress.Bytes, AppliedBps: w.progress.AppliedBps, Connected: w.line != nil}
}
