// SPDX-License-Identifier: Apache-2.0

// Package doctor says what of a host's configuration keeps transfers from their booked rates. It reads and changes
// nothing.
package doctor

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"bandwidthbroker/agents/internal/clock"
	"bandwidthbroker/agents/internal/tclinux"
)

// State is what a finding asks for.
type State string

// The states.
const (
	OK   State = "ok"
	Note State = "note" // good to know; nothing to do, or only for some uses
	Todo State = "todo"
)

// Finding is one thing that was looked at.
type Finding struct {
	State  State  `json:"state"`
	What   string `json:"what"`
	Found  string `json:"found"`
	Wanted string `json:"wanted,omitempty"`
	Change string `json:"change,omitempty"` // how to
}

// Host is where to look. What the files under /proc and /sys do not tell is asked by functions, so that tests can answer.
type Host struct {
	Root    string        // "/", or a folder that looks like it
	Devices []string      // empty: the physical ones that are up
	RateBps int64         // of the fastest transfer; 0: what the fastest device can
	RTT     time.Duration // to the farthest peer
	Receive string        // folder; empty: none

	Clock   func() clock.Host
	Roots   func() ([]tclinux.Qdisc, error)
	Probe   func(qdisc string) error
	Offload func(device string) (tso, gso bool, err error)
	Free    func(folder string) (free, size uint64, err error)
	Broker  func() error // nil: not enrolled
}

// Examine looks at everything, the most important first.
func Examine(h Host) []Finding {
	var all []Finding
	devices := h.devices()
	for _, part := range [][]Finding{h.broker(), h.clock(), h.mechanisms(), h.deviceFindings(devices), h.buffers(devices), h.tcp(), h.commands(), h.disk()} {
		all = append(all, part...)
	}
	return all
}

// ToDo counts what asks for a change.
func ToDo(findings []Finding) (n int) {
	for _, f := range findings {
		if f.State == Todo {
			n++
		}
	}
	return n
}

// read returns the content of a file without the line's end; "" when there is none.
func (h Host) read(path string) string {
	raw, err := os.ReadFile(filepath.Join(h.Root, path))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}

// number returns the n-th number of a file.
func (h Host) number(path string, n int) (int64, bool) { return number(h.read(path), n) }

func number(text string, n int) (int64, bool) {
	words := strings.Fields(text)
	if n >= len(words) {
		return 0, false
	}
	value, err := strconv.ParseInt(words[n], 10, 64)
	return value, err == nil
}

// sysctl is a setting by its name in sysctl(8).
func (h Host) sysctl(name string) string {
	return h.read("proc/sys/" + strings.ReplaceAll(name, ".", "/"))
}

// setting compares a sysctl with what it should be.
func (h Host) setting(name, wanted, why string, otherwise State) []Finding {
	found := h.sysctl(name)
	switch found {
	case "":
		return nil // this kernel is older than the setting, or newer
	case wanted:
		return []Finding{{State: OK, What: name, Found: found}}
	}
	return []Finding{{State: otherwise, What: name, Found: found, Wanted: wanted + ": " + why, Change: "sysctl -w " + name + "=" + wanted}}
}
