// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func TestKilledSenderResumes(t *testing.T) {
	l := newLab(t)
	a, b := l.agent("a"), l.agent("b")
	j := l.job(a, b, 60_000_000, steps(300*time.Millisecond, 20, 80)...)
	j.assign()
	j.progressed(15_000_000)
	a.kill(syscall.SIGKILL)
	a.start()
	j.arrived(15 * time.Second)
	resumed(t, a, 1)
	sequencesGrow(t, l)
}

func TestKilledReceiverResumes(t *testing.T) {
	l := newLab(t)
	a, b := l.agent("a"), l.agent("b")
	j := l.job(a, b, 60_000_000, steps(300*time.Millisecond, 20, 80)...)
	j.assign()
	j.progressed(20_000_000) // two syncs, so something is safe
	b.kill(syscall.SIGKILL)
	b.start()
	j.arrived(15 * time.Second)
	resumed(t, a, 1)
	sequencesGrow(t, l)
}

func TestStoppedAgentsKeepEverything(t *testing.T) {
	l := newLab(t)
	a, b := l.agent("a"), l.agent("b")
	j := l.job(a, b, 30_000_000, steps(300*time.Millisecond, 20, 80)...)
	j.assign()
	j.progressed(8_000_000)
	b.kill(syscall.SIGTERM)
	a.kill(syscall.SIGINT)
	for _, h := range []*host{a, b} {
		if !strings.Contains(h.logged(), "msg=stopping") {
			t.Errorf("%s did not stop cleanly", h.name)
		}
	}
	a.start()
	b.start()
	j.arrived(15 * time.Second)
	resumed(t, a, 5_000_000)
}

// resumed checks that the last connection went on from at least so many bytes.
func resumed(t *testing.T, sender *host, least int64) {
	t.Helper()
	log := sender.logged()
	at := strings.LastIndex(log, "resume_at=")
	if at < 0 {
		t.Fatal("never connected")
	}
	var offset int64
	for _, c := range log[at+len("resume_at="):] {
		if c < '0' || c > '9' {
			break
		}
		offset = 10*offset + int64(c-'0')
	}
	t.Logf("resumed at %d bytes", offset)
	if offset < least {
		t.Errorf("resumed at %d bytes", offset)
	}
}

func sequencesGrow(t *testing.T, l *lab) {
	t.Helper()
	last := map[string]int64{}
	for _, r := range l.broker.Reports() {
		if r.Sequence < 1 || r.Sequence <= last[r.Host] {
			t.Errorf("%s reported sequence %d after %d", r.Host, r.Sequence, last[r.Host])
		}
		last[r.Host] = r.Sequence
	}
}

func TestWithoutTheBroker(t *testing.T) {
	l := newLab(t)
	a, b := l.agent("a"), l.agent("b")
	j := l.job(a, b, 30_000_000, steps(300*time.Millisecond, 4, 80)...)
	j.assign()
	j.progressed(5_000_000)
	l.broker.Die()
	a.kill(syscall.SIGKILL) // and the sender too, so that it must live from what it saved
	a.start()
	eventually(t, "the file is complete without the broker", 15*time.Second, func() bool {
		_, err := os.Stat(b.receive + "/incoming/x.h5")
		return err == nil
	})
	eventually(t, "the sender knows", 3*time.Second, func() bool { return strings.Contains(a.logged(), "msg=sent") })
	if err := l.broker.ComeBack(); err != nil {
		t.Fatal(err)
	}
	j.arrived(40 * time.Second)
	sequencesGrow(t, l)
	if n := l.broker.Copies(); n != 0 {
		t.Errorf("%d reports came twice", n)
	}
}

func TestABusyBrokerIsLeftAlone(t *testing.T) {
	l := newLab(t)
	a, b := l.agent("a"), l.agent("b")
	j := l.job(a, b, 4_000_000, steps(300*time.Millisecond, 2, 20)...)
	j.assign()
	j.await(5*time.Second, a, "started")
	var refused atomic.Int64
	until := time.Now().Add(2500 * time.Millisecond)
	l.broker.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/v1/agents/a/reports") || time.Now().After(until) {
			return false
		}
		refused.Add(1)
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	j.arrived(10 * time.Second)
	if n := refused.Load(); n < 1 || n > 2 {
		t.Errorf("%d calls within 2.5 s although Retry-After said 2 s", n)
	}
}

func TestARevokedTokenIsSaidLoudly(t *testing.T) {
	l := newLab(t)
	a := l.agent("a")
	eventually(t, "a runs", 5*time.Second, func() bool { return l.broker.Last("a").Agent != nil })
	l.broker.Invite("a") // a new host of the same name: the old token is void
	eventually(t, "a complains", 20*time.Second, func() bool { return strings.Contains(a.logged(), "THE BROKER REFUSES THIS AGENT'S TOKEN") })
	for _, secret := range []string{"bwb_", "bwe_"} {
		if strings.Contains(a.logged(), secret) {
			t.Errorf("the log holds a token")
		}
	}
}

func TestOneAgentPerStateFolder(t *testing.T) {
	l := newLab(t)
	a := l.agent("a")
	eventually(t, "a runs", 5*time.Second, func() bool { return strings.Contains(a.logged(), "agent runs") })
	twin := &host{lab: l, name: "twin", state: a.state, serve: a.serve, receive: a.receive, address: freeAddress(t)}
	twin.start()
	if err := twin.cmd.Wait(); err == nil {
		t.Error("a second agent ran on the same state folder")
	}
	twin.cmd = nil
	if !strings.Contains(twin.logged(), "another bwb-agent uses this state folder") {
		t.Errorf("it said: %s", twin.logged())
	}
	info, err := os.Stat(a.state)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("state folder has mode %v", info.Mode())
	}
	if info, err = os.Stat(a.state + "/credentials.json"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("credentials have mode %v", info.Mode())
	}
	if args := a.cmd.Args; slices.ContainsFunc(args, func(s string) bool { return strings.Contains(s, "bwe_") }) {
		t.Error("the token is on the command line")
	}
}
