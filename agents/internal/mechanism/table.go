// SPDX-License-Identifier: Apache-2.0

package mechanism

import "bandwidthbroker/agents/internal/pacing"

// Mechanism is one way to hold connections to a rate: everything that the agent knows of it.
type Mechanism struct {
	Name Name
	// Probe tries the mechanism out on this host; the error says why it cannot be used here.
	Probe func(Means) error
	// Own makes the limiter for this process's own sockets of a transfer. It may be a SendWindow.
	Own func(means Means, transfer string) pacing.Limiter
	// Foreign makes the limiter for sockets of another process, which writes when it likes; nil: the mechanism works in
	// the writer alone.
	Foreign func(means Means, transfer string) pacing.Limiter
	// LookaheadUs is how far ahead of the booking its own sender may write, so that the mechanism is what shapes.
	LookaheadUs int64
}

// Table lists mechanisms in the order in which they are shown.
type Table []Mechanism

// Known are the mechanisms of this agent. Add one by a file that implements it and a row here. Rows name no fields on
// purpose: then the compiler refuses a row that leaves one out.
var Known = Table{
	{Pacing, probePacing, newPacing, newPacing, pacing.Queued},
	{HTB, probeHTB, newHTB, newHTB, pacing.Queued},
	{FQ, probeFQ, newFQ, newFQ, pacing.Queued},
	{Window, probeWindow, newWindow, newBuffer, pacing.Clocked},
	{Userland, probeUserland, newUserland, nil, pacing.Immediate},
}

// Names of the mechanisms, in the table's order.
func (t Table) Names() []Name {
	names := make([]Name, len(t))
	for i, m := range t {
		names[i] = m.Name
	}
	return names
}

// Probe tries out what this host can do. prefer are the mechanisms for transfers that leave the choice to the host, the best
// first; it must not be empty.
func (t Table) Probe(prefer []Name, means Means) *Host {
	h := &Host{table: t, prefer: prefer, means: means}
	for _, m := range t {
		r := Report{Name: m.Name, Available: true}
		if err := m.probe(means); err != nil {
			r.Available, r.Reason = false, err.Error()
		}
		h.reports = append(h.reports, r)
	}
	return h
}

func (t Table) find(name Name) (Mechanism, bool) {
	for _, m := range t {
		if m.Name == name {
			return m, true
		}
	}
	return Mechanism{}, false
}

// probe never finds a mechanism usable that has no implementation.
func (m Mechanism) probe(means Means) error {
	if m.Probe == nil || m.Own == nil {
		return errUnimplemented
	}
	return m.Probe(means)
}
