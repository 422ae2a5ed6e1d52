// SPDX-License-Identifier: Apache-2.0

package pacing

import (
	"testing"

	"bandwidthbroker/agents/internal/schedule"
)

func TestQuietRate(t *testing.T) {
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
	rate := QuietRate(1_000_000_000, 1, 500_000, burst, 10_000)
	if wait := schedule.Duration(rate, burst); wait < 500_000 || wait > 500_000+2*afterGap {
		t.Errorf("the timer runs for %d µs in a gap of 500,000", wait)
	}
	if rate := QuietRate(1_000_000_000, 2, 0, burst, 100); rate != 1_250_000 {
		t.Errorf("leaks %d bit/s", rate)
	}
}
