// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bandwidthbroker/agents/internal/brokerapi"
	"bandwidthbroker/agents/internal/mover"
	"bandwidthbroker/agents/internal/signalport"
)

// SignalStatus is what `bwb-agent status` shows of the start signals between agents.
type SignalStatus struct {
	Direct bool   `json:"direct"`           // this agent can be reached by UDP datagrams
	Reason string `json:"reason,omitempty"` // why not
	signalport.Statistics
}

func (a *Agent) signalStatus() SignalStatus {
	s := SignalStatus{Direct: true, Statistics: a.signals.Statistics()}
	if err := a.signals.Err(); err != nil {
		s.Direct, s.Reason = false, err.Error()
	}
	return s
}

// signalCapability is what of it the broker is told: forged signals are a matter for its operators.
func (a *Agent) signalCapability() map[string]any {
	s := a.signalStatus()
	told := map[string]any{"direct": s.Direct, "forged": s.Forged}
	if s.Reason != "" {
		told["reason"] = s.Reason
	}
	return told
}

// endedBefore tells the successors of a transfer that ended in an earlier run, in case they have not heard it from that.
func (a *Agent) endedBefore(o mover.Orders, outcome brokerapi.AgentReportKind) {
	if !o.Send || len(o.EndSignals) == 0 {
		return
	}
	tail := mover.NewTail(a.signals, a.clock, func(code, detail string) {
		a.log.Info("signal", "transfer", o.Transfer, "code", code, "detail", detail)
	})
	tail.Update(&o)
	tail.Release(0, causeOf(outcome))
}
