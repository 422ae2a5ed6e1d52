// SPDX-License-Identifier: Apache-2.0

package mover

// Match is which packets an observed transfer consists of, in the words of the assignment. The zero value: it is not
// observed.
type Match struct {
	Protocol                      string // tcp or udp
	Address                       string // that they go to: an IP address, or a host's name
	SourcePorts, DestinationPorts string // "5001", "5001-5010"; empty: any
}

// Observed says that another program moves the data and this host only classes and counts its packets.
func (o Orders) Observed() bool { return o.Match != Match{} }
