// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"
	"time"

	"bandwidthbroker/agents/internal/clock"
)

func TestWhenToCallForTheClocksSake(t *testing.T) {
	q := quick{left: quickCalls}
	calls := func(r clock.Reading) (n int) {
		for q.wanted(r) && n < 100 {
			q.called(r)
			n++
		}
		return n
	}
	bad, good := clock.Reading{Error: 30 * time.Millisecond}, clock.Reading{Error: time.Millisecond}
	q.called(bad)
	if n := calls(good); n != 1 {
		t.Errorf("%d calls to tell that the clock is good now, want 1", n)
	}
	if n := calls(bad); n != quickCalls-2 {
		t.Errorf("%d further calls over a path that gives no better, want %d", n, quickCalls-2)
	}
	good.Doubted = true
	if n := calls(good); n != quickCalls {
		t.Errorf("%d calls to settle a doubt", n)
	}
	good.Doubted, good.Steps = false, 1
	if n := calls(good); n != 1 {
		t.Errorf("%d calls to tell of a step, want 1", n)
	}
}
