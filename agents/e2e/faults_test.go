// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bandwidthbroker/agents/internal/brokerapi"
	"bandwidthbroker/agents/internal/schedule"
)

// A step of the broker's clock moves the booking: ahead, the transfer is late by so much and goes on as booked; back, it
// is early by so much and waits. Neither way does it ever send faster than booked.
func TestABrokersClockThatSteps(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]time.Duration{"ahead": 2 * time.Second, "back": -2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			a, b := l.agent("a"), l.agent("b")
			eventually(t, "a knows broker time", 5*time.Second, func() bool {
				c := l.broker.Last("a").Clock
				return c != nil && c.ErrorUs < 20_000
			})
			booked := steps(300*time.Millisecond, 20, 40)
			j := l.job(a, b, 15_000_000, booked...) // 3 s
			j.assign()
			j.progressed(2_000_000)
			watched := watch(t, b)
			samples := make(chan []sample)
			go func() { samples <- watched.until(time.Now().Add(5 * time.Second)) }()
			l.broker.StepClock(step)
			stepped := time.Now()
			eventually(t, "a reports the step", 5*time.Second, func() bool {
				c := l.broker.Last("a").Clock
				return c.Steps != nil && *c.Steps == 1 && time.Duration(*c.LastStepUs)*time.Microsecond-step < 50*time.Millisecond
			})
			t.Logf("told after %s", time.Since(stepped).Round(time.Millisecond))
			if !strings.Contains(a.logged(), "the broker's clock was stepped") {
				t.Error("the log does not say so")
			}
			j.arrived(15 * time.Second)
			got := <-samples
			// At one rate throughout, the wire owes nothing to when the booking began.
			evenly := schedule.New([]schedule.Segment{{Begin: 0, End: schedule.Forever, RateBps: booked[0].RateBps}})
			if over, _ := worst(got, evenly, lateness(got)); over > 1 {
				t.Errorf("%.2f %% above the booking over 500 ms", over)
			}
			if pause := longestSilence(got); step < 0 && pause < 1500*time.Millisecond {
				t.Errorf("the clock went back by 2 s, the longest pause was %s", pause)
			} else if step > 0 && pause > time.Second {
				machine.Errorf(t, "a pause of %s although nothing was early", pause)
			}
		})
	}
}

// longestSilence is how long no more arrived at most, before the last byte, than prepares a connection for its first instant: 0.5 %
// of a second at 40 Mbit/s.
func longestSilence(samples []sample) (longest time.Duration) {
	const preparing = 25_000
	since := 0
	for i, s := range samples {
		if s.bytes-samples[since].bytes > preparing {
			longest = max(longest, time.Duration(s.at-samples[since].at)*time.Microsecond)
			since = i
		}
	}
	return longest
}

// Both state folders are full while the broker is away: the transfer goes on to its end at the booked rate, its reports
// wait in memory, go to disk when there is room, survive kill -9 there, and reach the broker once.
func TestAFullStateFolder(t *testing.T) {
	l := newLab(t)
	a, b := l.agent("a"), l.agent("b")
	for _, h := range []*host{a, b} {
		eventually(t, "enrolled", 5*time.Second, func() bool { return l.broker.Last(h.name).Agent != nil })
		h.kill(syscall.SIGTERM)
		onSmallDisk(t, h)
		h.start()
	}
	booked := steps(500*time.Millisecond, 30, 40)
	j := l.job(a, b, 10_000_000, booked...)
	j.assign()
	j.await(10*time.Second, a, "started")
	l.broker.Die()
	ballast := map[*host]string{a: fill(t, a.state), b: fill(t, b.state)}
	eventually(t, "the file is there", 15*time.Second, func() bool {
		_, err := os.Stat(filepath.Join(b.receive, j.destination))
		return err == nil
	})
	if took := time.Since(booked[0].Begin); took > 5*time.Second { // a busy machine costs some of it
		machine.Errorf(t, "it took %s, booked were 2 s", took)
	}
	for h, file := range ballast {
		eventually(t, h.name+" says that reports are not on disk", 5*time.Second, func() bool {
			return strings.Contains(h.logged(), "REPORT NOT ON DISK") && strings.Contains(h.logged(), "kind="+map[string]string{"a": "sent", "b": "finished"}[h.name])
		})
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		eventually(t, h.name+" wrote them after all", 5*time.Second, func() bool { return strings.Contains(h.logged(), "report on disk after all") })
		h.kill(syscall.SIGKILL)
	}
	if err := l.broker.ComeBack(); err != nil {
		t.Fatal(err)
	}
	a.start()
	b.start()
	j.arrived(15 * time.Second)
	once(t, l, j.id)
}

// onSmallDisk moves a host's state to a file system of half a megabyte.
func onSmallDisk(t *testing.T, h *host) {
	t.Helper()
	kept := h.state + ".kept"
	if err := os.Rename(h.state, kept); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(h.state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", h.state, "tmpfs", 0, "size=512k"); err != nil {
		t.Skipf("SKIPPED, a full state folder was not tried (run as root): mounting a tmpfs: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(h.state, unix.MNT_DETACH) })
	if out, err := exec.Command("cp", "-a", kept+"/.", h.state).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// fill leaves no room in a folder, and returns which file to remove again.
func fill(t *testing.T, dir string) string {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for {
		if _, err := f.Write(make([]byte, 4096)); errors.Is(err, unix.ENOSPC) {
			return f.Name()
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// once checks that no report of a transfer was taken twice, and that each of its events came exactly once.
func once(t *testing.T, l *lab, transfer string) {
	t.Helper()
	count := map[brokerapi.AgentReportKind]int{}
	for _, r := range l.broker.Reports() {
		if r.TransferID == transfer {
			count[r.Kind]++
		}
	}
	for _, kind := range []brokerapi.AgentReportKind{"started", "finished", "sent"} {
		if count[kind] != 1 {
			t.Errorf("%d reports %s", count[kind], kind)
		}
	}
}

func TestAnAnswerThatIsLost(t *testing.T) {
	l := newLab(t)
	a, b := l.agent("a"), l.agent("b")
	j := l.job(a, b, 4_000_000, steps(300*time.Millisecond, 2, 20)...)
	l.broker.LoseAnswers(4)
	j.assign()
	j.arrived(20 * time.Second)
	eventually(t, "the spools are empty", 5*time.Second, func() bool {
		left, _ := filepath.Glob(filepath.Join(a.state, "spool", "*.json"))
		more, _ := filepath.Glob(filepath.Join(b.state, "spool", "*.json"))
		return len(left)+len(more) == 0
	})
	if l.broker.Copies() == 0 {
		t.Error("nothing came a second time although answers were lost: the test shows nothing")
	}
	once(t, l, j.id)
}

func TestAReceiverThatIsGoneForGood(t *testing.T) {
	l := newLab(t)
	a, b := l.agent("a", "--peer-timeout", "2s"), l.agent("b")
	j := l.job(a, b, 30_000_000, steps(300*time.Millisecond, 20, 40)...)
	j.assign()
	j.progressed(2_000_000)
	b.kill(syscall.SIGKILL)
	r := j.failed(15*time.Second, a, "peer_unreachable")
	if !strings.Contains(r.Detail, "b at "+b.address+": no progress for 2s") {
		t.Errorf("detail: %s", r.Detail)
	}
}
