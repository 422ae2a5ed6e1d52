// SPDX-License-Identifier: Apache-2.0

package wrap

import (
	"bandwidthbroker/agents/internal/local"
	"bandwidthbroker/agents/internal/pacing"
)

// handedOver is a connection that the daemon holds, at a rate that is set with that of all others: see Supervisor.remote.
// Until the daemon has it, this process paces it.
type handedOver struct {
	pacing.Limiter
	client *local.Client
	inode  uint64
	to     string
	first  int64 // bit/s
}

func (h *handedOver) Attach(s pacing.Socket) error {
	if err := h.Limiter.Attach(s); err != nil {
		return err
	}
	// Never after it is handed over: that would be one limit above the daemon's.
	if _, err := h.Limiter.SetRate(h.first); err != nil {
		return err
	}
	h.give(s)
	return nil
}

// give hands a duplicate over. A daemon that is away, or starts anew, gets it when it is there.
func (h *handedOver) give(s pacing.Socket) {
	_ = s.Control(func(fd uintptr) { _ = h.client.Attach(h.inode, h.to, int(fd)) })
}

func (h *handedOver) Detach(s pacing.Socket) {
	_ = h.client.Detach(h.inode)
	h.Limiter.Detach(s)
}
