// SPDX-License-Identifier: Apache-2.0

package emulate

import "bandwidthbroker/agents/internal/gateway"

// Amount of traffic, in wire bytes.
type Amount struct {
	Packets int64 `json:"packets"`
	Bytes   int64 `json:"bytes"`
}

func (a *Amount) add(size int64) {
	a.Packets++
	a.Bytes += size
}

// Counters of one direction since the start.
type Counters struct {
	Offered  Amount
	Fates    [gateway.Fates]Amount
	QueueMax int64
	Refused  int64 // packets that the receiving device did not take
	refusal  error
}

func (c *Counters) of(fate gateway.Fate) *Amount { return &c.Fates[fate] }
