// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"bandwidthbroker/agents/internal/agentstate"
	"bandwidthbroker/agents/internal/wirerate"
)

// count turns what a class counts, headers and all, into payload. What TCP sends again is counted again: the class
// cannot know. A class that counts less than it did is a new one, made after the agent was stopped.
type count struct {
	kept agentstate.Counted
	// full is a packet as large as the device allows; framing one of the mean size that was seen. Paths and peers may want
	// smaller packets, of which the headers are a larger part.
	full, framing wirerate.Framing
	seen          agentstate.Counted // where the mean began
}

const (
	// enough packets for a mean, and the least that a packet is taken to carry: with smaller ones it is no bulk transfer, and
	// the rate with headers would leave no room on the link.
	enough     = 1000
	minPayload = 536
)

func newCount(kept agentstate.Counted, full wirerate.Framing) *count {
	return &count{kept: kept, full: full, framing: full, seen: kept}
}

// take returns the payload in all.
func (c *count) take(bytes, packets uint64) int64 {
	if bytes < c.kept.Bytes || packets < c.kept.Packets {
		c.kept.Bytes, c.kept.Packets = 0, 0
		c.seen = c.kept
	}
	c.kept.Payload += c.full.PayloadBytes(bytes-c.kept.Bytes, packets-c.kept.Packets)
	c.kept.Bytes, c.kept.Packets = bytes, packets
	return c.kept.Payload
}

// learn takes the mean size of packets when enough have come since the last time, and says whether it is another one.
func (c *count) learn() bool {
	packets := c.kept.Packets - c.seen.Packets
	if packets < enough {
		return false
	}
	mean := (c.kept.Payload - c.seen.Payload) / int64(packets)
	c.seen = c.kept
	before := c.framing.Payload
	c.framing.Payload = min(max(int(mean), minPayload), c.full.Payload)
	// A difference of so little moves the rate by less than 0.1 %.
	if off := c.framing.Payload - before; off*off*100 < before {
		c.framing.Payload = before
		return false
	}
	return true
}
