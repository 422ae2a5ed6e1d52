// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"bandwidthbroker/agents/internal/tclinux"
)

// mechanisms says what is possible beside pacing, which is always.
func (h Host) mechanisms() []Finding {
	var made []Finding
	for _, m := range []struct{ qdisc, use string }{
		{"htb", "mechanism htb, and mode observed"}, {"fq", "mechanism fq, with fq as the root qdisc of the device"},
	} {
		f := Finding{State: OK, What: "qdisc " + m.qdisc, Found: "this process may use it"}
		switch err := h.Probe(m.qdisc); {
		case errors.Is(err, tclinux.ErrNoPrivilege):
			f = Finding{Note, f.What, "no privilege to ask for it", "for " + m.use, "CAP_NET_ADMIN for the agent; see docs/host.md, Mechanisms"}
		case errors.Is(err, tclinux.ErrNoQdisc):
			f = Finding{Note, f.What, "this kernel has none", "for " + m.use, "modprobe sch_" + m.qdisc + ", or another kernel"}
		case err != nil:
			f = Finding{Note, f.What, err.Error(), "for " + m.use, ""}
		}
		made = append(made, f)
	}
	return append(made, h.congestionControl()...)
}

// good are the congestion controls that the agent takes: reno to begin with, cubic after a loss (package mover).
var good = []string{"cubic", "reno"}

func (h Host) congestionControl() []Finding {
	used, available := h.sysctl("net.ipv4.tcp_congestion_control"), strings.Fields(h.sysctl("net.ipv4.tcp_available_congestion_control"))
	allowed := strings.Fields(h.sysctl("net.ipv4.tcp_allowed_congestion_control"))
	f := Finding{State: OK, What: "congestion control", Found: fmt.Sprintf("%s; allowed to all: %s", used, strings.Join(allowed, " "))}
	if !slices.ContainsFunc(good, func(name string) bool { return slices.Contains(allowed, name) || used == name }) {
		f.State = Todo
		f.Wanted = "cubic or reno allowed: the booked rate is the agent's to hold, and bbr halts for 200 ms every 10 s"
		f.Change = "sysctl -w net.ipv4.tcp_allowed_congestion_control='" + strings.Join(append(allowed, good[0]), " ") + "'"
		if !slices.Contains(available, good[0]) {
			f.Change = "modprobe tcp_cubic; " + f.Change
		}
	}
	return []Finding{f}
}
