// SPDX-License-Identifier: Apache-2.0

// Package schedule is the booked rate of one transfer as a function of time: the TRC vector {(begin, end, rate)} of the
// VBLS paper, as the agent needs it. It is pure: time is an argument, in integer microseconds of broker time, rates are
// integer bit/s, volumes integer bytes. A Schedule is immutable; every change makes a new one.
package schedule

import (
	"math"
	"math/bits"
	"slices"
	"sort"
)

// Forever is later than any booking (about the year 36,000) and leaves room for additions without overflow.
const Forever int64 = 1 << 60

// Most is what Bytes returns when the true volume does not fit: no file is that large.
const Most int64 = math.MaxInt64 / 4

// bitMicrosPerByte turns rate x duration (bit/s x µs) into bytes.
const bitMicrosPerByte = 8_000_000

// Segment books RateBps over the half-open interval [Begin, End).
type Segment struct {
	Begin, End int64 // broker time, µs
	RateBps    int64
}

// step is the rate from its begin to the begin of the next step; bytes is the volume booked before begin.
type step struct {
	begin   int64
	rateBps int64
	bytes   int64
}

// Schedule is a step function of time that is 0 before the first segment and after the last.
type Schedule struct {
	steps []step
}

// New builds the step function of the segments. Segments may come in any order; where they overlap, their rates add up,
// as two bookings of one transfer on disjoint paths would. Empty and zero-rate segments book nothing.
func New(segments []Segment) Schedule {
	type edge struct{ at, delta int64 }
	edges := make([]edge, 0, 2*len(segments))
	for _, s := range segments {
		if s.Begin < s.End && s.RateBps > 0 {
			edges = append(edges, edge{s.Begin, s.RateBps}, edge{s.End, -s.RateBps})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return 0
	})
	var made Schedule
	var rate int64
	for i, e := range edges {
		rate += e.delta
		if i+1 == len(edges) || edges[i+1].at != e.at {
			made.push(e.at, rate)
		}
	}
	return made
}

// push appends a step; steps arrive in order of time. Equal neighbours merge.
func (s *Schedule) push(begin, rateBps int64) {
	n := len(s.steps)
	if n == 0 {
		if rateBps > 0 {
			s.steps = append(s.steps, step{begin, rateBps, 0})
		}
		return
	}
	last := s.steps[n-1]
	if last.rateBps != rateBps {
		s.steps = append(s.steps, step{begin, rateBps, add(last.bytes, Volume(last.rateBps, begin-last.begin))})
	}
}

// Volume is what a constant rate carries in so many microseconds, rounded down.
func Volume(rateBps, micros int64) int64 {
	if rateBps <= 0 || micros <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(rateBps), uint64(micros))
	if hi >= bitMicrosPerByte {
		return Most
	}
	q, _ := bits.Div64(hi, lo, bitMicrosPerByte)
	return int64(min(q, uint64(Most)))
}

// Duration is how many microseconds a constant rate needs for a volume, rounded up.
func Duration(rateBps, bytes int64) int64 {
	if bytes <= 0 {
		return 0
	}
	if rateBps <= 0 {
		return Forever
	}
	hi, lo := bits.Mul64(uint64(bytes), bitMicrosPerByte)
	if hi >= uint64(rateBps) {
		return Forever
	}
	q, rest := bits.Div64(hi, lo, uint64(rateBps))
	if rest > 0 {
		q++
	}
	return int64(min(q, uint64(Forever)))
}

func add(a, b int64) int64 { return min(a+b, Most) }

// index of the step that holds at t, or -1 before the first.
func (s Schedule) index(t int64) int {
	return sort.Search(len(s.steps), func(i int) bool { return s.steps[i].begin > t }) - 1
}

// RateAt is the booked rate at an instant.
func (s Schedule) RateAt(t int64) int64 {
	if i := s.index(t); i >= 0 {
		return s.steps[i].rateBps
	}
	return 0
}

// before is the volume booked in (-inf, t). Every volume is a difference of two of these, so that the rounding of many
// short intervals does not add up.
func (s Schedule) before(t int64) int64 {
	i := s.index(t)
	if i < 0 {
		return 0
	}
	return add(s.steps[i].bytes, Volume(s.steps[i].rateBps, t-s.steps[i].begin))
}

// Bytes is the volume booked in [from, to).
func (s Schedule) Bytes(from, to int64) int64 {
	if to <= from {
		return 0
	}
	return s.before(to) - s.before(from)
}

// NextChange is the first instant after t at which the rate changes.
func (s Schedule) NextChange(t int64) (int64, bool) {
	if i := s.index(t) + 1; i < len(s.steps) {
		return s.steps[i].begin, true
	}
	return 0, false
}

// NextActive is the first instant at or after t with a rate above 0.
func (s Schedule) NextActive(t int64) (int64, bool) {
	if s.RateAt(t) > 0 {
		return t, true
	}
	for i := s.index(t) + 1; i < len(s.steps); i++ {
		if s.steps[i].rateBps > 0 {
			return s.steps[i].begin, true
		}
	}
	return 0, false
}

// Empty says that nothing is booked at all.
func (s Schedule) Empty() bool { return len(s.steps) == 0 }

// Begin is the first booked instant, 0 when nothing is booked.
func (s Schedule) Begin() int64 {
	if s.Empty() {
		return 0
	}
	return s.steps[0].begin
}

// End is the first instant after everything booked, 0 when nothing is booked.
func (s Schedule) End() int64 {
	if s.Empty() {
		return 0
	}
	return s.steps[len(s.steps)-1].begin
}

// Then continues the schedule at a constant rate after its end, for what the booking could not carry.
func (s Schedule) Then(rateBps int64) Schedule {
	if s.Empty() || rateBps <= 0 {
		return s
	}
	steps := slices.Clone(s.steps)
	made := Schedule{steps: steps[:len(steps)-1]}
	made.push(s.End(), rateBps)
	made.push(Forever, 0)
	return made
}
