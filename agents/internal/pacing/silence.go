// SPDX-License-Identifier: Apache-2.0

package pacing

// A kernel that paces knows no rate of 0. When a packet leaves, the kernel sets a timer for the next one by the rate that
// holds then (internal pacing of Linux, tcp_update_skb_after_send); a later change does not move that timer, and a higher
// rate takes effect only when something is acknowledged. So a connection is kept silent by one low rate, chosen such that
// the timer of the packet that still leaves runs out just after the gap, and by the rate of what follows the gap as soon as
// that packet is under way: its acknowledgement brings the rate into force, and the timer guards the gap.

const (
	// leak is the share of the booked rate (1/leak = 0.25 %) that connections may send together while nothing is booked,
	// where acknowledgements come back too fast for the way above.
	leak = 400
	// afterGap is how long after the end of a gap a connection goes on.
	afterGap int64 = 10_000 // µs
	// FastReturn is the round trip below which the acknowledgement arrives before the rate can be changed.
	FastReturn int64 = 3_000 // µs
	// slowest is as slow as it gets: a packet every two seconds or so.
	slowest int64 = 8_000 // bit/s
)

// QuietRate is the rate that keeps one of n connections as good as silent. peak is the highest rate that is booked, gap what is
// left of the silence in µs (0: unknown), burst how many bytes the kernel sends at a time.
func QuietRate(peak int64, n int, gap, burst, roundTrip int64) int64 {
	low := slowest
	if gap > 0 {
		low = max(low, burst*8_000_000/(gap+afterGap))
	}
	if roundTrip < FastReturn {
		low = max(low, peak/leak/int64(max(n, 1)))
	}
	return low
}

// Opening is over which time, in µs, the packets that the kernel does not pace are taken out of what a connection may send.
const Opening int64 = 200_000

// OpeningCap is the cap of a connection that has just begun: less by its first packets, which leave at once.
func OpeningCap(cap, segment int64) int64 {
	return max(cap-unpaced*segment*8_000_000/Opening, cap/2)
}
