// SPDX-License-Identifier: Apache-2.0

package signal

// Verdict is what a successor has found out.
type Verdict uint8

// Verdicts. All but Waiting are final.
const (
	Waiting   Verdict = iota
	Signalled         // the predecessor said GO
	Released          // the broker says that the predecessor has ended
	TimedOut          // nothing was heard for the pair's timeout
)

func (v Verdict) String() string {
	return [...]string{"waiting", "signalled", "released", "timed out"}[v]
}

// SuccessorConfig is what does not change while a pair lives.
type SuccessorConfig struct {
	Pair    Pair
	Nonce   Nonce // drawn for this run
	Timeout int64 // µs, the pair's
}

// maxRuns bounds how many runs of its predecessor a successor believes in: each restart draws a nonce.
const maxRuns = 16

// Successor is the side that waits for the link. The link counts as taken until the timeout has passed since the booked
// begin, since the last HOLD, and since this run began: an earlier run may have answered a HOLD that this one does not
// know of. It is not safe for concurrent use.
type Successor struct {
	cfg   SuccessorConfig
	begin int64 // booked
	early int64 // a signal may start it from then on; Never
	heard int64 // the last HOLD of a run of the predecessor that knows our nonce

	predecessor Nonce // of the run that is believed
	known       bool
	retired     []Nonce // earlier runs of it
	number      uint32  // the highest of that run
	done        int64   // when the predecessor expected to be done

	gone    bool // the predecessor has ended
	goneBy  Verdict
	goneAt  int64
	cause   Cause
	verdict Verdict
	at      int64
}

// NewSuccessor makes one that has heard nothing.
func NewSuccessor(cfg SuccessorConfig, now int64) *Successor {
	return &Successor{cfg: cfg, begin: Never, early: Never, heard: now, done: Never}
}

// Plan says when the booking begins, and from when on a signal may start it before that.
func (s *Successor) Plan(begin, early int64) { s.begin, s.early = begin, early }

// Skip ends the waiting: an earlier run has started already.
func (s *Successor) Skip(now int64) { s.decide(now, Released) }

// Release takes the broker's word that the predecessor has ended.
func (s *Successor) Release(now int64) {
	if s.verdict == Waiting && !s.gone {
		s.gone, s.goneBy, s.goneAt = true, Released, now
	}
}

// Verdict is what was found out, and when. A GO's cause is known with it.
func (s *Successor) Verdict() (v Verdict, at int64, cause Cause) { return s.verdict, s.at, s.cause }

// Expected is when the predecessor will be done, by its own estimate; Never while it has not said.
func (s *Successor) Expected() int64 {
	if s.gone {
		return s.goneAt
	}
	return s.done
}

// Advance decides what time alone decides, and returns when to ask again.
func (s *Successor) Advance(now int64) (wakeAt int64) {
	if s.verdict != Waiting {
		return Never
	}
	if s.gone {
		start := min(s.begin, max(s.early, s.goneAt))
		if s.goneBy == Released && s.done != Never {
			start = max(start, s.heard+s.cfg.Timeout) // the broker knows more, but not sooner, than the predecessor that still holds the link
		}
		if now < start {
			return start
		}
		s.decide(now, s.goneBy)
		return Never
	}
	if s.begin == Never {
		return Never
	}
	deadline := max(s.begin, s.heard) + s.cfg.Timeout
	if now < deadline {
		return deadline
	}
	s.decide(now, TimedOut)
	return Never
}

func (s *Successor) signalled() bool { return s.gone && s.goneBy == Signalled }

func (s *Successor) decide(now int64, v Verdict) {
	if s.verdict == Waiting {
		s.verdict, s.at = v, now
	}
}

// Receive takes a frame that was proved to come from the predecessor's sender, and answers it.
func (s *Successor) Receive(now int64, f Frame) []Frame {
	answer := Frame{
		Kind: Held, Pair: s.cfg.Pair, Number: f.Number, PredecessorNonce: f.PredecessorNonce, SuccessorNonce: s.cfg.Nonce,
	}
	s.Advance(now) // what has timed out before stays so
	fresh := f.SuccessorNonce == s.cfg.Nonce && s.believe(f)
	switch {
	case s.verdict != Waiting:
		answer.Kind = Started
	case f.Kind == Go && !fresh && !(s.signalled() && f.PredecessorNonce == s.predecessor):
		return nil // an old one: a predecessor that is alive says it again with our nonce
	case f.Kind == Go && s.signalled():
		answer.Kind = Started
	case f.Kind == Go:
		s.gone, s.goneBy, s.goneAt, s.cause = true, Signalled, now, f.Cause
		s.Advance(now)
		answer.Kind = Started
	case fresh:
		s.gone = s.gone && s.goneBy == Released // a run that began anew takes back the GO of an earlier one while there is time
		s.heard = max(s.heard, now)
		s.done = now + int64(f.Remaining)
	}
	return []Frame{answer}
}

// believe says that a frame with our nonce is neither a copy nor from a run that another has followed.
func (s *Successor) believe(f Frame) bool {
	if s.known && f.PredecessorNonce == s.predecessor {
		newer := f.Number > s.number
		s.number = max(s.number, f.Number)
		return newer
	}
	for _, old := range s.retired {
		if old == f.PredecessorNonce {
			return false
		}
	}
	if s.known {
		if len(s.retired) == maxRuns {
			return false
		}
		s.retired = append(s.retired, s.predecessor)
	}
	s.predecessor, s.known, s.number = f.PredecessorNonce, true, f.Number
	return true
}
