// SPDX-License-Identifier: Apache-2.0

// Package wirerate converts between the rate of payload, in which everything is booked, and the rate of packets as a
// queueing discipline of the Linux kernel counts them: payload and the headers of every segment, link header included,
// Ethernet's preamble, check sum and gap not (RR-6205, section 3.3, has the same steps from the other end).
package wirerate

import "math/bits"

// Bytes of headers, as they lie in front of the payload.
const (
	Ethernet   = 14 // on Ethernet, veth and loopback; a TUN device has none
	IPv4       = 20
	IPv6       = 40
	TCPHeader  = 20
	UDPHeader  = 8
	Timestamps = 12 // the TCP option, padded; on by default in Linux
)

// Framing is how one full packet divides: Payload bytes of the user, and Headers in front of them.
type Framing struct {
	Payload, Headers int
}

// TCP is the framing of a connection: mss is TCP_INFO's snd_mss, which has the options taken off already.
func TCP(mss int, ipv6, timestamps bool, linkHeader int) Framing {
	headers := linkHeader + IPv4 + TCPHeader
	if ipv6 {
		headers += IPv6 - IPv4
	}
	if timestamps {
		headers += Timestamps
	}
	return Framing{Payload: max(mss, 1), Headers: headers}
}

// Wire is the rate that carries payloadBps in full packets, rounded up to whole bit/s: never too little for what is
// booked, and too much by less than 1 bit/s.
func (f Framing) Wire(payloadBps int64) int64 {
	return scale(payloadBps, int64(f.Payload+f.Headers), int64(f.Payload), true)
}

// Carried is the rate of payload in wireBps of full packets, rounded down.
func (f Framing) Carried(wireBps int64) int64 {
	return scale(wireBps, int64(f.Payload), int64(f.Payload+f.Headers), false)
}

// PayloadBytes is what is left of counted bytes without the headers of so many packets, of whatever size.
func (f Framing) PayloadBytes(bytes, packets uint64) int64 {
	high, headers := bits.Mul64(packets, uint64(f.Headers))
	if high != 0 || headers > bytes || bytes-headers > 1<<62 {
		return 0
	}
	return int64(bytes - headers)
}

// scale is x times over/under without overflow on the way; what does not fit becomes the largest rate there is.
func scale(x, over, under int64, up bool) int64 {
	const most = int64(1) << 62
	if x <= 0 || over <= 0 || under <= 0 {
		return 0
	}
	high, low := bits.Mul64(uint64(x), uint64(over))
	if high >= uint64(under) {
		return most
	}
	quotient, rest := bits.Div64(high, low, uint64(under))
	if up && rest > 0 {
		quotient++
	}
	return int64(min(quotient, uint64(most)))
}
