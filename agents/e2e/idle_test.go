// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// An idle agent is not noticed. With BWB_MEASURE=1, over a minute; else long enough to catch a busy loop.
func TestIdle(t *testing.T) {
	l := newQuietLab(t)
	a := l.agent("a")
	eventually(t, "a has told its clock", 5*time.Second, func() bool { return l.broker.Last("a").Agent != nil })
	span := 3 * time.Second
	if os.Getenv("BWB_MEASURE") != "" {
		span = time.Minute
	}
	time.Sleep(time.Second) // it asks for the time a few times after the start
	before := cpu(t, a)
	time.Sleep(span)
	share := 100 * (cpu(t, a) - before).Seconds() / span.Seconds()
	t.Logf("%.2f %% of a core over %s; %s", share, span, memory(a))
	if share > 0.5+100*0.01/span.Seconds() { // the kernel counts in ticks of 10 ms
		machine.Errorf(t, "%.2f %% of a core while idle", share)
	}
}

// cpu is the user and system time of a process.
func cpu(t *testing.T, h *host) time.Duration {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", h.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+2:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}
