// SPDX-License-Identifier: Apache-2.0

package mechanism

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"bandwidthbroker/agents/internal/pacing"
	"bandwidthbroker/agents/internal/tcpsock"
	"bandwidthbroker/agents/internal/wirerate"
)

// HTB is a class of the HTB qdisc: a kernel timer with a token bucket.
const HTB Name = "htb"

// Classes is what HTB needs of the host's traffic control; package agent makes it of tclinux.Shaper.
type Classes interface {
	// Hold keeps a class of HTB for an owner on the way to an address, at a rate with all headers. It returns what goes
	// into SO_PRIORITY of its sockets, and the rate that the kernel, read back, now holds to.
	Hold(owner string, to netip.Addr, wireBps int64) (priority uint32, heldBps int64, err error)
	// Release removes the class.
	Release(owner string) error
	// LinkHeader is how many bytes the device on the way to an address puts in front of every packet.
	LinkHeader(to netip.Addr) (int, error)
}

// htb holds all sockets of a transfer in one class of the HTB qdisc, which they name in SO_PRIORITY (RR-6205, section
// 2.1.3, "kernel timer"). HTB counts packets with all headers.
type htb struct {
	classes  Classes
	transfer string
	rateBps  int64
	heldBps  int64 // as the kernel said at the last look; 0 before the first
	sockets  []pacing.Socket
	framing  wirerate.Framing
	priority uint32
	lookAt   int64 // µs, of the next look at what the kernel holds
}

func newHTB(means Means, transfer string) pacing.Limiter {
	return &htb{classes: means.Classes, transfer: transfer}
}

func probeHTB(means Means) error {
	if means.Classes == nil && means.NoClasses == nil {
		return errors.New("this process does not shape")
	}
	return means.NoClasses
}

func (h *htb) Attach(s pacing.Socket) error {
	if slices.Contains(h.sockets, s) {
		return nil
	}
	if len(h.sockets) > 0 && h.sockets[0].Remote().Addr() != s.Remote().Addr() {
		return fmt.Errorf("htb: one class serves one destination: it has %s, and %s shall come in", h.sockets[0].Remote().Addr(), s.Remote().Addr())
	}
	h.sockets = append(h.sockets, s)
	if _, err := h.apply(); err != nil {
		h.Detach(s)
		return err
	}
	return withFD(s, func(fd int) error {
		if err := tcpsock.ClearPacingRate(fd); err != nil {
			return err
		}
		return tcpsock.SetPriority(fd, h.priority)
	})
}

// Detach takes the class off the socket: its number may be another transfer's later.
func (h *htb) Detach(s pacing.Socket) {
	_ = withFD(s, func(fd int) error { return tcpsock.SetPriority(fd, 0) }) // a closed socket has none
	h.sockets = slices.DeleteFunc(h.sockets, func(t pacing.Socket) bool { return t == s })
	if len(h.sockets) == 0 {
		h.heldBps = 0
	}
}

func (h *htb) SetRate(rateBps int64) (int64, error) {
	same := rateBps == h.rateBps && h.heldBps > 0
	h.rateBps = rateBps
	switch {
	case len(h.sockets) == 0:
		return rateBps, nil
	case same:
		return h.heldBps, nil
	}
	return h.apply()
}

// least is a rate that HTB holds exactly; below it the class cannot be.
const minHTB = 16_000

// apply holds the class at the rate, as it is with headers, and returns what that is without.
func (h *htb) apply() (int64, error) {
	h.heldBps = 0 // until the kernel has said it again: what failed is tried again, not remembered
	if err := h.frame(h.sockets[len(h.sockets)-1]); err != nil {
		return 0, err
	}
	priority, held, err := h.classes.Hold(h.transfer, h.sockets[0].Remote().Addr(), max(h.framing.Wire(h.rateBps), minHTB))
	if err != nil {
		return 0, &Unavailable{HTB, err.Error()}
	}
	h.priority, h.heldBps = priority, h.framing.Carried(held)
	return h.heldBps, nil
}

// frame takes the framing of a socket: of several the one with the largest segments, whose headers are the smallest part.
func (h *htb) frame(s pacing.Socket) error {
	to := s.Remote().Addr()
	header, err := h.classes.LinkHeader(to)
	if err != nil {
		return err
	}
	return inspect(s, func(info *unix.TCPInfo) {
		made := wirerate.TCP(int(info.Snd_mss), to.Is6(), tcpsock.HasTimestamps(info), header)
		if made.Payload > h.framing.Payload {
			h.framing = made
		}
	})
}

// lookEvery is how often the kernel is asked whether the class is still there and as it was: asking is most of what holding costs.
const lookEvery int64 = 1_000_000 // µs

// Balance: one class serves all sockets, and shares by itself. What others did to it is mended once a second.
func (h *htb) Balance(now int64) error {
	if now < h.lookAt || len(h.sockets) == 0 {
		return nil
	}
	h.lookAt = now + lookEvery
	_, err := h.apply()
	return err
}

func (h *htb) Close() error {
	for len(h.sockets) > 0 {
		h.Detach(h.sockets[0])
	}
	return h.classes.Release(h.transfer)
}
