// SPDX-License-Identifier: Apache-2.0

package share

const (
	// leak is the share of the booked rate (1/leak = 0.25 %) that connections may send together while nothing is booked.
	leak = 400
	// late is how long after the end of a gap a connection goes on: by then it has its rate again.
	late int64 = 10_000 // µs
)

// Hold is the rate that keeps one of n connections as good as silent through a gap: the kernel knows no rate of 0. The
// kernel's timer for the next packet is set when the one before leaves, and a higher rate does not shorten it, so the
// rate is chosen such that the timer runs out just after the gap. peak is the highest rate that is booked, gap what is
// left of the silence in µs (0: unknown), burst how many bytes the kernel sends at a time.
func Hold(peak int64, n int, gap, burst int64) int64 {
	least := max(peak/leak/int64(max(n, 1)), 8_000)
	if gap <= 0 {
		return least
	}
	return max(least, burst*8_000_000/(gap+late))
}

// Burst is how many bytes the kernel sends at a time when it is paced slowly: two packets, and on short paths more, up to
// 64 kB (sysctl net.ipv4.tcp_tso_rtt_log: halved for every 2^log µs of round trip; 0: off).
func Burst(segment, minRTT int64, roundTripLog int) int64 {
	const most = 64 << 10
	burst := 2 * segment
	if roundTripLog > 0 {
		if shift := minRTT >> roundTripLog; shift < 32 {
			burst = max(burst, min(burst+most>>shift, most))
		}
	}
	return burst
}
