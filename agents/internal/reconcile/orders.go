// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"encoding/hex"

	"bandwidthbroker/agents/internal/brokerapi"
	"bandwidthbroker/agents/internal/mechanism"
	"bandwidthbroker/agents/internal/mover"
	"bandwidthbroker/agents/internal/schedule"
)

// Wanted turns the broker's document into orders. fallback, unless negative, is the agent's own setting and wins.
// Modes that this agent does not move itself are left out.
func Wanted(doc brokerapi.Assignments, fallback int64) []mover.Orders {
	if fallback < 0 {
		fallback = doc.FallbackRateBps
	}
	var wanted []mover.Orders
	for _, a := range doc.Assignments {
		foreign := (a.Mode == brokerapi.Wrapped || a.Mode == brokerapi.Observed) && a.Role == brokerapi.Send
		if a.Mode != brokerapi.Managed && !foreign {
			continue
		}
		wanted = append(wanted, orders(a, fallback))
	}
	return wanted
}

func orders(a brokerapi.Assignment, fallback int64) mover.Orders {
	key, _ := hex.DecodeString(a.Key) // was checked when it was parsed
	o := mover.Orders{
		Transfer: a.TransferID, Send: a.Role == brokerapi.Send, Wrapped: a.Mode == brokerapi.Wrapped, Volume: a.VolumeBytes, Overwrite: a.Overwrite, Unchecked: a.Unverified,
		Key: string(key), Peer: mover.Peer{Host: a.Peer.Host, Address: a.Peer.DataAddress},
		Revision: a.PlanRevision, Fallback: fallback, Paused: a.Paused,
	}
	if a.Mechanism != nil {
		o.Mechanism = mechanism.Name(*a.Mechanism)
	}
	if a.Mode == brokerapi.Observed && a.Match != nil {
		o.Match = match(*a.Match, a.Peer)
	}
	if a.Peer.TLSFingerprint != nil {
		o.Peer.Fingerprint = *a.Peer.TLSFingerprint
	}
	if o.Send {
		o.StartAfter, o.EndSignals = startAfter(a.StartAfter), endSignals(a.EndSignals)
	}
	path := a.DestinationPath
	if o.Send {
		path = a.SourcePath
	}
	if path != nil {
		o.Path = *path
	}
	for _, s := range a.Segments {
		o.Segments = append(o.Segments, schedule.Segment{Begin: s.Begin.UnixMicro(), End: s.End.UnixMicro(), RateBps: s.RateBps})
	}
	return o
}
