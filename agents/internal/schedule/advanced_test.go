// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"testing"

	"pgregory.net/rapid"
)

// Advanced is the schedule earlier, up to the advanced end, and the schedule itself from then on; so it never has more than one
// of the two booked at any instant, and nothing before its advanced begin.
func TestAdvancedAgainstItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var segments []Segment
		at := rapid.Int64Range(1_000, 2_000).Draw(t, "begin")
		for range rapid.IntRange(1, 5).Draw(t, "count") {
			end := at + rapid.Int64Range(1, 50).Draw(t, "length")
			segments = append(segments, Segment{at, end, rapid.Int64Range(1, 9).Draw(t, "rate") * 8_000_000})
			at = end + rapid.Int64Range(0, 20).Draw(t, "gap")
		}
		s := New(segments)
		by := rapid.Int64Range(-5, 400).Draw(t, "by")
		got := s.Advanced(by)
		for t0 := s.Begin() - 450; t0 < s.End()+50; t0++ {
			want := s.RateAt(t0)
			if by > 0 && t0 < s.End()-by {
				want = s.RateAt(t0 + by)
			}
			if got.RateAt(t0) != want {
				t.Fatalf("%v advanced by %d: %d at %d, want %d", segments, by, got.RateAt(t0), t0, want)
			}
		}
		if got.End() != s.End() {
			t.Fatalf("ends at %d, the booking at %d", got.End(), s.End())
		}
		if total := s.Bytes(0, s.End()); got.Bytes(0, got.End()) < total {
			t.Fatalf("carries %d of %d bytes", got.Bytes(0, got.End()), total)
		}
	})
}
