// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"time"

	"bandwidthbroker/agents/internal/brokerapi"
	"bandwidthbroker/agents/internal/failure"
	"bandwidthbroker/agents/internal/mover"
)

// start begins one side of a transfer, or recalls that it ended before a restart. a.mu is held.
func (a *Agent) start(o mover.Orders) {
	memory, err := a.state.Memory(o.Transfer)
	if err != nil {
		a.log.Error("cannot remember the transfer, not started", "transfer", o.Transfer, "error", err)
		a.unable(o.Transfer, "the agent cannot remember it: "+err.Error())
		return
	}
	t := &transfer{orders: o, outbox: &outbox{agent: a, transfer: o.Transfer, Memory: memory, since: time.Now()}}
	a.transfers[o.Transfer] = t
	outcome := memory.Outcome()
	folder, flag := a.serve, "--serve"
	if !o.Send {
		folder, flag = a.receive, "--receive"
	}
	switch {
	case o.Wrapped:
		a.startWrapped(t)
	case o.Observed():
		a.startObserved(t)
	case outcome == brokerapi.Failed || outcome == brokerapi.Sent:
		// It is over here; the broker has the report, or it waits in the spool.
		a.endedBefore(o, outcome)
	case folder == nil:
		a.log.Error("transfer failed", "transfer", o.Transfer, "detail", "the agent runs without "+flag)
		_ = t.Report(brokerapi.Failed, mover.Facts{Code: failure.PathRefused, Detail: "the agent runs without " + flag})
		_ = t.End(brokerapi.Failed)
	case o.Send:
		s := mover.StartSender(mover.SenderOptions{
			Clock: a.clock, Folder: folder, Outbox: t.outbox, Log: a.log, PeerTimeout: a.cfg.PeerTimeout,
			Mechanisms: a.mechanisms,
			Signals:    a.signals, Started: memory.Started(),
		}, o)
		t.mover, t.progress = s, s.Progress
	default:
		r := mover.StartReceiver(mover.ReceiverOptions{Folder: folder, State: a.state, Outbox: t.outbox, Log: a.log}, o, outcome)
		a.listener.Expect(o.Transfer, r)
		t.mover, t.progress = r, r.Progress
	}
}

// giveUp tells the broker of assignments that make no sense, once for each: it waits for a word of every transfer that it
// has handed out. One that runs already goes on as it was. a.mu is held.
func (a *Agent) giveUp(refused map[string]error) {
	for id, err := range refused {
		if a.transfers[id] == nil && id != "" && !a.senseless[id] {
			a.senseless[id] = true
			a.unable(id, "the assignment makes no sense to this agent: "+err.Error())
		}
	}
}

// unable reports a transfer that this host cannot begin, and of which nothing is remembered here.
func (a *Agent) unable(id, detail string) {
	err := a.spool.Put(brokerapi.AgentReport{
		// Above every number that a memory has counted, as where the disk is full (agentstate.Memory.NextSequence).
		TransferID: id, Sequence: time.Now().UnixMicro(), At: time.UnixMicro(a.clock.Now()).UTC(), Kind: brokerapi.Failed,
		Code: new(failure.Internal), Detail: new(clip(detail)),
	})
	if err != nil {
		a.log.Error("report not kept", "transfer", id, "error", err)
	}
	poke(a.deliverNow)
}

// stop ends a transfer that the broker no longer lists and forgets it. a.mu is held.
func (a *Agent) stop(id string) {
	t := a.transfers[id]
	a.listener.Forget(id)
	if t.mover != nil {
		t.mover.Stop(true)
	}
	delete(a.transfers, id)
	if err := a.state.Forget(id); err != nil {
		a.log.Warn("memory not removed", "transfer", id, "error", err)
	}
}

// sweep removes what an earlier run left of transfers that are gone since. a.mu is held.
func (a *Agent) sweep(held map[string]error) {
	keep := func(id string) bool {
		_, listed := a.transfers[id]
		_, hold := held[id]
		return listed || hold
	}
	journals, _ := a.state.Journals()
	for _, id := range journals {
		if !keep(id) && a.receive != nil {
			a.log.Info("sweep", "transfer", id)
			mover.RemoveLeftover(a.receive, a.state, id, a.log)
		}
	}
	remembered, _ := a.state.Remembered()
	for _, id := range remembered {
		if !keep(id) {
			_ = a.state.Forget(id)
		}
	}
}
