// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"net/netip"

	"bandwidthbroker/agents/internal/mechanism"
	"bandwidthbroker/agents/internal/tclinux"
)

// probeMechanisms finds out, once, what this host has to hold connections to a rate.
func (a *Agent) probeMechanisms() {
	means := mechanism.Means{NoClasses: a.noShaper}
	if a.shaper != nil {
		means.Classes = tclinux.Sockets{Shaper: a.shaper}
	}
	means.FQ, means.NoFQ = pacesByFQ, anyFQ()
	prefer := a.cfg.Mechanisms
	if len(prefer) == 0 {
		prefer = []mechanism.Name{mechanism.Pacing}
	}
	a.mechanisms = mechanism.Known.Probe(prefer, means)
	for _, r := range a.mechanisms.Reports() {
		a.log.Debug("mechanism", "name", r.Name, "available", r.Available, "reason", r.Reason)
	}
	if _, err := a.mechanisms.Choose(""); err != nil {
		a.log.Error("--mechanism: transfers that leave the choice to this host will fail", "error", err)
	}
}

// pacesByFQ looks at the kernel anew: routes and qdiscs change, and it needs no privilege.
func pacesByFQ(to netip.Addr) error {
	kernel, err := tclinux.OpenKernel()
	if err != nil {
		return err
	}
	defer kernel.Close()
	return tclinux.PacesByFQ(kernel, to)
}

func anyFQ() error {
	kernel, err := tclinux.OpenKernel()
	if err != nil {
		return fmt.Errorf("qdiscs cannot be read: %w", err)
	}
	defer kernel.Close()
	return tclinux.AnyFQ(kernel)
}
