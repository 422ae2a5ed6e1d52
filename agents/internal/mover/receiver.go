// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"crypto/sha256"
	"log/slog"
	"sync"
	"sync/atomic"

	"bandwidthbroker/agents/internal/agentstate"
	"bandwidthbroker/agents/internal/brokerapi"
	"bandwidthbroker/agents/internal/datachannel"
	"bandwidthbroker/agents/internal/failure"
	"bandwidthbroker/agents/internal/served"
)

// Receiver takes one file in. It waits until its sender comes, through the listener, as often as it takes.
type Receiver struct {
	folder *served.Folder
	state  *agentstate.Folder
	outbox Outbox
	log    *slog.Logger
	gauges gauges
	marks  marks
	orders atomic.Pointer[Orders]

	leaving sync.Once
	mu      sync.Mutex
	session *session
	stopped bool

	quit  chan struct{} // closed by Stop
	ready chan struct{} // closed when it is known how far an earlier run came

	// How it ended, if it has: a sender that missed it is told again. Written before ready or by the current session.
	done   *datachannel.Digest
	failed *failure.Failure
	asked  bool // of a sender that does not hash: to do it, for a comparison
}

// ReceiverOptions are what a receiver needs beside its orders.
type ReceiverOptions struct {
	Folder *served.Folder
	State  *agentstate.Folder
	Outbox Outbox
	Log    *slog.Logger
}

// StartReceiver makes ready for a sender. What cannot work is found out now where that needs no look at the disk.
func StartReceiver(opt ReceiverOptions, o Orders, outcome brokerapi.AgentReportKind) *Receiver {
	r := &Receiver{
		folder: opt.Folder, state: opt.State, outbox: opt.Outbox,
		log:  opt.Log.With("transfer", o.Transfer, "role", "receive"),
		quit: make(chan struct{}), ready: make(chan struct{}),
	}
	r.orders.Store(&o)
	r.marks.off = o.Unchecked
	if refused := served.CheckPath(o.Path); refused != nil {
		r.fail(refused)
	}
	j, found := r.state.Journal(o.Transfer)
	if found {
		r.gauges.bytes.Store(j.Safe)
	}
	go func() {
		defer close(r.ready)
		if found && j.Digest != "" && r.failed == nil {
			r.recover(j, outcome)
		}
	}()
	return r
}

// recover finds out, after a restart, whether the file got its final name just before the end.
func (r *Receiver) recover(j agentstate.Journal, outcome brokerapi.AgentReportKind) {
	if r.folder.HasPartial(j.Partial) {
		return // not yet: the sender brings END again
	}
	there, found := r.folder.Existing(j.Destination, j.Volume)
	if !found {
		return
	}
	defer there.Close()
	digest := datachannel.Digest(sha256.Sum256(nil))
	if !r.marks.off {
		var err error
		if digest, err = hashWhole(there.File, j.Volume, r.quit); err != nil {
			return
		}
	}
	if checksum(digest) != j.Digest {
		return
	}
	r.done = &digest
	r.gauges.bytes.Store(j.Volume)
	if outcome == "" {
		r.finish(digest)
	}
}

// Update changes the orders. A receiver follows no plan, so this disturbs nothing.
func (r *Receiver) Update(o Orders) { r.orders.Store(&o) }

// Progress shows how much has come.
func (r *Receiver) Progress() Progress { return r.gauges.progress() }

// Stop ends the transfer here. What is on disk stays for a later run, unless it is to be removed and is not finished.
func (r *Receiver) Stop(remove bool) {
	r.leaving.Do(func() { close(r.quit) })
	<-r.ready
	r.mu.Lock()
	r.stopped = true
	current := r.session
	r.mu.Unlock()
	if current != nil {
		current.end()
		<-current.over
	}
	if remove {
		r.remove()
	}
}

// remove drops the partial file and the journal of a transfer that is over; a finished file has neither partial nor
// need of a journal.
func (r *Receiver) remove() {
	RemoveLeftover(r.folder, r.state, r.orders.Load().Transfer, r.log)
}

// RemoveLeftover removes what a run left of a transfer that is over.
func RemoveLeftover(folder *served.Folder, state *agentstate.Folder, transfer string, log *slog.Logger) {
	j, found := state.Journal(transfer)
	if found && j.Partial != "" {
		if err := folder.RemovePartial(j.Partial); err != nil {
			log.Warn("partial file not removed", "transfer", transfer, "path", j.Partial, "error", err)
		}
	}
	if err := state.DropJournal(transfer); err != nil {
		log.Warn("journal not removed", "transfer", transfer, "error", err)
	}
}

func (r *Receiver) finish(digest datachannel.Digest) {
	o := r.orders.Load()
	r.log.Info("finished", "bytes", o.Volume, "checksum", o.checksum(digest), "path", o.Path)
	r.report(brokerapi.Finished, Facts{Bytes: o.Volume, Checksum: o.checksum(digest)})
	r.over(brokerapi.Finished)
}

func (r *Receiver) fail(f *failure.Failure) {
	r.failed = f
	r.log.Error("transfer failed", "code", f.Code, "detail", f.Detail)
	r.remove() // first: a reader of the report of a full disk finds it free again
	r.report(brokerapi.Failed, Facts{Bytes: r.gauges.safe.Load(), Code: f.Code, Detail: f.Detail})
	r.over(brokerapi.Failed)
}

func (r *Receiver) over(outcome brokerapi.AgentReportKind) {
	if err := r.outbox.End(outcome); err != nil {
		r.log.Error("outcome not saved", "error", err)
	}
}

func (r *Receiver) report(kind brokerapi.AgentReportKind, f Facts) {
	if err := r.outbox.Report(kind, f); err != nil {
		r.log.Error("report not kept", "kind", kind, "error", err)
	}
}
