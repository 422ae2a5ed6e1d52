// SPDX-License-Identifier: Apache-2.0

package mechanism

import (
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"bandwidthbroker/agents/internal/pacing"
	"bandwidthbroker/agents/internal/schedule"
)

func sum(shares []*share) (total int64) {
	for _, s := range shares {
		total += s.rateBps
	}
	return total
}

// Whatever streams did, their shares add up to the rate, and none is negative.
func TestSharesAddUpToTheRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Int64Range(0, 400_000_000_000).Draw(t, "rate")
		var shares []*share
		for range rapid.IntRange(1, 12).Draw(t, "streams") {
			shares = append(shares, &share{minBps: rapid.Int64Range(0, 2_000_000).Draw(t, "least")})
		}
		for range rapid.IntRange(1, 30).Draw(t, "rounds") {
			divide(rate, shares)
			if got := sum(shares); got != rate {
				t.Fatalf("shares add up to %d, the rate is %d", got, rate)
			}
			for i, s := range shares {
				if s.rateBps < 0 {
					t.Fatalf("stream %d has %d bit/s", i, s.rateBps)
				}
				micros := rapid.Int64Range(1, 200_000).Draw(t, "micros")
				s.saw(schedule.Volume(s.rateBps, micros)*rapid.Int64Range(0, 120).Draw(t, "percent")/100, micros)
			}
		}
	})
}

// round lets every stream send what it can (bit/s) for an interval between two looks.
func round(rate int64, shares []*share, can ...int64) {
	divide(rate, shares)
	micros := pacing.BalanceEvery
	for i, s := range shares {
		s.saw(schedule.Volume(min(can[i], s.rateBps), micros), micros)
	}
	divide(rate, shares)
}

func TestAStalledStreamsShareGoesToTheOthers(t *testing.T) {
	const rate = 100_000_000
	shares := []*share{{}, {}, {}, {}}
	for range 5 {
		round(rate, shares, rate, rate, rate, rate)
	}
	for i, s := range shares {
		if s.rateBps != rate/4 {
			t.Fatalf("stream %d of four equal ones has %d bit/s", i, s.rateBps)
		}
	}
	for range 2 { // looks within 100 ms
		round(rate, shares, 0, rate, rate, rate)
	}
	// What it sent lately counts half at each look.
	if got := shares[1].rateBps; got < rate*30/100 {
		t.Errorf("after 80 ms of a stall the others have %d bit/s each", got)
	}
	for range 4 {
		round(rate, shares, 0, rate, rate, rate)
	}
	if got := shares[0].rateBps; got != rate/4/smallest {
		t.Errorf("a stalled stream keeps %d bit/s, want a twentieth of its equal share", got)
	}
	round(rate, shares, rate, rate, rate, rate)
	if got := shares[0].rateBps; got != rate/4 {
		t.Errorf("one look after its return it has %d bit/s", got)
	}
}

// A stream that cannot use its share keeps what it uses and a quarter more; the rest is used by the others.
func TestSharesConvergeToMaxMinFairness(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const rate = 1_000_000_000
		n := rapid.IntRange(2, 8).Draw(t, "streams")
		var shares []*share
		var can []int64
		for range n {
			shares = append(shares, &share{})
			can = append(can, rapid.SampledFrom([]int64{0, 10_000_000, 50_000_000, 2 * rate, 2 * rate}).Draw(t, "can"))
		}
		for range 40 {
			round(rate, shares, can...)
		}
		var used, wanted int64
		for i, s := range shares {
			used += min(s.rateBps, can[i])
			wanted += can[i]
		}
		// 5/4 of what is used, or a twentieth of an equal share, is kept for a stream that cannot use it.
		if least := min(wanted, rate) * 75 / 100; used < least {
			t.Fatalf("%d of %d bit/s are used; streams can %v", used, rate, can)
		}
	})
}

// On a short path the kernel sends 64 kB at once and is then silent by the rate: that is no stall.
func TestABurstyStreamIsNotStalled(t *testing.T) {
	const rate = 8_000_000 // 64 KiB take 65 ms
	slow, steady := &share{}, &share{}
	shares := []*share{slow, steady}
	divide(rate, shares)
	micros := pacing.BalanceEvery
	var saved int64
	for i := range 200 {
		saved += schedule.Volume(slow.rateBps, micros)
		var sent int64
		if saved >= pacing.MaxBurst {
			sent, saved = pacing.MaxBurst, saved-pacing.MaxBurst
		}
		slow.saw(sent, micros)
		steady.saw(schedule.Volume(steady.rateBps, micros), micros)
		if divide(rate, shares); slow.rateBps != rate/2 {
			t.Fatalf("look %d: it was taken for stalled and has %d bit/s", i, slow.rateBps)
		}
	}
}

// What has left at the smallest rate holds a raised one up for half a second at most, also on paths of about a millisecond.
func TestTheSmallestRateBlocksForHalfASecondAtMost(t *testing.T) {
	for _, rtt := range []uint32{50, 600, 1_000, 1_500, 2_500, 20_000, 1<<32 - 1} {
		info := &unix.TCPInfo{Snd_mss: 1448, Min_rtt: rtt}
		burst := pacing.Burst(1448, int64(rtt), 9)
		if took := schedule.Duration(minBps(info, 9), burst); took > 500_000 {
			t.Errorf("round trip %d µs: %d bytes block for %d µs", rtt, burst, took)
		}
	}
}
