// SPDX-License-Identifier: Apache-2.0

// Package gateway holds the disciplines of bwb-gateway. They are pure: time is an argument, so is the seed of what is random,
// and arithmetic is exact on integers, so that a run of any length neither gains nor loses a bit.
package gateway

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
)

// Bounds of what a link can be set to; within them no product below overflows 64 bits.
const (
	MaxCapacityBps = 1_000_000_000_000
	MaxDelay       = 60_000_000_000 // ns
	MaxBuffer      = 1 << 32        // bytes
	MaxFraming     = 1 << 10        // bytes
	Billion        = 1_000_000_000  // loss is in parts of it; a second has as many nanoseconds
	Never          = math.MaxInt64
)

// Settings describe one direction of a link: a transmitter with a drop-tail queue before it and a length of fibre behind it.
type Settings struct {
	CapacityBps int64 // of wire bytes
	Delay       int64 // ns from the last bit sent to the last bit received
	Buffer      int64 // wire bytes that may wait, beside the packet that is being sent
	Loss        int64 // packets of a billion that are sent, but do not arrive
}

// Check names the first value that is out of bounds.
func (s Settings) Check() error {
	switch {
	case s.CapacityBps < 1 || s.CapacityBps > MaxCapacityBps:
		return fmt.Errorf("capacity is %d bit/s: want 1 to %d (to carry nothing at all, cut the link)", s.CapacityBps, int64(MaxCapacityBps))
	case s.Delay < 0 || s.Delay > MaxDelay:
		return fmt.Errorf("delay is %d ns: want 0 to %d", s.Delay, int64(MaxDelay))
	case s.Buffer < 0 || s.Buffer > MaxBuffer:
		return fmt.Errorf("buffer is %d bytes: want 0 to %d", s.Buffer, int64(MaxBuffer))
	case s.Loss < 0 || s.Loss > Billion:
		return errors.New("loss is a share of all packets: want 0 to 1")
	}
	return nil
}

// Fate is what became of a packet.
type Fate uint8

const (
	Forwarded Fate = iota // it reached the other end
	Overflow              // the buffer was full
	Lost                  // at random, after it was sent
	Cut                   // the link was cut, or is
	Ordered               // a test ordered it
	Fates                 // how many there are
)

// Packet is one that the link has taken.
type Packet struct {
	Arrived int64 // ns
	Due     int64 // ns; when it leaves the link's far end
	Length  int   // bytes, without framing
	Flow    int   // the caller's own number
	Fate    Fate
}

// Link is one direction. Packets leave in the order in which they came. It is not safe for concurrent use.
type Link struct {
	set     Settings
	framing int64
	random  *rand.Rand
	cut     bool

	// One ring of packets: [head, sent) travel, sent is being sent (until finish), (sent, tail) wait.
	ring             []Packet
	head, sent, tail uint64
	finish           instant
	waiting          int64 // wire bytes in (sent, tail)
	lastDue          int64
}

// instant is an exact point in time: ns, and rest/capacity of a nanosecond.
type instant struct{ ns, rest int64 }

func (i instant) ceiling() int64 {
	if i.rest > 0 {
		return i.ns + 1
	}
	return i.ns
}

// NewLink makes an idle link. framing is added to the length of every packet to give its wire bytes; seed and stream choose the
// random losses.
func NewLink(s Settings, framing int64, seed, stream uint64) (*Link, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if framing < 0 || framing > MaxFraming {
		return nil, fmt.Errorf("framing is %d bytes: want 0 to %d", framing, MaxFraming)
	}
	return &Link{set: s, framing: framing, random: rand.New(rand.NewPCG(seed, stream)), ring: make([]Packet, 1<<12)}, nil
}

// Settings are the present ones.
func (l *Link) Settings() Settings { return l.set }

// WireBytes of a packet.
func (l *Link) WireBytes(length int) int64 { return int64(length) + l.framing }

