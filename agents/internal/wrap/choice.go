// SPDX-License-Identifier: Apache-2.0

package wrap

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Choice says which of a command's connections belong to the transfer. The zero value takes all that leave the host.
type Choice struct {
	Ports    []uint16       // of the other end, or of this one when it was connected to; empty: any
	To       []netip.Prefix // of the other end; empty: any
	Loopback bool           // those to this host as well
}

// ParsePorts reads "5001,8000-8010".
func ParsePorts(text string) ([]uint16, error) {
	var ports []uint16
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			last = first
		}
		from, err := strconv.ParseUint(first, 10, 16)
		to, also := strconv.ParseUint(last, 10, 16)
		if err != nil || also != nil || from == 0 || to < from {
			return nil, fmt.Errorf("%q is no port: want 873, 8000-8010, or several with commas", part)
		}
		for port := from; port <= to; port++ {
			ports = append(ports, uint16(port))
		}
	}
	return ports, nil
}

// ParseAddresses reads "192.0.2.7,2001:db8::/32".
func ParseAddresses(text string) ([]netip.Prefix, error) {
	var found []netip.Prefix
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if prefix, err := netip.ParsePrefix(part); err == nil {
			found = append(found, prefix.Masked())
			continue
		}
		address, err := netip.ParseAddr(part)
		if err != nil {
			return nil, fmt.Errorf("%q is no address: want 192.0.2.7, 2001:db8::7 or 192.0.2.0/24, several with commas", part)
		}
		found = append(found, netip.PrefixFrom(address.Unmap(), address.Unmap().BitLen()))
	}
	return found, nil
}

// takes says whether a connection belongs to the transfer. local is not known (port 0) while it is being made; it counts
// for a command that is connected to.
func (c Choice) takes(local, to netip.AddrPort) bool {
	address := to.Addr().Unmap()
	if !address.IsValid() || ((address.IsLoopback() || address.IsUnspecified()) && !c.Loopback) {
		return false
	}
	if len(c.Ports) > 0 && !slices.Contains(c.Ports, to.Port()) && !slices.Contains(c.Ports, local.Port()) {
		return false
	}
	for _, prefix := range c.To {
		if prefix.Contains(address) {
			return true
		}
	}
	return len(c.To) == 0
}
