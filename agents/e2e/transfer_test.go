// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bandwidthbroker/agents/internal/agent"
	"bandwidthbroker/agents/internal/fakebroker"
)

func TestAFileArrives(t *testing.T) {
	l := newLab(t)
	trace := filepath.Join(t.TempDir(), "trace.csv")
	a, b := l.agent("a", "--trace", trace), l.agent("b")
	j := l.job(a, b, 20_000_000, steps(500*time.Millisecond, 2, 100)...)
	j.assign()
	j.arrived(10 * time.Second)

	kinds := map[string][]string{}
	for _, r := range l.broker.Reports() {
		if r.Kind != "progress" {
			kinds[r.Host] = append(kinds[r.Host], string(r.Kind))
		}
	}
	if got := strings.Join(kinds["a"], " ") + "; " + strings.Join(kinds["b"], " "); got != "started sent; finished" {
		t.Errorf("reports: %s", got)
	}
	if l.broker.Copies() != 0 {
		t.Errorf("%d reports were sent twice although the broker answered", l.broker.Copies())
	}
	a.kill(syscall.SIGTERM)
	checkTrace(t, trace, j)
}

// checkTrace reads time_us,transfer,bytes_sent_acked,applied_rate: both counts grow, at the booked rate.
func checkTrace(t *testing.T, file string, j *job) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	if lines[0] != "time_us,transfer,bytes_sent_acked,applied_rate" || len(lines) < 15 {
		t.Fatalf("%d lines, the first is %q", len(lines), lines[0])
	}
	var lastAt, lastBytes int64
	paced := 0
	for _, line := range lines[1:] {
		var at, bytes, rate int64
		if _, err := fmt.Sscanf(strings.ReplaceAll(line, ",", " "), "%d "+j.id+" %d %d", &at, &bytes, &rate); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if at <= lastAt || bytes < lastBytes || bytes > j.volume || rate > 101_000_000 {
			t.Errorf("%q after %d, %d bytes", line, lastAt, lastBytes)
		}
		if rate >= 100_000_000 {
			paced++
		}
		lastAt, lastBytes = at, bytes
	}
	if paced < 10 || lastBytes < j.volume/2 {
		t.Errorf("%d samples at the booked rate, %d bytes at the end", paced, lastBytes)
	}
}

