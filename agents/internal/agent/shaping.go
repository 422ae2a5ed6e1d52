// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bandwidthbroker/agents/internal/tclinux"
)

// openShaper makes this agent the one that shapes on this host, or says why it cannot: that is no fault, only fewer
// mechanisms. What an earlier run left is taken over or removed once the first assignments are applied.
func openShaper() (*tclinux.Shaper, error) {
	kernel, err := tclinux.OpenKernel()
	if err != nil {
		return nil, err
	}
	var shaper *tclinux.Shaper
	if err = kernel.Probe("htb"); err == nil {
		shaper, err = tclinux.Open(kernel)
	}
	if err != nil {
		_ = kernel.Close()
		return nil, err
	}
	return shaper, nil
}

// sweepClasses removes the classes that no transfer wants.
func (a *Agent) sweepClasses() {
	if a.shaper == nil {
		return
	}
	done, err := a.shaper.Sweep()
	for _, op := range done {
		a.log.Info("sweep", "tc", op.String())
	}
	if err != nil {
		a.log.Warn("traffic control not swept", "error", err)
	}
}

// closeShaper leaves the host's traffic control as it was found.
func (a *Agent) closeShaper() {
	if a.shaper == nil {
		return
	}
	if err := a.shaper.Close(); err != nil {
		a.log.Error("traffic control not cleaned up", "error", err)
	}
}
