// SPDX-License-Identifier: Apache-2.0

package tclinux

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// Class is what one owner wants: a rate for some packets on the way to one host.
type Class struct {
	// Device is the interface that the packets leave by. Empty: the one that the routing table gives for Remote, asked
	// again at every Sync.
	Device string
	Remote netip.Addr
	// RateBps is the most that leaves, in bit/s as HTB counts: with the headers of every packet (package wirerate). At
	// least MinRateBps.
	RateBps int64
	// Matches say which packets, any of them. None: those of sockets whose SO_PRIORITY is the class's ID.
	Matches []Match
	// FQ asks for no class but for the fq qdisc on the device, which holds every socket to its SO_MAX_PACING_RATE. Nothing
	// is done where fq is there already, by whatever configuration. One device cannot have both.
	FQ bool
}

// Match is a set of packets by their headers. Zero fields match everything. Packets with IPv4 options, IPv6 extension
// headers, and fragments but the first cannot be matched by port and pass as if there were no class.
type Match struct {
	Protocol            Protocol
	Source, Destination netip.Prefix
	SourcePorts         Ports
	DestinationPorts    Ports
}

// Protocol is the number in the IP header; 0 is any.
type Protocol uint8

// The protocols whose ports can be matched.
const (
	AnyProtocol Protocol = 0
	TCP         Protocol = 6
	UDP         Protocol = 17
)

// Ports is a closed range; the zero value is all ports.
type Ports struct{ First, Last uint16 }

// MinRateBps keeps HTB exact: it forgets what a class owes after 60 s, and one packet of 64 KiB takes 52 s at this rate.
const MinRateBps = 10_000

// maxRateBps is far above any device and far below where arithmetic on bit/s would overflow.
const maxRateBps = int64(1e15)

// samePackets says that at most the rate differs.
func (c Class) samePackets(d Class) bool {
	return c.Device == d.Device && c.Remote == d.Remote && c.FQ == d.FQ && slices.Equal(c.Matches, d.Matches)
}

func (c Class) check() error {
	if c.Device == "" && !c.Remote.IsValid() {
		return errors.New("neither a device nor a remote address")
	}
	if c.FQ {
		if c.RateBps != 0 || len(c.Matches) != 0 {
			return errors.New("fq takes rates from sockets: no rate and no matches here")
		}
		return nil
	}
	if c.RateBps < MinRateBps || c.RateBps > maxRateBps {
		return fmt.Errorf("rate of %d bit/s: want %d to %d", c.RateBps, MinRateBps, maxRateBps)
	}
	for i, m := range c.Matches {
		if err := m.check(); err != nil {
			return fmt.Errorf("match %d: %w", i, err)
		}
	}
	if n := len(filters(c.Matches, 0)); n > maxFilters {
		return fmt.Errorf("the port ranges need %d filters, more than %d: choose ranges that begin and end at multiples of a power of two", n, maxFilters)
	}
	return nil
}

func (m Match) check() error {
	for name, ports := range map[string]Ports{"source": m.SourcePorts, "destination": m.DestinationPorts} {
		if ports.First > ports.Last {
			return fmt.Errorf("%s ports %d-%d: the first is above the last", name, ports.First, ports.Last)
		}
		if ports != (Ports{}) && m.Protocol != TCP && m.Protocol != UDP {
			return fmt.Errorf("%s ports without a protocol that has ports (TCP or UDP)", name)
		}
	}
	switch {
	case !m.Source.IsValid() && !m.Destination.IsValid() && m.SourcePorts == (Ports{}) && m.DestinationPorts == (Ports{}):
		return errors.New("no address and no port: it would take every packet of the host")
	case m.Source.IsValid() && m.Destination.IsValid() && m.Source.Addr().Is4() != m.Destination.Addr().Is4():
		return fmt.Errorf("source %s and destination %s are of two address families", m.Source, m.Destination)
	}
	return nil
}