func TestTheSameDocumentTwiceDoesNothing(t *testing.T) {
	l := newLab(t)
	a, b := l.agent("a"), l.agent("b")
	j := l.job(a, b, 5_000_000, steps(300*time.Millisecond, 3, 20)...)
	j.assign()
	j.await(5*time.Second, a, "started")
	before := operations(t, a)
	if before != 1 {
		t.Errorf("%d operations for one transfer", before)
	}
	calls := l.broker.Calls("GET /v1/agents/a/assignments")
	for range 3 { // each under a new revision, so that the agent fetches it
		j.assign()
		eventually(t, "fetched", 3*time.Second, func() bool {
			n := l.broker.Calls("GET /v1/agents/a/assignments")
			defer func() { calls = n }()
			return n > calls
		})
	}
	j.arrived(10 * time.Second)
	if after := operations(t, a); after != before {
		t.Errorf("%d operations for documents that said nothing new", after-before)
	}
	if n := strings.Count(a.logged(), "msg=connected"); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// operations asks the agent's status for the number of reconcile operations since its start.
func operations(t *testing.T, h *host) int {
	t.Helper()
	return status(t, h).Operations
}

func status(t *testing.T, h *host) (s agent.Status) {
	t.Helper()
	raw, err := exec.Command(agentBinary, "status", "--state-dir", h.state, "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestANewPlanChangesThePaceNotTheConnection(t *testing.T) {
	l := newLab(t)
	a, b := l.agent("a"), l.agent("b")
	j := l.job(a, b, 12_000_000, steps(300*time.Millisecond, 30, 4)...)
	j.assign()
	j.await(5*time.Second, a, "started")
	j.progressed(200_000)
	j.segments, j.revision = steps(0, 5, 80), 2
	j.assign()
	j.arrived(6 * time.Second) // at 4 Mbit/s it would take 24 s
	if n := strings.Count(a.logged(), "msg=connected"); n != 1 {
		t.Errorf("%d connections", n)
	}
}

func TestPauseAndResume(t *testing.T) {
	l := newLab(t)
	a, b := l.agent("a"), l.agent("b")
	j := l.job(a, b, 10_000_000, steps(300*time.Millisecond, 20, 40)...)
	j.assign()
	j.progressed(1_000_000)
	j.paused, j.segments, j.revision = true, nil, 2
	j.assign()
	eventually(t, "the sender is told nothing moves", 3*time.Second, func() bool {
		for _, r := range l.broker.Reports() {
			if r.Host == "a" && r.Kind == "progress" && r.Bytes > 0 && r.AppliedRateBps == 0 {
				return true
			}
		}
		return false
	})
	held := watch(t, b).until(time.Now().Add(500 * time.Millisecond))
	if moved := held[len(held)-1].bytes - held[0].bytes; moved != 0 {
		t.Errorf("%d bytes moved during the pause", moved)
	}
	j.paused, j.segments, j.revision = false, steps(0, 5, 80), 3
	j.assign()
	j.arrived(10 * time.Second)
	if n := strings.Count(a.logged(), "msg=connected"); n != 1 {
		t.Errorf("%d connections", n)
	}
}

func TestCancelRemovesWhatWasWritten(t *testing.T) {
	l := newLab(t)
	a, b := l.agent("a"), l.agent("b")
	j := l.job(a, b, 50_000_000, steps(300*time.Millisecond, 20, 20)...)
	j.assign()
	j.progressed(500_000)
	partial := filepath.Join(b.receive, "incoming", ".bwb-"+j.id+".part")
	if _, err := os.Stat(partial); err != nil {
		t.Fatal(err)
	}
	l.broker.Assign("a")
	l.broker.Assign("b")
	eventually(t, "the partial file is gone", 5*time.Second, func() bool {
		_, err := os.Stat(partial)
		return os.IsNotExist(err)
	})
	for _, h := range []*host{a, b} {
		eventually(t, "nothing is remembered", 3*time.Second, func() bool {
			left, _ := filepath.Glob(filepath.Join(h.state, "*", "*"+j.id+"*"))
			return len(left) == 0
		})
	}
}

func TestALateStartIsAShortfallOnce(t *testing.T) {
	l := newLab(t)
	a, b := l.agent("a"), l.agent("b")
	j := l.job(a, b, 10_000_000, steps(-2*time.Second, 4, 20.2)...) // half of the booking is over
	l.broker.OnReport(func(r fakebroker.Received) {
		if r.Kind == "shortfall" {
			j.segments, j.revision = steps(0, 10, 40), 2
			j.assign()
		}
	})
	j.assign()
	j.arrived(10 * time.Second)
	n := 0
	for _, r := range l.broker.Reports() {
		if r.Kind == "shortfall" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d shortfall reports", n)
	}
}

// A transfer that is short by a little tells it before the booked end, so that the broker can book the rest behind it: until then, it would crawl.
func TestALittleThatIsMissingIsToldBeforeTheEnd(t *testing.T) {
	l := newLab(t)
	a, b := l.agent("a"), l.agent("b")
	booked := steps(300*time.Millisecond, 1.1, 80)
	j := l.job(a, b, 11_090_000, booked...) // 90 kB more than booked, of which catching up carries a half
	j.assign()
	switch told := j.await(5*time.Second, a, "shortfall").At.Sub(booked[0].End); {
	case told > -100*time.Millisecond:
		machine.Errorf(t, "told %s after the booked end", told)
	case told < -time.Second: // who begins late cannot catch up, and says so at once
		machine.Errorf(t, "told %s before the booked end", -told)
	}
}

func TestTheRestGoesAtTheFallbackRate(t *testing.T) {
	l := newQuietLab(t)
	a, b := l.agent("a", "--fallback-rate", "8Mbit"), l.agent("b")
	booked := steps(300*time.Millisecond, 1, 8)
	j := l.job(a, b, 3_000_000, booked...)
	j.assign()
	samples := watch(t, b).until(booked[0].End.Add(1500 * time.Millisecond))
	got := goodput(samples, booked[0].End.UnixMicro()+50_000, booked[0].End.UnixMicro()+1_400_000)
	if got < 7.7e6 || got > 8.1e6 {
		machine.Errorf(t, "%.2f Mbit/s after the end of the booking, the fallback is 8", got/1e6)
	}
	j.arrived(10 * time.Second)
}

func TestTLSWithPinnedCertificate(t *testing.T) {
	l := newLab(t)
	a, b := l.agent("a"), l.agent("b", "--tls")
	j := l.job(a, b, 10_000_000, steps(500*time.Millisecond, 2, 50)...)
	eventually(t, "b has enrolled", 5*time.Second, func() bool { return l.broker.Enrolled("b").TLSFingerprint != nil })
	wrong := strings.Repeat("0", 64)
	j.finger = &wrong
	j.assign()
	eventually(t, "the wrong fingerprint is refused", 5*time.Second, func() bool { return strings.Contains(a.logged(), "certificate has fingerprint") })
	j.finger = l.broker.Enrolled("b").TLSFingerprint
	j.segments, j.revision = steps(0, 5, 50), 2
	j.assign()
	j.arrived(10 * time.Second)
}