// Offer hands the link a packet, and returns Forwarded if it was taken. A packet that finds the transmitter idle needs no buffer.
func (l *Link) Offer(now int64, length, flow int) Fate {
	lost := l.set.Loss > 0 && l.random.Int64N(Billion) < l.set.Loss // drawn for every packet, so that the n-th draw is the n-th packet's
	if l.cut {
		return Cut
	}
	l.advance(now)
	size := l.WireBytes(length)
	busy := l.sent != l.tail
	if busy && l.waiting+size > l.set.Buffer {
		return Overflow
	}
	packet := Packet{Arrived: now, Length: length, Flow: flow}
	if lost {
		packet.Fate = Lost
	}
	l.push(packet)
	if busy {
		l.waiting += size
	} else {
		l.finish = instant{ns: now}
		l.send(size)
	}
	return Forwarded
}

// send lets the transmitter work for a packet's time from finish on.
func (l *Link) send(size int64) {
	work := size*8*Billion + l.finish.rest
	l.finish = instant{ns: l.finish.ns + work/l.set.CapacityBps, rest: work % l.set.CapacityBps}
}

// advance moves what has been sent by now into the fibre.
func (l *Link) advance(now int64) {
	for l.sent != l.tail {
		done := l.finish.ceiling()
		if done > now {
			return
		}
		l.lastDue = max(l.lastDue, done+l.set.Delay) // a shorter delay overtakes nothing that is under way
		l.at(l.sent).Due = l.lastDue
		l.sent++
		if l.sent != l.tail {
			size := l.WireBytes(l.at(l.sent).Length)
			l.waiting -= size
			l.send(size)
		}
	}
}

// Pop takes the next packet that has left the far end by now; its fate says whether it is to be delivered.
func (l *Link) Pop(now int64) (Packet, bool) {
	l.advance(now)
	if l.head == l.sent || l.at(l.head).Due > now {
		return Packet{}, false
	}
	packet := *l.at(l.head)
	l.head++
	return packet, true
}

// Next is when Pop is worth calling again (or, for an empty fibre, when there will be something to wait for).
func (l *Link) Next() int64 {
	switch {
	case l.head != l.sent:
		return l.at(l.head).Due
	case l.sent == l.tail:
		return Never
	default:
		return max(l.lastDue, l.finish.ceiling()+l.set.Delay)
	}
}

// Set changes the link. The packet that is being sent goes on at the new capacity; what waits in a buffer that is now too small
// stays; the delay holds for packets that are not yet in the fibre.
func (l *Link) Set(now int64, s Settings) error {
	if err := s.Check(); err != nil {
		return err
	}
	l.advance(now)
	if l.sent != l.tail {
		work := (l.finish.ns-now)*l.set.CapacityBps + l.finish.rest
		l.finish = instant{ns: now + work/s.CapacityBps, rest: work % s.CapacityBps}
	}
	l.set = s
	return nil
}

// Cut ends all packets on the link, and those to come: Pop gives them back at once. What has left the far end is not on it.
func (l *Link) Cut(now int64) {
	l.advance(now)
	for i := l.head; i != l.tail; i++ {
		if p := l.at(i); i >= l.sent || p.Due > now {
			p.Due, p.Fate = now, Cut
		}
	}
	l.sent, l.waiting, l.lastDue, l.cut = l.tail, 0, now, true
}

// Restore ends a cut.
func (l *Link) Restore() { l.cut = false }

// IsCut says whether the link is cut.
func (l *Link) IsCut() bool { return l.cut }

// Queued is how many wire bytes wait for the transmitter at an instant.
func (l *Link) Queued(now int64) int64 {
	l.advance(now)
	return l.waiting
}

// Held is how many packets are on the link, waiting or travelling.
func (l *Link) Held() int { return int(l.tail - l.head) }

func (l *Link) at(i uint64) *Packet { return &l.ring[i&uint64(len(l.ring)-1)] }

func (l *Link) push(p Packet) {
	if l.tail-l.head == uint64(len(l.ring)) {
		larger := make([]Packet, 2*len(l.ring))
		for i := l.head; i != l.tail; i++ {
			larger[i&uint64(len(larger)-1)] = *l.at(i)
		}
		l.ring = larger
	}
	l.tail++
	*l.at(l.tail - 1) = p
}
