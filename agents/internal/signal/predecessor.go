// SPDX-License-Identifier: Apache-2.0

package signal

import "math"

// Never is later than anything.
const Never int64 = math.MaxInt64

const (
	// minLead is how long before its end a predecessor begins to hold.
	minLead int64 = 1_000_000 // µs
	// minRetry and maxFirstRetry bound the wait for an answer: datagrams between neighbours are answered within a
	// millisecond of scheduling, and an unknown path is not worth a slower start than this.
	minRetry      int64 = 3_000  // µs
	maxFirstRetry int64 = 50_000 // µs
	// eagerRetries come evenly spaced; after them the wait doubles, since no successor seems to be there.
	eagerRetries = 4
	// minPatience is how long a GO is repeated at least. A successor that has not heard it by then has timed out.
	minPatience int64 = 2_000_000 // µs
	// remembered is how many frames wait for an answer at once: more than one round trip's worth.
	remembered = 128
)

// PredecessorConfig is what does not change while a pair lives.
type PredecessorConfig struct {
	Pair    Pair
	Nonce   Nonce // drawn for this run
	Timeout int64 // µs, the pair's
	Margin  int64 // µs by which the lease is given up early: what the host needs to stop sending
}

// Predecessor is the side that has the link. While it nears its end it sends HOLDs; each one that is answered gives it a
// lease, during which the successor does not start. Release makes it say GO until that is answered. It is not safe for
// concurrent use.
type Predecessor struct {
	cfg       PredecessorConfig
	holdAt    int64 // begin to hold
	end       int64 // of the booking: and of holding
	extended  int64 // or this, if it is later
	expected  int64 // when it will be done
	number    uint32
	sent      [remembered]sending
	heard     uint32 // the highest number answered
	successor Nonce
	armed     bool // the successor's nonce is known: GO can be said
	lease     int64
	rtt       int64 // 0: not measured
	next      int64 // send again then

	release  int64 // say GO from then on; Never
	cause    Cause
	tries    int
	firstGo  int64
	lastTry  int64
	over     bool
	answered bool
}

type sending struct {
	number uint32
	at     int64
	fresh  Nonce // the successor's nonce that it carried
}

// NewPredecessor makes one that holds nothing yet.
func NewPredecessor(cfg PredecessorConfig) *Predecessor {
	return &Predecessor{cfg: cfg, holdAt: Never, end: math.MinInt64, extended: math.MinInt64, expected: Never, release: Never}
}

// Plan says when the booking ends and when the transfer expects to be done. It holds the link from a second before the
// earlier of them to the end of the booking.
func (p *Predecessor) Plan(end, expected int64) {
	p.end, p.expected = end, min(end, expected)
	p.holdAt = p.expected - max(minLead, p.cfg.Timeout)
}

// Extend holds the link beyond the booked end up to an instant: a caller that does not extend it again has stopped using it.
func (p *Predecessor) Extend(until int64) { p.extended = max(p.extended, until) }

func (p *Predecessor) holds(now int64) bool {
	return p.release == Never && now >= p.holdAt && now < max(p.end, p.extended)
}

// LeaseUntil is the instant up to which the successor is sure not to start; 0 when nothing is promised.
func (p *Predecessor) LeaseUntil() int64 {
	if p.release != Never || p.over {
		return 0
	}
	return p.lease
}

// Armed says that a GO would be understood at once.
func (p *Predecessor) Armed() bool { return p.armed }

// RoundTrip is the smoothed time from HOLD to HELD, 0 before the first.
func (p *Predecessor) RoundTrip() int64 { return p.rtt }

// Released is when the first GO left, and why; 0 before.
func (p *Predecessor) Released() (int64, Cause) { return p.firstGo, p.cause }

// Over says that nothing more will be sent; answered, that the successor said STARTED.
func (p *Predecessor) Over() (over, answered bool) { return p.over, p.answered }

// Release frees the link, at an instant not before everything that was sent has left. The first cause stays.
func (p *Predecessor) Release(now, at int64, cause Cause) {
	if p.release != Never || p.over {
		return
	}
	p.release, p.cause = max(now, at), cause
	p.lastTry = p.release + max(minPatience, 3*p.cfg.Timeout)
	p.next = p.release
}

// Advance returns what to send at an instant, if anything, and when to ask again.
func (p *Predecessor) Advance(now int64) (frames []Frame, wakeAt int64) {
	switch {
	case p.over:
		return nil, Never
	case p.release == Never && now < p.holdAt:
		return nil, p.holdAt
	case p.release == Never && !p.holds(now):
		return nil, Never
	case now < p.next:
		return nil, p.next
	case p.release != Never && now >= p.lastTry:
		p.over = true
		return nil, Never
	}
	frame := p.say(now)
	p.next = now + p.interval()
	return []Frame{frame}, p.next
}

// say is the next frame: GO if that can be said, else HOLD, which asks for the successor's nonce.
func (p *Predecessor) say(now int64) Frame {
	p.number++
	frame := Frame{Kind: Hold, Pair: p.cfg.Pair, Number: p.number, PredecessorNonce: p.cfg.Nonce, SuccessorNonce: p.successor}
	if p.release != Never {
		p.tries++
	}
	if p.release != Never && p.armed {
		frame.Kind, frame.Cause = Go, p.cause
		if p.firstGo == 0 {
			p.firstGo = now
		}
	} else if left := p.expected - now; left > 0 && p.release == Never {
		frame.Remaining = uint32(min(left, math.MaxUint32))
	}
	p.sent[p.number%remembered] = sending{p.number, now, p.successor}
	return frame
}

// interval is how long to wait before the next frame. HOLDs come four times in a timeout, and often enough that the lease
// from one lasts until the answer to the next is here.
func (p *Predecessor) interval() int64 {
	if p.release == Never && p.armed {
		spare := (p.cfg.Timeout - p.cfg.Margin - p.rtt) / 2
		return max(minRetry, min(p.cfg.Timeout/4, max(spare, p.cfg.Timeout/16)))
	}
	retry := min(max(p.cfg.Timeout/4, minRetry), maxFirstRetry)
	if p.rtt > 0 {
		retry = max(minRetry, p.rtt+p.rtt/4+1_000)
	}
	if p.release != Never && p.tries > eagerRetries {
		retry <<= min(p.tries-eagerRetries, 8)
		retry = min(retry, max(p.cfg.Timeout/4, minRetry))
	}
	return retry
}

// Receive takes an answer that was proved to come from the successor's sender.
func (p *Predecessor) Receive(now int64, f Frame) (frames []Frame) {
	if p.over || f.PredecessorNonce != p.cfg.Nonce || f.Number > p.number || f.Number == 0 {
		return nil
	}
	if f.Kind == Started {
		p.over, p.answered = true, true
		return nil
	}
	sent := p.sent[f.Number%remembered]
	if f.Kind != Held || sent.number != f.Number || f.Number <= p.heard {
		return nil
	}
	p.heard = f.Number
	sample := max(1, now-sent.at)
	if p.rtt == 0 {
		p.rtt = sample
	}
	p.rtt += (sample - p.rtt) / 8
	changed := !p.armed || f.SuccessorNonce != p.successor
	if p.armed && sent.fresh == f.SuccessorNonce {
		p.lease = max(p.lease, sent.at+p.cfg.Timeout-p.cfg.Margin)
	}
	p.successor, p.armed = f.SuccessorNonce, true
	// A nonce that is new is worth an immediate answer: a HOLD that counts, or the GO that could not be said before.
	if changed && (p.holds(now) || now >= p.release) {
		frames = []Frame{p.say(now)}
		p.next = now + p.interval()
	}
	return frames
}
