// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"net"

	"bandwidthbroker/agents/internal/brokerapi"
	"bandwidthbroker/agents/internal/failure"
	"bandwidthbroker/agents/internal/mover"
	"bandwidthbroker/agents/internal/observe"
)

// startObserved classes and counts the packets of a transfer whose data another program moves. a.mu is held.
func (a *Agent) startObserved(t *transfer) {
	switch {
	case t.Outcome() != "":
		// It is over here; the broker has the report, or it waits in the spool.
	case a.shaper == nil:
		detail := "htb, which observed transfers need: " + a.noShaper.Error()
		a.log.Error("transfer failed", "transfer", t.orders.Transfer, "code", failure.MechanismUnavailable, "detail", detail)
		_ = t.Report(brokerapi.Failed, mover.Facts{Code: failure.MechanismUnavailable, Detail: detail})
		_ = t.End(brokerapi.Failed)
	default:
		o := observe.Start(observe.Options{
			Clock: a.clock, Classes: a.shaper, Names: net.DefaultResolver, Rules: a.cfg.Observe, Outbox: t.outbox, Log: a.log,
		}, t.orders)
		t.mover, t.progress = o, o.Progress
	}
}
