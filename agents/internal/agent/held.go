// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"net/netip"

	"bandwidthbroker/agents/internal/flows"
	"bandwidthbroker/agents/internal/local"
	"bandwidthbroker/agents/internal/mechanism"
	"bandwidthbroker/agents/internal/pacing"
)

// held are the connections of a command that the daemon holds for its supervisor, because the mechanism needs a privilege
// or looks at the host. They were handed over as descriptors. It belongs to the goroutine of one conversation.
type held struct {
	limiter pacing.Limiter
	sockets map[uint64]addressed
}

// addressed is a socket whose destination is known before the kernel knows it.
type addressed struct {
	*flows.Socket
	to netip.AddrPort
}

// Remote implements pacing.Socket.
func (a addressed) Remote() netip.AddrPort {
	if remote := a.Socket.Remote(); remote.IsValid() && remote.Port() != 0 {
		return remote
	}
	return a.to
}

// attach takes a socket over; the descriptor is closed in any case.
func (h *held) attach(host *mechanism.Host, name mechanism.Name, transfer string, a local.Attach, fd int) error {
	socket, err := flows.Adopt(fd)
	if err != nil {
		return err
	}
	if h.limiter == nil {
		if h.limiter, err = host.Foreign(name, transfer); err != nil {
			socket.Close()
			return err
		}
		h.sockets = map[uint64]addressed{}
	}
	if _, known := h.sockets[a.Socket]; known {
		socket.Close()
		return nil
	}
	to, _ := netip.ParseAddrPort(a.To)
	s := addressed{socket, to}
	if err := h.limiter.Attach(s); err != nil {
		socket.Close()
		return err
	}
	h.sockets[a.Socket] = s
	return nil
}

func (h *held) detach(inode uint64) {
	if s, known := h.sockets[inode]; known {
		h.limiter.Detach(s)
		s.Close()
		delete(h.sockets, inode)
	}
}

// rate is asked for every 40 ms, so the limiter balances then as well.
func (h *held) rate(bps int64) local.Rate {
	if h.limiter == nil {
		return local.Rate{}
	}
	got, err := h.limiter.SetRate(bps)
	if err == nil {
		err = h.limiter.Balance(local.Monotonic())
	}
	if err != nil {
		return local.Rate{Bps: got, Error: err.Error()}
	}
	return local.Rate{Bps: got}
}

// close lets go of everything and undoes what was done on the host.
func (h *held) close() error {
	if h.limiter == nil {
		return nil
	}
	for inode := range h.sockets {
		h.detach(inode)
	}
	err := h.limiter.Close()
	h.limiter = nil
	return err
}
