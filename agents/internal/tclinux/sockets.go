// SPDX-License-Identifier: Apache-2.0

package tclinux

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"bandwidthbroker/agents/internal/wirerate"
)

// Sockets are classes for sockets of which each names its class in SO_PRIORITY: what package mechanism needs.
type Sockets struct{ *Shaper }

// Hold gives an owner a class on the way to an address, or another rate in the one it has, at once. It returns the
// number for SO_PRIORITY, and the rate as read back from the kernel.
func (s Sockets) Hold(owner string, to netip.Addr, wireBps int64) (priority uint32, heldBps int64, err error) {
	if err := s.Want(owner, Class{Remote: to, RateBps: wireBps}); err != nil {
		return 0, 0, err
	}
	_, failed := s.Sync()
	id, held := s.ID(owner)
	if !held {
		return 0, 0, fmt.Errorf("no class for %s: %w", owner, failed)
	}
	reading, err := s.Read(owner)
	return id, reading.RateBps, err
}

// Release removes an owner's class.
func (s Sockets) Release(owner string) error {
	s.Drop(owner)
	_, err := s.Sync()
	return err
}

// LinkHeader is how many bytes the device on the way to an address has in front of every packet, as HTB counts them.
func (s *Shaper) LinkHeader(to netip.Addr) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, ErrClosed
	}
	device, err := s.system.Route(to)
	if err != nil {
		return 0, err
	}
	link, err := s.system.Link(device)
	return link.Header, err
}

// Framing is how a full packet of TCP or UDP to an address divides, by the device on the way to it. What the path or the
// peer allow may be less.
func (s *Shaper) Framing(to netip.Addr, protocol Protocol) (wirerate.Framing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return wirerate.Framing{}, ErrClosed
	}
	device, err := s.system.Route(to)
	if err != nil {
		return wirerate.Framing{}, fmt.Errorf("no way to %s: %w", to, err)
	}
	link, err := s.system.Link(device)
	if err != nil {
		return wirerate.Framing{}, err
	}
	ip := wirerate.IPv4
	if to.Unmap().Is6() {
		ip = wirerate.IPv6
	}
	if protocol == UDP {
		return wirerate.Framing{Payload: max(link.MTU-ip-wirerate.UDPHeader, 1), Headers: link.Header + ip + wirerate.UDPHeader}, nil
	}
	stamps := s.system.Timestamps()
	payload := link.MTU - ip - wirerate.TCPHeader
	if stamps {
		payload -= wirerate.Timestamps
	}
	return wirerate.TCP(payload, ip == wirerate.IPv6, stamps, link.Header), nil
}

// PacesByFQ says whether the way to an address leads through the fq qdisc: nil, or what is there instead.
func (s *Shaper) PacesByFQ(to netip.Addr) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	return PacesByFQ(s.system, to)
}

// PacesByFQ is the same for a process that does not shape: it needs no privilege.
func PacesByFQ(system System, to netip.Addr) error {
	device, err := system.Route(to)
	if err != nil {
		return err
	}
	roots, err := system.Roots()
	if err != nil {
		return err
	}
	if root := rootOf(roots, device); !pacesByFQ(root) {
		return fmt.Errorf("device %s has the qdisc %s, not fq: tc qdisc replace dev %s root fq, or sysctl net.core.default_qdisc=fq before the device comes up",
			device, root.Kind, device)
	}
	return nil
}

// ErrNoFQ says that no device has the fq qdisc.
var ErrNoFQ = errors.New("no device has the qdisc fq, which the administrator would choose: tc qdisc replace dev DEVICE root fq")

// AnyFQ says whether any device has the fq qdisc: nil, or why none has.
func AnyFQ(system System) error {
	if err := system.Probe(fq); errors.Is(err, ErrNoQdisc) {
		return err
	}
	roots, err := system.Roots()
	if err == nil && !slices.ContainsFunc(roots, pacesByFQ) {
		err = ErrNoFQ
	}
	return err
}
