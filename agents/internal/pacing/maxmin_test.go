// SPDX-License-Identifier: Apache-2.0

package pacing

import (
	"testing"

	"pgregory.net/rapid"
)

// MaxMin against its definition: the sum is the total, nobody who is given less than it wants has less than another one
// that is given more, and more than wanted (but for a rounded bit) is given only when all have what they want.
func TestMaxMin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.Int64Range(0, 400_000_000_000).Draw(t, "total")
		wants := rapid.SliceOfN(rapid.OneOf(rapid.Just(Unbounded), rapid.Int64Range(0, total+1)), 1, 20).Draw(t, "wants")
		given := MaxMin(total, wants)
		var sum, most int64
		satisfied := true
		for i, g := range given {
			sum += g
			most = max(most, g)
			satisfied = satisfied && g >= wants[i]
		}
		if sum != total {
			t.Fatalf("the sum of %v is %d, not %d", given, sum, total)
		}
		for i, g := range given {
			if g < 0 || (g < wants[i] && g < most-1) || (g > wants[i]+1 && !satisfied) {
				t.Fatalf("%d is given %d of %d: %v for %v", i, g, wants[i], given, wants)
			}
		}
	})
	if got := MaxMin(1_000, nil); len(got) != 0 {
		t.Error(got)
	}
}
