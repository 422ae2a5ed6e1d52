// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bandwidthbroker/agents/internal/agent"
	"bandwidthbroker/agents/internal/mechanism"
	"bandwidthbroker/agents/internal/tclinux"
)

func TestStatusInWords(t *testing.T) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var out bytes.Buffer
	err := show(&out, agent.Status{
		Host: "dtn-a", Node: "A", Broker: "http://broker:7410", At: at, Running: true, BrokerSpokenAt: at, DataAddress: "dtn-a:7411",
		Revision: 17, ClockOffsetUs: -120, ClockErrorUs: 300,
		Mechanisms: []mechanism.Report{{Name: "pacing", Available: true}, {Name: "htb", Available: true}, {Name: "fq", Reason: "this kernel has none"}},
		Classes: []agent.ClassStatus{{Transfer: "tr_2", Reading: tclinux.Reading{
			Device: "eth0", ID: tclinux.Handle | 0x1f, RateBps: 1_045_580_112, Bytes: 7_570_000, Packets: 5000, Drops: 1, Backlog: 3028,
		}}},
		Transfers: []agent.TransferStatus{
			{Transfer: "tr_1", Mode: "managed", Role: "send", Peer: "dtn-b", Path: "run7/x.h5", Connected: true, Bytes: 5, VolumeBytes: 10, AppliedRateBps: 4e8},
			{Transfer: "tr_2", Mode: "observed", Role: "send", Peer: "dtn-b", VolumeBytes: 10},
		},
	})
	var lines []string
	for line := range strings.Lines(out.String()) {
		if !strings.HasPrefix(line, "data address") {
			lines = append(lines, strings.TrimRight(line, " \n"))
		}
	}
	want := `dtn-a on node A, running; broker http://broker:7410
mechanisms pacing, htb; not fq: this kernel has none
CLASS        TRANSFER  RATE WITH HEADERS  SENT    PACKETS  DROPPED  WAITING
eth0 bbb:1f  tr_2      1045.6 Mbit/s      7.6 MB  5000     1        3028 B
TRANSFER  MODE      ROLE  PEER   DONE    RATE          STATE      PATH
tr_1      managed   send  dtn-b  50.0 %  400.0 Mbit/s  connected  run7/x.h5
tr_2      observed  send  dtn-b  0.0 %   0.0 Mbit/s    waiting`
	if got := strings.Join(lines, "\n"); err != nil || got != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
}

func TestDoctor(t *testing.T) {
	out, err := execute("doctor", "--device", "no-such-device", "--receive", t.TempDir())
	if err == nil || err.Error() != "exit status 1" || !strings.Contains(out, "todo  no-such-device") || !strings.HasSuffix(out, "to do\n") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := execute("doctor", "--device", "no-such-device", "--json"); err == nil || !strings.Contains(out, `"what": "no-such-device"`) {
		t.Errorf("%v\n%s", err, out)
	}
	state := filepath.Join(t.TempDir(), "state")
	for args, want := range map[string]string{"--rtt 0s": "--rtt 0s: want a time above 0", "--state-dir " + state: "no such state folder"} {
		if _, err := execute(append([]string{"doctor"}, strings.Fields(args)...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, _ := execute("doctor", "--state-dir", state); !strings.Contains(out, "not asked") {
		t.Errorf("not enrolled:\n%s", out)
	}
}
