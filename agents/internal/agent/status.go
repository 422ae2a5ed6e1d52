// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"slices"
	"strings"
	"time"

	"bandwidthbroker/agents/internal/agentstate"
	"bandwidthbroker/agents/internal/atomicfile"
	"bandwidthbroker/agents/internal/brokerapi"
	"bandwidthbroker/agents/internal/mechanism"
	"bandwidthbroker/agents/internal/mover"
	"bandwidthbroker/agents/internal/tclinux"
)

// Status is what `bwb-agent status` shows: written by the running agent whenever it has spoken with the broker.
type Status struct {
	At             time.Time          `json:"at"`
	Version        string             `json:"version"`
	Host           string             `json:"host"`
	Node           string             `json:"node"`
	Broker         string             `json:"broker"`
	DataAddress    string             `json:"data_address"`
	Revision       int64              `json:"revision"`
	BrokerSpokenAt time.Time          `json:"broker_spoken_at"`
	ClockOffsetUs  int64              `json:"clock_offset_us"`
	ClockErrorUs   int64              `json:"clock_error_us"`
	ReportsWaiting int                `json:"reports_waiting"`
	Operations     int                `json:"operations"`
	Signals        SignalStatus       `json:"signals"`
	Mechanisms     []mechanism.Report `json:"mechanisms"`
	Classes        []ClassStatus      `json:"classes"`
	Transfers      []TransferStatus   `json:"transfers"`
	Running        bool               `json:"running"` // filled in by the reader: the lock is held
	StateFolder    string             `json:"state_folder,omitempty"`
	EnrolledAt     time.Time          `json:"enrolled_at"`
}

// TransferStatus is one line of it.
type TransferStatus struct {
	Transfer       string `json:"transfer_id"`
	Mode           string `json:"mode"`
	Role           string `json:"role"`
	Peer           string `json:"peer"`
	Path           string `json:"path"`
	PlanRevision   int64  `json:"plan_revision"`
	Paused         bool   `json:"paused"`
	Connected      bool   `json:"connected"`
	Bytes          int64  `json:"bytes"`
	VolumeBytes    int64  `json:"volume_bytes"`
	AppliedRateBps int64  `json:"applied_rate_bps"`
	Outcome        string `json:"outcome"`
}

// ClassStatus is a class of HTB that a transfer has, as the kernel says.
type ClassStatus struct {
	Transfer string `json:"transfer_id"`
	tclinux.Reading
}

func (a *Agent) classStatus() []ClassStatus {
	if a.shaper == nil {
		return nil
	}
	var lines []ClassStatus
	for owner, reading := range a.shaper.Readings() {
		lines = append(lines, ClassStatus{owner, reading})
	}
	slices.SortFunc(lines, func(x, y ClassStatus) int { return strings.Compare(x.Transfer, y.Transfer) })
	return lines
}

// modeOf is what moves the data.
func modeOf(o mover.Orders) string {
	switch {
	case o.Wrapped:
		return string(brokerapi.Wrapped)
	case o.Observed():
		return string(brokerapi.Observed)
	}
	return string(brokerapi.Managed)
}

func (a *Agent) saveStatus(spoke time.Time) {
	reading := a.clock.Read()
	s := Status{
		At: time.Now().UTC(), Version: a.cfg.Version, Host: a.credentials.Host, Node: a.credentials.Node, Broker: a.credentials.Broker,
		DataAddress: a.advertise(), BrokerSpokenAt: spoke.UTC(), ClockOffsetUs: reading.Offset.Microseconds(),
		ClockErrorUs: reading.Error.Microseconds(), ReportsWaiting: a.spool.Len(), EnrolledAt: a.credentials.EnrolledAt,
	}
	s.Signals = a.signalStatus()
	s.Mechanisms, s.Classes = a.mechanisms.Reports(), a.classStatus()
	a.mu.Lock()
	s.Revision, s.Operations = a.revision, a.operations
	for id, t := range a.transfers {
		line := TransferStatus{
			Transfer: id, Mode: modeOf(t.orders), Role: "receive", Peer: t.orders.Peer.Host, Path: t.orders.Path, PlanRevision: t.orders.Revision,
			Paused: t.orders.Paused, VolumeBytes: t.orders.Volume, Outcome: string(t.Outcome()),
		}
		if t.orders.Send {
			line.Role = "send"
		}
		if t.mover != nil {
			p := t.mover.Progress()
			line.Connected, line.Bytes, line.AppliedRateBps = p.Connected, p.Bytes, p.AppliedBps
		}
		s.Transfers = append(s.Transfers, line)
	}
	a.mu.Unlock()
	slices.SortFunc(s.Transfers, func(x, y TransferStatus) int { return strings.Compare(x.Transfer, y.Transfer) })
	if err := atomicfile.WriteJSON(a.state.Path("status.json"), s, 0o600, atomicfile.Crash); err != nil {
		a.log.Warn("status not saved", "error", err)
	}
}

// ReadStatus is the last status in a state folder, with what the folder itself says.
func ReadStatus(state *agentstate.Folder) (Status, error) {
	var s Status
	if _, err := atomicfile.ReadJSON(state.Path("status.json"), &s); err != nil {
		return s, err
	}
	c, enrolled, err := state.Credentials()
	if err != nil {
		return s, err
	}
	if enrolled {
		s.Host, s.Node, s.Broker, s.EnrolledAt = c.Host, c.Node, c.Broker, c.EnrolledAt
	}
	s.StateFolder = state.Path()
	if err := state.Lock(); err != nil {
		s.Running = true
	} else {
		state.Unlock()
	}
	return s, nil
}
