// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bandwidthbroker/agents/internal/clock"
	"bandwidthbroker/agents/internal/tclinux"
)

var update = flag.Bool("update", false, "write the golden files anew")

// machine is a host that is made up: files, and answers.
func machine(t *testing.T, files map[string]string) Host {
	t.Helper()
	root := t.TempDir()
	for path, content := range files {
		full := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Host{
		Root: root, RTT: 100 * time.Millisecond,
		Clock:   func() clock.Host { return clock.Host{ErrorMicros: 300, Synchronised: true} },
		Roots:   func() ([]tclinux.Qdisc, error) { return nil, nil },
		Probe:   func(string) error { return nil },
		Offload: func(string) (bool, bool, error) { return true, true, nil },
		Free:    func(string) (uint64, uint64, error) { return 600e9, 1000e9, nil },
		Broker:  func() error { return nil },
	}
}

// tuned is a DTN as it should be.
func tuned(t *testing.T) Host {
	h := machine(t, map[string]string{
		"proc/sys/kernel/osrelease":                          "6.1.0-18-amd64",
		"proc/sys/kernel/seccomp/actions_avail":              "kill_process kill_thread trap errno user_notif trace log allow",
		"proc/sys/kernel/yama/ptrace_scope":                  "1",
		"proc/sys/net/core/rmem_max":                         "536870912",
		"proc/sys/net/core/wmem_max":                         "536870912",
		"proc/sys/net/ipv4/tcp_rmem":                         "4096\t131072\t536870912",
		"proc/sys/net/ipv4/tcp_wmem":                         "4096\t16384\t536870912",
		"proc/sys/net/ipv4/tcp_congestion_control":           "cubic",
		"proc/sys/net/ipv4/tcp_available_congestion_control": "reno cubic",
		"proc/sys/net/ipv4/tcp_allowed_congestion_control":   "reno cubic",
		"proc/sys/net/ipv4/tcp_slow_start_after_idle":        "0",
		"proc/sys/net/ipv4/tcp_no_metrics_save":              "1",
		"proc/sys/net/ipv4/tcp_tso_rtt_log":                  "0",
		"proc/sys/net/ipv4/tcp_timestamps":                   "1",
		"proc/sys/net/ipv4/tcp_sack":                         "1",
		"proc/sys/net/ipv4/tcp_window_scaling":               "1",
		"proc/sys/net/ipv4/tcp_mtu_probing":                  "1",
		"sys/class/net/lo/mtu":                               "65536",
		"sys/class/net/docker0/mtu":                          "1500",
		"sys/class/net/docker0/operstate":                    "up",
		"sys/class/net/eth0/mtu":                             "9000",
		"sys/class/net/eth0/speed":                           "10000",
		"sys/class/net/eth0/duplex":                          "full",
		"sys/class/net/eth0/operstate":                       "up",
		"sys/class/net/eth0/device/vendor":                   "0x15b3",
		"sys/class/net/eth9/operstate":                       "down",
		"sys/class/net/eth9/device/vendor":                   "0x15b3",
	})
	h.Receive = "/data/in"
	h.Roots = func() ([]tclinux.Qdisc, error) { return []tclinux.Qdisc{{Device: "eth0", Kind: "mq"}}, nil }
	return h
}

// untuned is a host as it comes, and then some.
func untuned(t *testing.T) Host {
	h := machine(t, map[string]string{
		"proc/sys/kernel/osrelease":                          "4.18.0-553.el8",
		"proc/sys/kernel/seccomp/actions_avail":              "kill_process trap errno trace log allow",
		"proc/sys/kernel/yama/ptrace_scope":                  "2",
		"proc/sys/net/core/rmem_max":                         "212992",
		"proc/sys/net/core/wmem_max":                         "212992",
		"proc/sys/net/ipv4/tcp_rmem":                         "4096	131072	6291456",
		"proc/sys/net/ipv4/tcp_wmem":                         "4096	16384	4194304",
		"proc/sys/net/ipv4/tcp_congestion_control":           "bbr",
		"proc/sys/net/ipv4/tcp_available_congestion_control": "bbr",
		"proc/sys/net/ipv4/tcp_allowed_congestion_control":   "bbr",
		"proc/sys/net/ipv4/tcp_slow_start_after_idle":        "1",
		"proc/sys/net/ipv4/tcp_no_metrics_save":              "0",
		"proc/sys/net/ipv4/tcp_tso_rtt_log":                  "9",
		"proc/sys/net/ipv4/tcp_timestamps":                   "0",
		"proc/sys/net/ipv4/tcp_mtu_probing":                  "0",
		"sys/class/net/eth0/mtu":                             "1500",
		"sys/class/net/eth0/speed":                           "1000",
		"sys/class/net/eth0/duplex":                          "half",
		"sys/class/net/eth0/device/vendor":                   "0x8086",
		"sys/class/net/eth1/mtu":                             "9000",
		"sys/class/net/eth1/speed":                           "-1",
		"sys/class/net/eth1/device/vendor":                   "0x8086",
		"sys/class/net/eth2/mtu":                             "1500",
		"sys/class/net/eth2/speed":                           "100000",
		"sys/class/net/eth2/duplex":                          "full",
		"sys/class/net/eth2/device/vendor":                   "0x8086",
	})
	h.RateBps, h.Receive, h.Devices = 25_000_000_000, "/data/in", []string{"eth0", "eth1", "eth2", "eth7"}
	h.Clock = func() clock.Host { return clock.Host{ErrorMicros: 16_000_000} }
	h.Probe = func(qdisc string) error {
		if qdisc == "fq" {
			return fmt.Errorf("fq: %w", tclinux.ErrNoQdisc)
		}
		return tclinux.ErrNoPrivilege
	}
	h.Roots = func() ([]tclinux.Qdisc, error) {
		return []tclinux.Qdisc{{Device: "eth0", Kind: "tbf", Handle: 0x10000}, {Device: "eth1", Kind: "fq", Handle: 0x80010000},
			{Device: "eth2", Kind: "htb", Handle: tclinux.Handle}}, nil
	}
	h.Offload = func(device string) (bool, bool, error) {
		if device == "eth1" {
			return false, false, errors.New("operation not supported")
		}
		return device == "eth2", true, nil
	}
	h.Free = func(string) (uint64, uint64, error) { return 9e9, 1000e9, nil }
	h.Broker = func() error { return errors.New("dial tcp 192.0.2.1:7410: connect: connection refused") }
	return h
}

func TestFindings(t *testing.T) {
	for name, c := range map[string]struct {
		host Host
		todo int
	}{"tuned": {tuned(t), 0}, "untuned": {untuned(t), 12}} {
		t.Run(name, func(t *testing.T) {
			findings := Examine(c.host)
			var text bytes.Buffer
			if err := Write(&text, findings); err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(golden, text.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil || text.String() != string(want) {
				t.Errorf("%v; go test ./internal/doctor -update writes it anew\n%s", err, text.String())
			}
			if n := ToDo(findings); n != c.todo {
				t.Errorf("%d to do, want %d", n, c.todo)
			}
			for _, f := range findings {
				if f.What == "" || f.Found == "" || f.State == Todo && f.What != "network" && !strings.HasPrefix(f.Found, "no such") && (f.Wanted == "" || f.Change == "") {
					t.Errorf("says too little: %+v", f)
				}
			}
			raw, err := json.Marshal(findings)
			var back []Finding
			if err == nil {
				err = json.Unmarshal(raw, &back)
			}
			if err != nil || len(back) != len(findings) {
				t.Errorf("%v: %s", err, raw)
			}
		})
	}
}

// A host that tells nothing is no reason to fall over.
func TestAnEmptyHost(t *testing.T) {
	h := machine(t, nil)
	h.Broker = nil
	h.Roots = func() ([]tclinux.Qdisc, error) { return nil, errors.New("netlink is closed") }
	if findings := Examine(h); ToDo(findings) == 0 || len(findings) < 5 {
		t.Errorf("%+v", findings)
	}
}

// The one that runs this test answers every question.
func TestThisHost(t *testing.T) {
	h, closed, err := ThisHost()
	if err != nil {
		t.Fatal(err)
	}
	defer closed()
	h.RTT, h.Receive = time.Millisecond, t.TempDir()
	findings := Examine(h)
	var text bytes.Buffer
	if err := Write(&text, findings); err != nil || len(findings) < 12 {
		t.Errorf("%v\n%s", err, text.String())
	}
	if _, err := os.Stat("/sys/class/net/lo"); err == nil {
		if _, _, err := h.Offload("lo"); err != nil {
			t.Errorf("offload of lo: %v", err)
		}
		if _, _, err := h.Offload("no-such-device"); err == nil {
			t.Error("offload of a device that does not exist")
		}
	}
}

// Whatever a file says, it is a number or it is none; whatever a kernel calls itself, it has a version or it has none.
func FuzzFiles(f *testing.F) {
	for _, text := range []string{"4096\t131072\t6291456", "", "-1", "99999999999999999999", "6.1.0-18-amd64", "x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for n := range 4 {
			if v, ok := number(text, n); !ok && v != 0 && v != 1<<63-1 && v != -1<<63 {
				t.Errorf("%q: %d", text, v)
			}
		}
		major, minor, ok := version(text)
		if ok && major == 0 && minor == 0 && !strings.Contains(text, "0") {
			t.Errorf("%q: %d.%d", text, major, minor)
		}
	})
}
