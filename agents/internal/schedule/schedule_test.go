// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// drawSegments draws bookings on a small time axis, so that they often touch, overlap and leave gaps.
func drawSegments(t *rapid.T) []Segment {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Segment {
		begin := rapid.Int64Range(0, 60).Draw(t, "begin")
		return Segment{begin, begin + rapid.Int64Range(0, 20).Draw(t, "length"), rapid.Int64Range(0, 5).Draw(t, "rate") * 8_000_000}
	}), 0, 6).Draw(t, "segments")
}

// rateAt is the definition: the sum of what is booked at an instant.
func rateAt(segments []Segment, t int64) (rate int64) {
	for _, s := range segments {
		if s.Begin <= t && t < s.End {
			rate += s.RateBps
		}
	}
	return rate
}

func TestEveryInstantAgainstTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		segments := drawSegments(t)
		s := New(segments)
		var bytes int64 // rates are whole bytes per microsecond here
		for at := int64(-5); at < 100; at++ {
			if got, want := s.RateAt(at), rateAt(segments, at); got != want {
				t.Fatalf("rate at %d: %d, want %d", at, got, want)
			}
			if got := s.Bytes(-5, at); got != bytes {
				t.Fatalf("bytes before %d: %d, want %d", at, got, bytes)
			}
			change, more := s.NextChange(at)
			for u := at + 1; u < 100; u++ {
				if rateAt(segments, u) != rateAt(segments, at) {
					if !more || change != u {
						t.Fatalf("next change after %d: %d %v, want %d", at, change, more, u)
					}
					break
				}
			}
			active, ever := s.NextActive(at)
			for u := at; u < 100; u++ {
				if rateAt(segments, u) > 0 {
					if !ever || active != u {
						t.Fatalf("next active from %d: %d %v, want %d", at, active, ever, u)
					}
					break
				}
			}
			bytes += rateAt(segments, at) / 8_000_000
		}
	})
}

func TestGuardedIsTheSmallestRateNearby(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		segments := drawSegments(t)
		guard := rapid.Int64Range(0, 8).Draw(t, "guard")
		g := New(segments).Guarded(guard)
		for at := int64(-10); at < 110; at++ {
			want := rateAt(segments, at)
			for u := at - guard; u <= at+guard; u++ {
				want = min(want, rateAt(segments, u))
			}
			if got := g.RateAt(at); got != want {
				t.Fatalf("guarded rate at %d: %d, want %d", at, got, want)
			}
		}
	})
}

func TestVolumesAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Int64Range(1, 1e12).Draw(t, "rate")
		micros := rapid.Int64Range(0, 1e13).Draw(t, "micros") // a season
		exact := new(big.Int).Mul(big.NewInt(rate), big.NewInt(micros))
		exact.Div(exact, big.NewInt(8_000_000))
		want := Most
		if exact.IsInt64() {
			want = min(want, exact.Int64())
		}
		if got := Volume(rate, micros); got != want {
			t.Fatalf("%d bit/s for %d us: %d bytes, want %d", rate, micros, got, want)
		}
		if want < Most {
			if back := Duration(rate, want); back > micros {
				t.Fatalf("%d bytes at %d bit/s take %d us, they came in %d", want, rate, back, micros)
			}
		}
	})
}

// Reading a schedule in many short pieces must give what one long piece gives: rounding does not add up.
func TestRoundingDoesNotAddUp(t *testing.T) {
	s := New([]Segment{{0, 10_000_000, 123_457}})
	var sum int64
	for at := int64(0); at < 10_000_000; at += 7 {
		sum += s.Bytes(at, min(at+7, 10_000_000))
	}
	if want := s.Bytes(0, 10_000_000); sum != want {
		t.Errorf("in pieces %d bytes, at once %d", sum, want)
	}
}

func TestFallbackFollowsTheEnd(t *testing.T) {
	s := New([]Segment{{100, 200, 80_000_000}, {300, 400, 40_000_000}})
	f := s.Then(8_000_000)
	for at, want := range map[int64]int64{50: 0, 150: 80_000_000, 250: 0, 350: 40_000_000, 400: 8_000_000, 1e15: 8_000_000} {
		if got := f.RateAt(at); got != want {
			t.Errorf("rate at %d: %d, want %d", at, got, want)
		}
	}
	if s.RateAt(400) != 0 {
		t.Error("Then changed the schedule that it was called on")
	}
	if got := New(nil).Then(8_000_000); !got.Empty() {
		t.Error("without a booking there is no fallback: nothing says when")
	}
	if got := s.Then(40_000_000); got.RateAt(500) != 40_000_000 {
		t.Errorf("a fallback equal to the last rate: %d", got.RateAt(500))
	}
}
