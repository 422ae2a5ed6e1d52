// SPDX-License-Identifier: Apache-2.0

package emulate

import "bandwidthbroker/agents/internal/gateway"

// maxFlows bounds memory; the flows beyond share number 0, the unknown one.
const maxFlows = 1 << 16

// flows numbers five-tuples in the order of their appearance.
type flows struct {
	numbers map[gateway.Flow]int
	all     []gateway.Flow
	last    int
}

func newFlows() flows {
	return flows{numbers: map[gateway.Flow]int{{}: 0}, all: []gateway.Flow{{}}}
}

// find returns a packet's flow and its number. Packets come in trains: mostly it is the last one's.
func (f *flows) find(packet []byte) (gateway.Flow, int) {
	flow, _ := gateway.ParseFlow(packet)
	if flow == f.all[f.last] {
		return flow, f.last
	}
	number, known := f.numbers[flow]
	if !known && len(f.all) < maxFlows {
		number = len(f.all)
		f.numbers[flow] = number
		f.all = append(f.all, flow)
	}
	f.last = number
	return flow, number
}
