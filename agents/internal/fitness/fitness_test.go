// SPDX-License-Identifier: Apache-2.0

package fitness

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestAMachineThatHadTimeExcusesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := Begin()
		time.Sleep(10 * Window)
		w.End()
		synctest.Wait()
		if len(w.naps) != 0 || len(w.ticks) > int(2*Window/time.Second)+1 {
			t.Errorf("%d naps were late, %d counts are kept", len(w.naps), len(w.ticks))
		}
	})
}

func TestWhatWasLateIsSaidForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &Watch{ticks: []ticks{count()}, ended: make(chan struct{})}
		w.naps = []oversleep{{time.Now(), 25 * time.Millisecond}, {time.Now(), 80 * time.Millisecond}}
		time.Sleep(Window - time.Second)
		if starved := w.Starved(); starved != "a process that only sleeps woke up 80 ms late" {
			t.Error(starved)
		}
		time.Sleep(2 * time.Second)
		w.ticks = []ticks{count()}
		if starved := w.Starved(); starved != "" {
			t.Error(starved)
		}
	})
}

func TestWhatTheHypervisorTook(t *testing.T) {
	now := count()
	if now.total <= 0 {
		t.Skip("NOT SHOWN without /proc/stat")
	}
	w := &Watch{ticks: []ticks{{now.at, now.total - 1_000, now.stolen - 20}}, ended: make(chan struct{})}
	if starved := w.Starved(); starved == "" {
		t.Error("a fiftieth of the time excuses nothing")
	}
}
