// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// Unpaced speed and memory, on request: BWB_MEASURE=1. The figures depend on the machine, so they are no test of CI.
func TestUnpacedSpeed(t *testing.T) {
	if os.Getenv("BWB_MEASURE") == "" {
		t.Skip("set BWB_MEASURE=1 to measure")
	}
	for _, flags := range [][]string{nil, {"--tls"}} {
		t.Run(fmt.Sprint(flags), func(t *testing.T) {
			l := newQuietLab(t)
			a, b := l.agent("a", flags...), l.agent("b", flags...)
			j := l.job(a, b, 2_000_000_000, steps(2*time.Second, 60, 100_000)...)
			if flags != nil {
				eventually(t, "b has told its fingerprint", 5*time.Second, func() bool { return l.broker.Enrolled("b").TLSFingerprint != nil })
				j.finger = l.broker.Enrolled("b").TLSFingerprint
			}
			j.assign()
			j.await(10*time.Second, a, "started")
			begin := time.Now()
			j.await(12*time.Second, a, "sent")
			took := time.Since(begin).Seconds()
			t.Logf("%.2f Gbit/s, disk and two SHA-256 included", float64(j.volume)*8/took/1e9)
			for _, h := range []*host{a, b} {
				t.Logf("%s: peak RSS %s", h.name, memory(h))
			}
		})
	}
}

func memory(h *host) string {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.cmd.Process.Pid))
	var found []string
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "VmHWM") || strings.HasPrefix(line, "VmRSS") || strings.HasPrefix(line, "RssAnon") {
			found = append(found, strings.Join(strings.Fields(line), " "))
		}
	}
	return strings.Join(found, ", ")
}
