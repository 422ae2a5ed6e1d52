// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"bandwidthbroker/agents/internal/failure"
	"bandwidthbroker/agents/internal/mover"
	"bandwidthbroker/agents/internal/tclinux"
)

// DefaultRules allow packets to the other host of the transfer alone, and to none of the ports at which a host is administered.
const DefaultRules = "peer:1024-65535"

// thePeer is the word for the address of the transfer's other host.
const thePeer = "peer"

// Rule is one kind of packets that observed transfers may be made of: those to an address, by ports. Packets by the port at which the other
// agent takes data are never among them: they are transfers of their own.
type Rule struct {
	Address          string `json:"address"` // "peer", or a prefix
	SourcePorts      string `json:"source_ports,omitempty"`
	DestinationPorts string `json:"destination_ports,omitempty"`

	prefix              netip.Prefix // of all but the peer
	source, destination tclinux.Ports
}

// Rules are what a host's administrator lets be held to a rate by those who may book a transfer. None: nothing.
type Rules []Rule

// ParseRules reads "peer:1024-65535,192.0.2.0/24:5000-5100,443>[2001:db8::/32]": source ports, address, destination ports. What is left
// out is any port; "none" is no rule.
func ParseRules(text string) (Rules, error) {
	rules := Rules{}
	if strings.TrimSpace(text) == "none" {
		return rules, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		rule, err := parseRule(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("%q: %w; want [PORTS>]ADDRESS[:PORTS], as in peer:1024-65535, 192.0.2.0/24:5000-5100 or 443>[2001:db8::/32]", part, err)
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

func parseRule(text string) (r Rule, err error) {
	to := text
	if source, rest, found := strings.Cut(text, ">"); found {
		r.SourcePorts, to = source, rest
		if source == "" {
			return r, fmt.Errorf("no ports before >")
		}
	}
	r.Address = to
	switch {
	case strings.HasPrefix(to, "["):
		inner, rest, closed := strings.Cut(to[1:], "]")
		ports, found := strings.CutPrefix(rest, ":")
		if !closed || (rest != "" && (!found || ports == "")) {
			return r, errors.New("brackets")
		}
		r.Address, r.DestinationPorts = inner, ports
	case strings.Count(to, ":") == 1:
		r.Address, r.DestinationPorts, _ = strings.Cut(to, ":")
		if r.DestinationPorts == "" {
			return r, errors.New("no ports after the colon")
		}
	}
	if r.source, err = parsePorts(r.SourcePorts); err != nil {
		return r, err
	}
	if r.destination, err = parsePorts(r.DestinationPorts); err != nil || r.Address == thePeer {
		return r, err
	}
	if r.prefix, err = netip.ParsePrefix(r.Address); err != nil {
		var single netip.Addr
		if single, err = netip.ParseAddr(r.Address); err != nil {
			return r, fmt.Errorf("neither %q nor an IP address or prefix", thePeer)
		}
		r.prefix = netip.PrefixFrom(single, single.BitLen())
	}
	return r, nil
}

// String is what ParseRules reads.
func (r Rules) String() string {
	if len(r) == 0 {
		return "none"
	}
	var parts []string
	for _, rule := range r {
		text := rule.Address
		if strings.Contains(text, ":") {
			text = "[" + text + "]"
		}
		if rule.SourcePorts != "" {
			text = rule.SourcePorts + ">" + text
		}
		if rule.DestinationPorts != "" {
			text += ":" + rule.DestinationPorts
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ",")
}

// permit says why the packets must not be touched; nil when they may. peer are the addresses of the transfer's other host, and port the one
// at which its agent takes data.
func (r Rules) permit(t target, peer []netip.Addr, port uint16) *failure.Failure {
	for _, m := range t.matches {
		to := m.Destination.Addr()
		if within(tclinux.Ports{First: port, Last: port}, m.DestinationPorts) && slices.Contains(peer, to) {
			return failure.New(failure.MatchRefused,
				"the destination ports must not take in %d, by which the agent on %s receives what others have booked", port, to)
		}
		allowed := slices.ContainsFunc(r, func(rule Rule) bool {
			there := rule.prefix.Contains(to)
			if rule.Address == thePeer {
				there = slices.Contains(peer, to)
			}
			return there && within(m.SourcePorts, rule.source) && within(m.DestinationPorts, rule.destination)
		})
		if !allowed {
			return failure.New(failure.MatchRefused, "packets to %s, source ports %s, destination ports %s, are not among those that this host lets be observed: --observe %s",
				to, portsText(m.SourcePorts), portsText(m.DestinationPorts), r)
		}
	}
	return nil
}

// within says that every port of one range is in the other; the zero value is all ports.
func within(inner, outer tclinux.Ports) bool {
	if outer == (tclinux.Ports{}) {
		return true
	}
	if inner == (tclinux.Ports{}) {
		inner = tclinux.Ports{First: 0, Last: 65_535}
	}
	return outer.First <= inner.First && inner.Last <= outer.Last
}

func portsText(p tclinux.Ports) string {
	switch {
	case p == tclinux.Ports{}:
		return "any"
	case p.First == p.Last:
		return strconv.Itoa(int(p.First))
	}
	return fmt.Sprintf("%d-%d", p.First, p.Last)
}

// peerOf finds the addresses of the transfer's other host, and its data port. A host that has none is not a peer.
func peerOf(ctx context.Context, o *mover.Orders, names Resolver) ([]netip.Addr, uint16, error) {
	host, portText, err := net.SplitHostPort(o.Peer.Address)
	if err != nil {
		return nil, 0, nil
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, 0, nil
	}
	found := []netip.Addr{}
	if address, err := netip.ParseAddr(host); err == nil {
		found = append(found, address)
	} else if found, err = names.LookupNetIP(ctx, "ip", host); err != nil {
		return nil, 0, fmt.Errorf("address of the other host, %q: %w", host, err)
	}
	for i := range found {
		found[i] = found[i].Unmap().WithZone("")
	}
	return found, uint16(port), nil
}
