// SPDX-License-Identifier: Apache-2.0

package pacing

import (
	"testing"

	"pgregory.net/rapid"

	"bandwidthbroker/agents/internal/schedule"
)

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
		account := NewAccount(0, plan, 1_000, 0, 0, OuterTolerances)
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
			if next := plan.RateAt(now + OuterTolerances.Narrow); rate > next+next/100 {
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
	account := NewAccount(0, plan, 0, 0, 0, OuterTolerances)
	sent := int64(14_480) // ten packets that nobody paced
	for now := int64(5_000); now < 205_000; now += 10_000 {
		sent += schedule.Volume(account.Rate(now, sent), 10_000)
	}
	if booked := schedule.Volume(rate, 205_000); sent > booked+booked/100+schedule.Volume(rate, slack) {
		t.Errorf("%d bytes where %d are booked", sent, booked)
	}
}
