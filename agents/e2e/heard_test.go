// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"bandwidthbroker/agents/internal/brokerapi"
)

// What an agent tells the broker of itself, so that silence is never mistaken for an end.

func TestAStoppedAgentSaysGoodbye(t *testing.T) {
	l := newLab(t)
	a := l.agent("a")
	eventually(t, "it is heard", 5*time.Second, func() bool {
		last := l.broker.Last("a")
		return last.Complete != nil && *last.Complete
	})
	if last := l.broker.Last("a"); *last.Goodbye {
		t.Error("goodbye while it runs")
	}
	a.kill(syscall.SIGTERM)
	if last := l.broker.Last("a"); !*last.Goodbye {
		t.Error("it left without a word")
	}
	a.start()
	eventually(t, "it is back", 5*time.Second, func() bool { return !*l.broker.Last("a").Goodbye })
}

func TestAnAssignmentThatMakesNoSenseIsSaidToFail(t *testing.T) {
	l := newLab(t)
	a, b := l.agent("a"), l.agent("b")
	j := l.job(a, b, 1000, steps(time.Hour, 1, 80)...)
	wrong := j.sender()
	wrong.Key = "no key"
	l.broker.Assign("a", wrong)
	failed := j.await(5*time.Second, a, brokerapi.Failed)
	if failed.Code != "internal" || !strings.Contains(failed.Detail, "makes no sense") {
		t.Errorf("%s: %s", failed.Code, failed.Detail)
	}
	l.broker.Assign("a", wrong, wrong)
	eventually(t, "it has seen the second document", 5*time.Second, func() bool { return strings.Count(a.logged(), "makes no sense") == 2 })
	said := 0
	for _, r := range l.broker.Reports() {
		if r.Kind == brokerapi.Failed {
			said++
		}
	}
	if said != 1 {
		t.Errorf("said %d times", said)
	}
}
