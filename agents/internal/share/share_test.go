// SPDX-License-Identifier: Apache-2.0

package share

import (
	"testing"

	"pgregory.net/rapid"

	"bandwidthbroker/agents/internal/schedule"
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

// TestTheAccountIsRight follows schedules with a sender that is late, pauses, and bursts at first.
func TestTheAccountIsRight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var segments []schedule.Segment
		var peak int64
		at := int64(1_000_000)
		for range rapid.IntRange(1, 5).Draw(t, "segments") {
			at += rapid.SampledFrom([]int64{0, 0, 300_000, 2_000_000}).Draw(t, "gap")
			length := rapid.Int64Range(500_000, 4_000_000).Draw(t, "length")
			segments = append(segments, schedule.Segment{Begin: at, End: at + length, RateBps: rapid.Int64Range(1_000_000, 10_000_000_000).Draw(t, "rate")})
			at += length
			peak = max(peak, segments[len(segments)-1].RateBps)
		}
		plan := schedule.New(segments)
		account := Open(0, plan, 1_000, 0, 0)
		late := rapid.Int64Range(0, 400_000).Draw(t, "late")
		burst := rapid.Int64Range(0, 20_000).Draw(t, "burst")
		off := rapid.Float64Range(-0.003, 0.003).Draw(t, "error of the kernel")
		const step = 10_000
		var sent int64
		for now := int64(0); now < plan.End(); now += step {
			rate := account.Rate(now, sent)
			booked := plan.RateAt(now)
			if rate > booked+booked/100 {
				t.Fatalf("%d where %d is booked", rate, booked)
			}
			if next := plan.RateAt(now + Narrow); rate > next+next/100 {
				t.Fatalf("%d just before %d", rate, next)
			}
			if now < plan.Begin()+late {
				continue
			}
			sent += burst + int64(float64(schedule.Volume(rate, step))*(1+off))
			burst = 0
			// After a step down some milliseconds of the rate before are still to be given back.
			tolerated := schedule.Volume(peak, 20_000) + 20_000
			if deficit := account.Deficit(now, sent); now > plan.Begin()+late+300_000 && rate > 0 && -deficit > tolerated {
				t.Fatalf("at %d ahead by %d bytes at %d bit/s", now, -deficit, booked)
			}
		}
		if late == 0 && len(segments) == 1 {
			whole := plan.Bytes(0, plan.End())
			if sent < whole-whole/20 || sent > whole+whole/100+schedule.Volume(peak, 2*slack) {
				t.Fatalf("%d bytes of %d", sent, whole)
			}
		}
	})
}

func TestWhoIsAheadGivesItBackWithin200Milliseconds(t *testing.T) {
	const rate = 4_000_000
	plan := schedule.New([]schedule.Segment{{Begin: 0, End: 10_000_000, RateBps: rate}})
	account := Open(0, plan, 0, 0, 0)
	sent := int64(14_480) // ten packets that nobody paced
	for now := int64(5_000); now < 205_000; now += 10_000 {
		sent += schedule.Volume(account.Rate(now, sent), 10_000)
	}
	if booked := schedule.Volume(rate, 205_000); sent > booked+booked/100+schedule.Volume(rate, slack) {
		t.Errorf("%d bytes where %d are booked", sent, booked)
	}
}

func TestHold(t *testing.T) {
	const segment = 1448
	burst := Burst(segment, 10_000, 9)
	if burst != 2*segment {
		t.Errorf("a packet train of %d bytes at 10 ms", burst)
	}
	if got := Burst(segment, 100, 9); got < 64<<10 {
		t.Errorf("only %d bytes on a short path", got)
	}
	if got := Burst(segment, 100, 0); got != 2*segment {
		t.Errorf("%d bytes although it is switched off", got)
	}
	rate := Hold(1_000_000_000, 1, 500_000, burst, 10_000)
	if wait := schedule.Duration(rate, burst); wait < 500_000 || wait > 500_000+2*Late {
		t.Errorf("the timer runs for %d µs in a gap of 500,000", wait)
	}
	if rate := Hold(1_000_000_000, 2, 0, burst, 100); rate != 1_250_000 {
		t.Errorf("leaks %d bit/s", rate)
	}
}
