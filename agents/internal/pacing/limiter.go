// SPDX-License-Identifier: Apache-2.0

package pacing

import "net/netip"

// Socket is a TCP connection that can be held to a rate: one of this process, or a duplicate of another's.
type Socket interface {
	// Control calls f with the descriptor, which is valid only inside of f.
	Control(f func(fd uintptr)) error
	Local() netip.AddrPort
	Remote() netip.AddrPort
}

// BalanceEvery is how often Limiter.Balance should be called, in µs: twice within the 100 ms in which the share of a stream
// that stalls shall be with the others.
const BalanceEvery int64 = 40_000

// Limiter holds sockets of one transfer, together, to one rate of payload. Package mechanism implements it. It is not safe
// for concurrent use.
type Limiter interface {
	// Attach begins to hold a socket; a second time is a no-op.
	Attach(s Socket) error
	// Detach lets go of a socket that is closed, and gives its share to the others.
	Detach(s Socket)
	// SetRate sets the payload rate in bit/s (0: send as little as the mechanism can) and returns what the kernel, read
	// back, now holds to.
	SetRate(rateBps int64) (heldBps int64, err error)
	// Balance looks at what every socket really uses and moves shares to where they are used; the sum is never more than
	// the rate. Call it every BalanceEvery while anything is sent; now is monotonic time in µs.
	Balance(now int64) error
	// Close undoes everything on the host that was done for this transfer.
	Close() error
}
