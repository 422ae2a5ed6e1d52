// SPDX-License-Identifier: Apache-2.0

package pacing

import "bandwidthbroker/agents/internal/schedule"

const (
	// MaxBurst is what the kernel sends at once at most, whatever the rate, in bytes.
	MaxBurst int64 = 64 << 10
	// unpaced is how many segments at the beginning of a connection the kernel does not pace.
	unpaced int64 = 10
)

// Burst is how many bytes the kernel sends at a time when it is paced slowly: two segments, and on short paths more, up to
// MaxBurst (tcp_tso_autosize in Linux; roundTripLog is the sysctl net.ipv4.tcp_tso_rtt_log: the addition is halved for every
// 2^log µs of the smallest round trip; 0: off).
func Burst(segment, roundTrip int64, roundTripLog int) int64 {
	burst := 2 * segment
	if roundTripLog > 0 {
		if shift := roundTrip >> roundTripLog; shift < 32 {
			burst = max(burst, min(burst+MaxBurst>>shift, MaxBurst))
		}
	}
	return burst
}

// TrainTime is by how much earlier still, in µs, a connection must be slowed down before a step: the packets for which the
// kernel has set its timer leave all the same. lowest is the lowest booked rate in bit/s.
func TrainTime(lowest int64) int64 {
	const most = 50_000
	return min(schedule.Duration(lowest, 2*Ethernet), most)
}
