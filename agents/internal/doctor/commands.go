// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"
)

// commands says whether the connections of other programs can be paced from outside (bwb run): they are duplicated by
// pidfd_getfd, which needs Linux 5.6 and the right to trace, and caught before they connect by a seccomp filter.
func (h Host) commands() []Finding {
	kernel := h.read("proc/sys/kernel/osrelease")
	f := Finding{State: OK, What: "kernel", Found: kernel}
	if major, minor, ok := version(kernel); ok && (major < 5 || major == 5 && minor < 6) {
		f.State, f.Wanted, f.Change = Note, "5.6, for bwb run (pidfd_getfd)", "another kernel"
	}
	made := []Finding{f}
	actions := strings.Fields(h.read("proc/sys/kernel/seccomp/actions_avail"))
	f = Finding{State: OK, What: "seccomp", Found: "connections can be held until they are paced"}
	if !slices.Contains(actions, "user_notif") {
		f.State, f.Found = Note, "no user_notif"
		f.Wanted, f.Change = "for bwb run: without it, a connection may send for up to 50 ms before it is paced", "Linux 5.0 with CONFIG_SECCOMP_FILTER"
	}
	made = append(made, f)
	switch scope := h.sysctl("kernel.yama.ptrace_scope"); scope {
	case "", "0", "1": // its own children may be traced by everybody
		made = append(made, Finding{State: OK, What: "tracing", Found: "allowed for a program's own children"})
	default:
		made = append(made, Finding{Note, "tracing", "kernel.yama.ptrace_scope = " + scope, "1 or 0, for bwb run: else only root can pace other programs", "sysctl -w kernel.yama.ptrace_scope=1 (from 3 only by a reboot)"})
	}
	return made
}

// version reads "6.1.0-18-amd64".
func version(release string) (major, minor int, ok bool) {
	n, _ := fmt.Sscanf(release, "%d.%d", &major, &minor)
	return major, minor, n == 2
}
