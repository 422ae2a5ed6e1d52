// SPDX-License-Identifier: Apache-2.0

// Package mechanism holds the connections of a transfer to its booked rate, by one of the rate mechanisms of RR-6205
// (section 2.1): the sender's own timer, the round trip, a kernel timer, or the pacing of packets.
package mechanism

import (
	"net/netip"
	"time"
)

// Name is how the API calls a mechanism.
type Name string

// Report says of one mechanism whether this host can use it, and if not, why.
type Report struct {
	Name      Name   `json:"name"`
	Available bool   `json:"available"`
	Reason    string `json:"reason,omitempty"`
}

// Socket is a TCP connection that can be held to a rate: one of this process, or a duplicate of another's.
type Socket interface {
	// Control calls f with the descriptor, which is valid only inside of f.
	Control(f func(fd uintptr)) error
	Local() netip.AddrPort
	Remote() netip.AddrPort
}

// BalanceEvery is how often Limiter.Balance should be called: twice within the 100 ms in which the share of a stream that
// stalls shall be with the others.
const BalanceEvery = 40 * time.Millisecond

// Limiter holds all sockets of one transfer, together, to one rate of payload. It is not safe for concurrent use.
type Limiter interface {
	Name() Name
	// Attach begins to hold a socket; a second time is a no-op.
	Attach(s Socket) error
	// Detach lets go of a socket that is closed, and gives its share to the others.
	Detach(s Socket)
	// SetRate sets the payload rate in bit/s (0: send as little as the mechanism can) and answers what the kernel, read
	// back, now holds to.
	SetRate(rateBps int64) (heldBps int64, err error)
	// Balance looks at what every socket really uses and moves shares to where they are used; the sum is never more than
	// the rate. Call it every BalanceEvery while anything is sent; now is monotonic time in µs.
	Balance(now int64) error
	// Close undoes everything on the host that was done for this transfer.
	Close() error
}
