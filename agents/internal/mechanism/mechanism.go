// SPDX-License-Identifier: Apache-2.0

// Package mechanism holds the connections of a transfer to its booked rate, by one of the rate mechanisms of RR-6205
// (section 2.1): the sender's own timer, the round trip, a kernel timer, or the pacing of packets.
package mechanism

// Name is how the API calls a mechanism.
type Name string

// Report says of one mechanism whether this host can use it, and if not, why.
type Report struct {
	Name      Name   `json:"name"`
	Available bool   `json:"available"`
	Reason    string `json:"reason,omitempty"`
}
