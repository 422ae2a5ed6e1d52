// SPDX-License-Identifier: Apache-2.0

package tclinux

import "time"

// Shape is what HTB is told of a class. Rate and ceiling are the same: a booking is neither more nor less.
type Shape struct {
	RateBps int64
	Burst   time.Duration // what may be sent at once after a pause, as time at the rate; whole units of bucketUnit
	Quantum uint32        // bytes in one turn when several classes may send
}

// bucketUnit is the resolution of HTB's bucket (PSCHED_SHIFT 6).
const bucketUnit = 64 * time.Nanosecond

// quantumMost is where the kernel begins to complain, minQuantum is a full packet of Ethernet.
const (
	quantumMost = 200_000
	minQuantum  = 1514
)

// shape of a rate. HTB lets a class send while its bucket holds more than nothing and then owes what the packet cost, so
// that the bucket need not hold a packet. What it must hold is what falls due while the kernel's timer sleeps too long: a
// bucket that is full loses what is added. With a timer of resolution `tick` that is rate x tick, which is `tick` as a
// time, at every rate. The same number is the largest burst after a pause.
//
// The quantum is the bucket's bytes, so that classes that are ready together take turns in proportion to their rates.
func shape(rateBps int64, tick time.Duration) Shape {
	burst := (tick + bucketUnit - 1) / bucketUnit * bucketUnit
	bytes := float64(rateBps) / 8 * burst.Seconds()
	return Shape{
		RateBps: (rateBps + 7) / 8 * 8, // the kernel counts bytes per second
		Burst:   burst,
		Quantum: uint32(min(max(bytes, minQuantum), quantumMost)),
	}
}

// debtMost is how long a class may be silent after its rate was raised. HTB keeps what a class owes as a time: the 64 KiB
// that were sent at 100 kbit/s cost five seconds, at 1 Gbit/s too. A new class owes nothing, but what waits in the old one
// is lost, and with it all that a connection has under way, so that it goes on after a retransmission time-out (200 ms at
// least). It pays when the debt is longer.
const debtMost = 250 * time.Millisecond
