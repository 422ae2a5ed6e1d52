// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"net"

	"bandwidthbroker/agents/internal/brokerapi"
	"bandwidthbroker/agents/internal/mover"
)

// match is the packets of an observed transfer; they go to the other agent's host unless an address was given.
func match(m brokerapi.FlowMatchOut, peer brokerapi.Peer) mover.Match {
	made := mover.Match{Protocol: string(m.Protocol), Address: m.Address}
	if made.Address == "" {
		made.Address = peer.DataAddress
	}
	if host, _, err := net.SplitHostPort(made.Address); err == nil {
		made.Address = host
	}
	if m.SourcePorts != nil {
		made.SourcePorts = *m.SourcePorts
	}
	if m.DestinationPorts != nil {
		made.DestinationPorts = *m.DestinationPorts
	}
	return made
}
