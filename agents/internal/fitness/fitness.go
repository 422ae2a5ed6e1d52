// SPDX-License-Identifier: Apache-2.0

// Package fitness tells what an agent did too late from what this machine did too late. Only tests import it: they run
// wherever there are two cores, and a hypervisor that takes both away for a second makes every sender late.
package fitness

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	nap = 5 * time.Millisecond
	// A process that sleeps for 5 ms and wakes up 20 ms late had no processor; so had every other, for long enough to be late.
	maxLate = 20 * time.Millisecond
	// What the hypervisor takes comes in pieces of many milliseconds.
	maxStolen = 0.01
	// Window is how far back a machine's faults excuse: longer than the tests take that measure time.
	Window = 30 * time.Second
)

// Watch is what a process that only sleeps sees of the machine.
type Watch struct {
	mu     sync.Mutex
	naps   []oversleep
	ticks  []ticks
	ended  chan struct{}
	ending sync.Once
}

// oversleep is a nap that ended late.
type oversleep struct {
	at time.Time
	by time.Duration
}

// ticks are what the processors have had so far.
type ticks struct {
	at            time.Time
	total, stolen int64
}

// Begin watches from now on, until End.
func Begin() *Watch {
	w := &Watch{ended: make(chan struct{}), ticks: []ticks{count()}}
	go w.watch()
	return w
}

// End stops watching.
func (w *Watch) End() { w.ending.Do(func() { close(w.ended) }) }

func (w *Watch) watch() {
	last, counted := time.Now(), time.Now()
	for {
		select {
		case <-w.ended:
			return
		case <-time.After(nap):
		}
		now := time.Now()
		w.mu.Lock()
		if late := now.Sub(last) - nap; late > maxLate {
			w.naps = append(w.naps, oversleep{now, late})
		}
		if now.Sub(counted) > time.Second {
			counted = now
			w.ticks = append(w.ticks, count())
		}
		w.forget(now.Add(-2 * Window))
		w.mu.Unlock()
		last = now
	}
}

func (w *Watch) forget(before time.Time) {
	for len(w.naps) > 0 && w.naps[0].at.Before(before) {
		w.naps = w.naps[1:]
	}
	for len(w.ticks) > 1 && w.ticks[0].at.Before(before) {
		w.ticks = w.ticks[1:]
	}
}

// Starved says what kept processes waiting within the last Window; "": nothing did.
func (w *Watch) Starved() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	since, most := time.Now().Add(-Window), time.Duration(0)
	for _, n := range w.naps {
		if n.at.After(since) {
			most = max(most, n.by)
		}
	}
	if most > 0 {
		return fmt.Sprintf("a process that only sleeps woke up %d ms late", most.Milliseconds())
	}
	from, now := w.ticks[0], count()
	for _, t := range w.ticks {
		if t.at.Before(since) {
			from = t
		}
	}
	if share := float64(now.stolen-from.stolen) / float64(max(now.total-from.total, 1)); share > maxStolen {
		return fmt.Sprintf("the hypervisor took %.1f %% of the processors' time", 100*share)
	}
	return ""
}

// Errorf fails a test for something that was late or slow. Where the machine was, the test is skipped, LOUDLY: use it for
// nothing that a slow machine cannot do.
func (w *Watch) Errorf(t testing.TB, format string, args ...any) {
	t.Helper()
	w.excuse(t, format, args...)
	t.Errorf(format, args...)
}

// Fatalf is Errorf for what the rest of the test builds on.
func (w *Watch) Fatalf(t testing.TB, format string, args ...any) {
	t.Helper()
	w.excuse(t, format, args...)
	t.Fatalf(format, args...)
}

func (w *Watch) excuse(t testing.TB, format string, args ...any) {
	t.Helper()
	if starved := w.Starved(); starved != "" && !t.Failed() {
		t.Skipf("NOT SHOWN, for %s: %s", starved, fmt.Sprintf(format, args...))
	}
}

// count reads the first line of /proc/stat (proc_pid_stat(5): the eighth figure is steal). No time is stolen where it is not told.
func count() ticks {
	now := ticks{at: time.Now()}
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return now
	}
	line, _, _ := strings.Cut(string(text), "\n")
	for i, field := range strings.Fields(line) {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil || i > 8 {
			continue
		}
		now.total += n
		if i == 8 {
			now.stolen = n
		}
	}
	return now
}
