// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/binary"
	"net/netip"
)

// Protocol numbers of IP that a flow has ports for.
const (
	ProtocolTCP = 6
	ProtocolUDP = 17
)

// Flow is a five-tuple. Ports are 0 where there are none: other protocols, and all fragments but the first.
type Flow struct {
	Source, Destination         netip.Addr
	SourcePort, DestinationPort uint16
	Protocol                    uint8
}

// ParseFlow reads the five-tuple of an IP packet; ok is false for what is no IP packet.
func ParseFlow(packet []byte) (flow Flow, ok bool) {
	if len(packet) < 1 {
		return Flow{}, false
	}
	switch packet[0] >> 4 {
	case 4:
		return parseV4(packet)
	case 6:
		return parseV6(packet)
	}
	return Flow{}, false
}

func parseV4(p []byte) (Flow, bool) {
	header := int(p[0]&0xf) * 4
	if header < 20 || len(p) < header {
		return Flow{}, false
	}
	flow := Flow{Source: netip.AddrFrom4([4]byte(p[12:16])), Destination: netip.AddrFrom4([4]byte(p[16:20])), Protocol: p[9]}
	if fragment := binary.BigEndian.Uint16(p[6:8]) & 0x1fff; fragment == 0 {
		flow.ports(p[header:])
	}
	return flow, true
}

// Extension headers of IPv6 (RFC 8200, section 4) that may stand before the transport's.
const (
	hopByHop      = 0
	routing       = 43
	fragment      = 44
	authenticated = 51
	destination   = 60
)

func parseV6(p []byte) (Flow, bool) {
	if len(p) < 40 {
		return Flow{}, false
	}
	flow := Flow{Source: netip.AddrFrom16([16]byte(p[8:24])), Destination: netip.AddrFrom16([16]byte(p[24:40]))}
	next, rest := p[6], p[40:]
	for {
		var length int
		switch next {
		case hopByHop, routing, destination:
			if len(rest) < 2 {
				return Flow{}, false
			}
			length = (int(rest[1]) + 1) * 8
		case authenticated:
			if len(rest) < 2 {
				return Flow{}, false
			}
			length = (int(rest[1]) + 2) * 4
		case fragment:
			length = 8
		default:
			flow.Protocol = next
			flow.ports(rest)
			return flow, true
		}
		if len(rest) < length {
			return Flow{}, false
		}
		if next == fragment && binary.BigEndian.Uint16(rest[2:4])&0xfff8 != 0 {
			flow.Protocol = rest[0]
			return flow, true
		}
		next, rest = rest[0], rest[length:]
	}
}

func (f *Flow) ports(transport []byte) {
	if (f.Protocol == ProtocolTCP || f.Protocol == ProtocolUDP) && len(transport) >= 4 {
		f.SourcePort, f.DestinationPort = binary.BigEndian.Uint16(transport), binary.BigEndian.Uint16(transport[2:])
	}
}
