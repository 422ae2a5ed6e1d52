// SPDX-License-Identifier: Apache-2.0

package pacing

import (
	"testing"

	"pgregory.net/rapid"
)

func TestSplitByNeed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.Int64Range(1_000, 100_000_000_000).Draw(t, "total")
		streams := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Stream {
			return Stream{RateBps: rapid.Int64Range(0, total).Draw(t, "rate"), Hungry: rapid.Bool().Draw(t, "hungry")}
		}), 1, 20).Draw(t, "streams")
		caps := Split(total, streams)
		n := int64(len(streams))
		fair := total / n
		var sum, hungry, used int64
		for i, s := range streams {
			if caps[i] < 0 {
				t.Fatalf("cap %d", caps[i])
			}
			sum += caps[i]
			if s.Hungry {
				hungry++
				used += caps[i]
				if caps[i] < fair-1 {
					t.Fatalf("a hungry one gets %d, less than the fair share %d", caps[i], fair)
				}
			} else {
				used += min(caps[i], s.RateBps)
				if hungry > 0 && caps[i] > fair {
					t.Fatalf("a content one is left %d", caps[i])
				}
			}
		}
		if used > total+n {
			t.Fatalf("%d of %d would be sent", used, total)
		}
		if hungry == n && sum < total-n {
			t.Fatalf("%d of %d are given to the hungry", sum, total)
		}
		if hungry == 0 && sum > total+n {
			t.Fatalf("%d of %d although nobody wants it", sum, total)
		}
	})
}

func TestOneStreamMayHaveAll(t *testing.T) {
	for _, s := range []Stream{{0, true}, {500, true}, {500, false}, {0, false}, {5_000, false}} {
		if got := Split(1_000, []Stream{s}); got[0] != 1_000 {
			t.Errorf("%+v gets %d", s, got[0])
		}
	}
	if got := Split(1_000, nil); len(got) != 0 {
		t.Error(got)
	}
}

// Connections that sent more than may be sent from now on (after a step down) are cut to what is fair, none of them below it.
func TestSplitAfterAStepDown(t *testing.T) {
	caps := Split(1_000, []Stream{{100, false}, {1_500, false}, {2_000, false}})
	if caps[0] != 100 || caps[1] != 450 || caps[2] != 450 {
		t.Errorf("%v", caps)
	}
}
