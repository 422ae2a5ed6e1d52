// SPDX-License-Identifier: Apache-2.0

package wrap

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"bandwidthbroker/agents/internal/local"
	"bandwidthbroker/agents/internal/mechanism"
)

// handedOver is a connection that the daemon holds: its rate is set with that of all others, see Supervisor.pace.
type handedOver struct {
	client *local.Client
	inode  uint64
	to     string
}

func (h *handedOver) Attach(s mechanism.Socket) error {
	var failed error
	err := s.Control(func(fd uintptr) { failed = h.client.Attach(h.inode, h.to, int(fd)) })
	if err == nil {
		err = failed
	}
	return err
}

func (h *handedOver) Detach(mechanism.Socket)          { _ = h.client.Detach(h.inode) }
func (h *handedOver) SetRate(bps int64) (int64, error) { return bps, nil }
func (h *handedOver) Close() error                     { return nil }

// pacing is SO_MAX_PACING_RATE on one socket.
type pacing struct{ socket mechanism.Socket }

// NewPacing holds one connection by the kernel's pacing.
func NewPacing() Limiter { return &pacing{} }

func (p *pacing) Attach(s mechanism.Socket) error { p.socket = s; return nil }
func (p *pacing) Detach(mechanism.Socket)         { p.socket = nil }
func (p *pacing) Close() error                    { return nil }

func (p *pacing) SetRate(rateBps int64) (int64, error) {
	if p.socket == nil {
		return 0, nil
	}
	var failed error
	var want [8]byte
	binary.NativeEndian.PutUint64(want[:], uint64(max(rateBps/8, 1)))
	err := p.socket.Control(func(fd uintptr) {
		failed = unix.SetsockoptString(int(fd), unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, string(want[:]))
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return 0, fmt.Errorf("SO_MAX_PACING_RATE %d bit/s: %w", rateBps, err)
	}
	return rateBps, nil
}
