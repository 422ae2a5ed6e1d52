// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"bandwidthbroker/agents/internal/brokerapi"
	"bandwidthbroker/agents/internal/brokerclient"
)

const (
	reportEvery    = time.Second
	heartbeatEvery = 30 * time.Second
	// batch bounds one request.
	batch = 200
	// lastWait is how long a stopping agent tries to deliver.
	lastWait = 3 * time.Second
)

// reports delivers what is in the spool: at once on a change, every second while something moves, else as a heartbeat.
func (a *Agent) reports(ctx context.Context, fresh <-chan struct{}) {
	var retry backoff
	select {
	case <-fresh:
	case <-ctx.Done():
		return
	}
	var spoke time.Time // of the last successful call
	var blocked time.Time
	soon := quick{left: quickCalls}
	for {
		now := time.Now()
		moving := a.tick(now)
		a.watchWall()
		saved := a.saveAgain()
		reading := a.clock.Read()
		silent := now.Sub(spoke) >= heartbeatEvery || soon.wanted(reading)
		if now.After(blocked) && (a.spool.Len() > 0 || silent) {
			soon.called(reading)
			if err := a.deliver(ctx); err != nil {
				if ctx.Err() != nil {
					return
				}
				a.complain("reports", err)
				blocked = now.Add(retry.after(err))
			} else {
				spoke = now
				retry.reset()
				a.saveClock()
			}
			a.saveStatus(spoke)
		}
		wait := heartbeatEvery
		switch {
		case soon.wanted(a.clock.Read()):
			wait = max(quickEvery, time.Until(blocked))
		case moving:
			wait = reportEvery
		case a.spool.Len() > 0:
			wait = max(reportEvery, time.Until(blocked))
		case a.busy():
			wait = reportEvery
		}
		if !saved {
			wait = min(wait, reportEvery) // the disk may have room again, whatever the broker does
		}
		if !sleep(ctx, min(wait, heartbeatEvery), a.deliverNow) {
			return
		}
	}
}

// saveAgain writes what a full disk did not take; done says that nothing is left to write. Reports come last: a reader that finds them
// on disk finds the rest, too.
func (a *Agent) saveAgain() (done bool) {
	done = a.state.SaveJournals()
	a.mu.Lock()
	for _, t := range a.transfers {
		done = t.Save() && done
	}
	a.mu.Unlock()
	return a.spool.Save() == 0 && done
}

// busy says that a transfer may begin to move by itself.
func (a *Agent) busy() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.transfers {
		if t.mover != nil && t.Outcome() == "" {
			return true
		}
	}
	return false
}

// tick takes the progress of every transfer, and says whether any moves.
func (a *Agent) tick(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	moving := false
	for _, t := range a.transfers {
		if t.Outcome() == "" && now.Sub(t.since) >= reportEvery/2 && t.tick(now) {
			moving = true
		}
	}
	return moving
}

// deliver empties the spool, oldest first; with an empty spool it is a heartbeat.
func (a *Agent) deliver(ctx context.Context) error {
	for {
		reports := a.spool.Next(batch)
		err := a.post(ctx, reports)
		if refused(err) && len(reports) > 1 {
			// One report makes the broker refuse all: find it.
			for i := range reports {
				if err = a.post(ctx, reports[i:i+1]); err != nil && !refused(err) {
					break
				}
				if refused(err) {
					a.discard(reports[i], err)
					err = nil
				}
			}
		} else if refused(err) && len(reports) == 1 {
			a.discard(reports[0], err)
			err = nil
		}
		if err != nil || a.spool.Len() < batch {
			return err
		}
	}
}

// discard gives up a report that the broker will never take. That is a bug on one side: it must be seen.
func (a *Agent) discard(r brokerapi.AgentReport, err error) {
	a.log.Error("the broker refuses a report, dropped", "transfer", r.TransferID, "kind", r.Kind, "sequence", r.Sequence, "error", err)
	a.spool.Drop(r.TransferID, r.Sequence)
}

// refused says that the body is at fault, not the time.
func refused(err error) bool {
	return slices.Contains([]int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity}, brokerclient.StatusOf(err))
}

func (a *Agent) post(ctx context.Context, reports []brokerapi.AgentReport) error {
	body := brokerapi.ReportsBody{
		Clock: a.aboutClock(), Agent: a.describe(), Reports: &reports, Revision: a.applied(), Goodbye: new(a.leaving.Load()),
		Complete: new(a.spool.Len() <= len(reports)),
	}
	answer, exchange, err := a.client.Report(ctx, a.credentials.Host, body)
	if err != nil {
		return err
	}
	a.observe(exchange, answer.ServerTime, answer.ServerTookUs)
	for _, r := range answer.Accepted {
		a.spool.Drop(r.TransferID, r.Sequence)
	}
	for _, r := range answer.Ignored {
		a.log.Info("report ignored by the broker", "transfer", r.TransferID, "sequence", r.Sequence, "code", r.Code, "detail", r.Detail)
		a.spool.Drop(r.TransferID, r.Sequence)
	}
	a.heard(answer.Revision)
	return nil
}

// lastWords says goodbye and delivers what is left when the agent stops; what does not leave in time waits on disk.
func (a *Agent) lastWords() {
	ctx, cancel := context.WithTimeout(context.Background(), lastWait)
	defer cancel()
	a.leaving.Store(true)
	a.tick(time.Now().Add(reportEvery))
	if err := a.deliver(ctx); err != nil {
		a.log.Warn("no goodbye", "reports_on_disk", a.spool.Len(), "error", err)
	}
	a.saveAgain()
	if lost := a.spool.Save(); lost > 0 {
		a.log.Error("REPORTS ARE LOST: the broker does not take them and the state folder has no room", "count", lost)
	}
	a.saveClock()
	a.saveStatus(time.Now())
}

// applied is the revision of the assignments that the agent acts by; nil before the first.
func (a *Agent) applied() *int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.revision == 0 {
		return nil
	}
	return new(a.revision)
}

func (a *Agent) advertise() string {
	if a.cfg.Advertise != "" {
		return a.cfg.Advertise
	}
	return a.listener.Address()
}

func (a *Agent) describe() *brokerapi.AboutAgent {
	d := &brokerapi.AboutAgent{Version: &a.cfg.Version, DataAddress: new(a.advertise()), Capabilities: new(Capabilities(a.cfg.TLS))}
	(*d.Capabilities)["signals"] = a.signalCapability()
	(*d.Capabilities)["mechanisms"] = a.mechanisms.Reports()
	(*d.Capabilities)["observe"] = a.cfg.Observe
	if a.identity != nil {
		d.TLSFingerprint = &a.identity.Fingerprint
	}
	return d
}

// Capabilities is what the broker may ask of this agent.
func Capabilities(tls bool) map[string]any {
	control, _ := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return map[string]any{
		"modes": []brokerapi.AssignmentMode{brokerapi.Managed, brokerapi.Wrapped, brokerapi.Observed}, "tls": tls,
		"congestion_control": strings.Fields(string(control)), "kernel": strings.TrimSpace(string(kernel)), "cpus": runtime.NumCPU(),
	}
}
