// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestPercentilesAreRightToAnEighth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.OneOf(rapid.Int64Range(-5, 20), rapid.Int64Range(0, 1<<62)), 1, 50).Draw(t, "all")
		var l Lateness
		for i, ns := range all {
			l.Add(ns)
			all[i] = max(ns, 0)
		}
		slices.Sort(all)
		perMille := rapid.Int64Range(1, 1000).Draw(t, "per mille")
		exact := all[(int64(len(all))*perMille+999)/1000-1]
		if got := l.Percentile(perMille); got < exact || got > exact+exact/8 {
			t.Errorf("%d per mille of %v: %d, want %d", perMille, all, got, exact)
		}
		if l.Max() != all[len(all)-1] || l.Count() != int64(len(all)) {
			t.Errorf("max %d, count %d", l.Max(), l.Count())
		}
	})
}

func TestNothingWasLate(t *testing.T) {
	var l Lateness
	if l.Mean() != 0 || l.Percentile(990) != 0 || l.Max() != 0 {
		t.Error("an empty spread is not 0")
	}
}
