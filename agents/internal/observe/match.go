// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"bandwidthbroker/agents/internal/failure"
	"bandwidthbroker/agents/internal/mover"
	"bandwidthbroker/agents/internal/tclinux"
)

// Resolver finds the addresses of a host by name; net.DefaultResolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// target is which packets are meant: all go to one of the addresses.
type target struct {
	addresses []netip.Addr
	protocol  tclinux.Protocol
	matches   []tclinux.Match
}

// aim turns the words of an assignment into matches. A *failure.Failure is final; other errors may pass.
func aim(ctx context.Context, m mover.Match, names Resolver) (target, error) {
	t := target{protocol: map[string]tclinux.Protocol{"tcp": tclinux.TCP, "udp": tclinux.UDP}[m.Protocol]}
	if t.protocol == tclinux.AnyProtocol {
		return t, failure.New(failure.Internal, "match: protocol %q: want tcp or udp", m.Protocol)
	}
	var source, destination tclinux.Ports
	for _, part := range []struct {
		name, text string
		to         *tclinux.Ports
	}{{"source_ports", m.SourcePorts, &source}, {"destination_ports", m.DestinationPorts, &destination}} {
		ports, err := parsePorts(part.text)
		if err != nil {
			return t, failure.New(failure.Internal, "match: %s: %s", part.name, err)
		}
		*part.to = ports
	}
	if address, err := netip.ParseAddr(m.Address); err == nil {
		t.addresses = []netip.Addr{address.Unmap()}
	} else if t.addresses, err = names.LookupNetIP(ctx, "ip", m.Address); err != nil {
		return t, fmt.Errorf("match: address %q: %w", m.Address, err)
	}
	for i, address := range t.addresses {
		t.addresses[i] = address.Unmap().WithZone("")
		t.matches = append(t.matches, tclinux.Match{
			Protocol: t.protocol, Destination: netip.PrefixFrom(t.addresses[i], t.addresses[i].BitLen()),
			SourcePorts: source, DestinationPorts: destination,
		})
	}
	if len(t.addresses) == 0 {
		return t, fmt.Errorf("match: address %q has none", m.Address)
	}
	return t, nil
}

// parsePorts reads "5001" or "5001-5010"; nothing is all ports.
func parsePorts(text string) (tclinux.Ports, error) {
	if text == "" {
		return tclinux.Ports{}, nil
	}
	first, last, ranged := strings.Cut(text, "-")
	if !ranged {
		last = first
	}
	from, err := strconv.ParseUint(first, 10, 16)
	to, err2 := strconv.ParseUint(last, 10, 16)
	if err != nil || err2 != nil || from == 0 || from > to {
		return tclinux.Ports{}, fmt.Errorf("%q: want a port, 5001, or a range, 5001-5010", text)
	}
	return tclinux.Ports{First: uint16(from), Last: uint16(to)}, nil
}
