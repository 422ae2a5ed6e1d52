// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"strings"
)

// overhead: of a socket's buffer the kernel takes about half for its own structures (tcp(7), tcp_adv_win_scale).
const overhead = 2

// buffers compares what a socket may hold with what is under way at the asked rate and round trip.
func (h Host) buffers(devices []device) []Finding {
	bps := h.RateBps
	for _, d := range devices {
		if h.RateBps == 0 {
			bps = max(bps, d.speedBps)
		}
	}
	if bps == 0 {
		return []Finding{{State: Note, What: "buffers", Found: "not compared: no device says its speed", Change: "give --rate"}}
	}
	product := int64(float64(bps) / 8 * h.RTT.Seconds())
	want := overhead * product
	why := fmt.Sprintf("%d: %s over a round trip of %s is %d bytes under way, and as much for the kernel", want, rate(bps), h.RTT, product)
	var made []Finding
	for _, name := range []string{"net.ipv4.tcp_wmem", "net.ipv4.tcp_rmem"} {
		text := h.sysctl(name)
		most, ok := number(text, 2)
		if !ok {
			continue
		}
		f := Finding{State: OK, What: name, Found: fmt.Sprintf("%d at most", most)}
		if most < want {
			words := strings.Fields(text)
			f.State, f.Wanted = Todo, why
			f.Change = fmt.Sprintf("sysctl -w %s='%s %s %d'", name, words[0], words[1], want)
		}
		made = append(made, f)
	}
	// These bound only what programs ask for themselves: the agent lets the kernel choose.
	for _, name := range []string{"net.core.wmem_max", "net.core.rmem_max"} {
		most, ok := number(h.sysctl(name), 0)
		if !ok {
			continue
		}
		f := Finding{State: OK, What: name, Found: fmt.Sprint(most)}
		if most < want {
			f.State, f.Wanted = Note, fmt.Sprintf("%d, for programs that set their buffers themselves (bwb run)", want)
			f.Change = fmt.Sprintf("sysctl -w %s=%d", name, want)
		}
		made = append(made, f)
	}
	return made
}

func (h Host) tcp() []Finding {
	made := h.setting("net.ipv4.tcp_slow_start_after_idle", "0", "a transfer goes on at its rate after a gap in its booking", Todo)
	made = append(made, h.setting("net.ipv4.tcp_no_metrics_save", "1", "a loss long ago does not slow the start of the next transfer", Todo)...)
	made = append(made, h.setting("net.ipv4.tcp_tso_rtt_log", "0", "at some Mbit/s on short paths, packets leave one by one and not 64 KiB at once", Note)...)
	made = append(made, h.setting("net.ipv4.tcp_timestamps", "1", "round trips are measured well", Note)...)
	made = append(made, h.setting("net.ipv4.tcp_sack", "1", "a loss costs one packet and not the window", Todo)...)
	return append(made, h.setting("net.ipv4.tcp_window_scaling", "1", "more than 64 KiB can be under way", Todo)...)
}
