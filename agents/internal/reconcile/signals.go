// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"encoding/hex"

	"bandwidthbroker/agents/internal/brokerapi"
	"bandwidthbroker/agents/internal/mover"
	"bandwidthbroker/agents/internal/schedule"
)

// startAfter and endSignals turn what the broker says of a transfer's neighbours into comparable values. Keys and times
// were checked when they were parsed.
func startAfter(a *brokerapi.StartAfter) mover.StartAfter {
	if a == nil {
		return mover.StartAfter{}
	}
	early := schedule.Forever
	if a.EarlyFrom != nil {
		early = a.EarlyFrom.UnixMicro()
	}
	return mover.StartAfter{
		Predecessor: signalPeer(a.Predecessor), Kind: mover.SignalKind(a.Kind), EarlyFrom: early, Timeout: a.TimeoutUs,
		Cancel: a.OnTimeout == brokerapi.Cancel, Released: a.Released,
	}
}

func endSignals(list []brokerapi.EndSignal) (signals []mover.EndSignal) {
	for _, e := range list {
		signals = append(signals, mover.EndSignal{
			Successor: signalPeer(e.Successor), Kind: mover.SignalKind(e.Kind), Timeout: e.TimeoutUs, Delay: e.OnOverrun == brokerapi.Delay,
		})
	}
	return signals
}

func signalPeer(p brokerapi.SignalPeer) mover.SignalPeer {
	key, _ := hex.DecodeString(p.Key)
	return mover.SignalPeer{Transfer: p.TransferID, Host: p.Host, Address: p.DataAddress, Key: string(key)}
}
