// SPDX-License-Identifier: Apache-2.0

package wrap

import (
	"errors"

	"bandwidthbroker/agents/internal/local"
	"bandwidthbroker/agents/internal/mechanism"
	"bandwidthbroker/agents/internal/tcpsock"
)

// handedOver is a connection that the daemon holds, at a rate that is set with that of all others: see Supervisor.remote.
// Until the daemon has it, this process paces it.
type handedOver struct {
	Limiter
	client *local.Client
	inode  uint64
	to     string
	first  int64 // bit/s
}

func (h *handedOver) Attach(s mechanism.Socket) error {
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
func (h *handedOver) give(s mechanism.Socket) {
	_ = s.Control(func(fd uintptr) { _ = h.client.Attach(h.inode, h.to, int(fd)) })
}

func (h *handedOver) Detach(s mechanism.Socket) {
	_ = h.client.Detach(h.inode)
	h.Limiter.Detach(s)
}

// pacing is SO_MAX_PACING_RATE on one socket.
type pacing struct{ socket mechanism.Socket }

// NewPacing holds one connection by the kernel's pacing.
func NewPacing() Limiter { return &pacing{} }

func (p *pacing) Attach(s mechanism.Socket) error { p.socket = s; return nil }
func (p *pacing) Detach(mechanism.Socket)         { p.socket = nil }
func (p *pacing) Close() error                    { return nil }

func (p *pacing) SetRate(rateBps int64) (held int64, err error) {
	if p.socket == nil {
		return 0, nil
	}
	var failed error
	err = p.socket.Control(func(fd uintptr) { held, failed = tcpsock.SetPacingRate(int(fd), max(rateBps, 8)) })
	return held, errors.Join(err, failed)
}
