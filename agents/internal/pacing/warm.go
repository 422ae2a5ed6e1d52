// SPDX-License-Identifier: Apache-2.0

package pacing

import "bandwidthbroker/agents/internal/schedule"

// A booked rate is known beforehand, so that a sender need not discover it. What keeps a new connection from it is the
// congestion window, which begins at ten segments and doubles with every round trip: at 500 Mbit/s and 100 ms that takes
// almost a second. Linux counts the window in segments, whatever their size. So in the round trips before the first booked
// instant some of the file's bytes leave one by one, a segment each: as many segments as the booked rate will have in
// flight, and a hundredth of its bytes or less. Then the window is as large as the booking needs, from the first instant
// on. It also passes the kernel's rule that the first ten segments of a connection are not paced.

const (
	// TinyWire is what a segment of one byte takes on the wire, with TCP time stamps and Ethernet's header.
	TinyWire int64 = 1 + 52 + 14
	// warmShare bounds all of it: 1/warmShare of what the first second of the booking carries (0.5 %), so that it stays
	// under 1 % of the rate over any 500 ms.
	warmShare int64 = 200
)

// Path is what TCP knows of the way to the peer.
type Path struct {
	RTT      int64 // µs, the smallest seen
	Packet   int64 // bytes of payload in a full segment
	Window   int64 // congestion window, segments
	InFlight int64 // segments
	Sent     int64 // segments with data since the connection was made
}

// WindowFor is the congestion window that a rate needs on a path, in segments, and no more than warming up may bring about.
func WindowFor(rateBps int64, path Path) int64 {
	need := schedule.Volume(rateBps, path.RTT+path.RTT/4)/max(path.Packet, 1) + unpaced
	return min(need, max(schedule.Volume(rateBps, 1_000_000)/warmShare/TinyWire, unpaced))
}

// WarmLead is how long before a segment warming up must begin, in µs: a round trip for each doubling, and one for
// packets that leave spread over it.
func WarmLead(rateBps int64, path Path) int64 {
	want, window, rounds := WindowFor(rateBps, path), max(path.Window, 1), int64(1)
	for window < want {
		window *= 2
		rounds++
	}
	return rounds*max(path.RTT+path.RTT/8, warmEvery) + 2*warmEvery
}

const (
	// warmEvery is how often warming up looks, and maxLook the longest time that one look makes good.
	warmEvery int64 = 1_000  // µs
	maxLook   int64 = 10_000 // µs
)

// Warm says how many segments of one byte may leave now, so many microseconds after it was asked last, and when to ask
// again: 0 when the window is wide enough. They leave no faster than the packets of the booked rate will.
func Warm(rateBps int64, path Path, since int64) (segments, askAfter int64) {
	want := WindowFor(rateBps, path)
	if path.Window >= want && path.Sent >= unpaced {
		return 0, 0
	}
	// Every segment that is on the way will widen the window by one.
	lacking := max(want-path.Window-path.InFlight, unpaced-path.Sent)
	perLook := schedule.Volume(rateBps, max(warmEvery, min(since, maxLook)))/max(path.Packet, 1) + 1
	return max(0, min(path.Window-path.InFlight, lacking, perLook)), warmEvery
}
