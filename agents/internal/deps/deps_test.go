// SPDX-License-Identifier: Apache-2.0

// Package deps holds rules of this module as tests: imports with their reasons, comments, the map. It has no code.
package deps

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "bandwidthbroker/agents/"

// rules say what a package may reach, directly or not, beside the standard library.
var rules = []struct {
	pkg, reason string
	may         []string
	mayNot      []string // of the standard library
}{
	{"internal/schedule", "a schedule is arithmetic on a function of time, tested against its definition: no clock, no I/O", nil, []string{"time", "os", "net"}},
	{"internal/pacing", "the pace is decided with time and counts as arguments, tested without a sleep: no clock, no I/O", []string{"internal/schedule"}, []string{"time", "os", "net"}},
	{"internal/datachannel", "frames are bytes in, bytes out, so that they can be fuzzed and reused: no connections", nil, []string{"net"}},
	{"internal/served", "what touches files for strangers stays small enough to read at once", []string{"internal/failure", "golang.org/x/sys/unix"}, []string{"net"}},
	{"internal/spool", "reports outlive everything else", []string{"internal/atomicfile", "internal/brokerapi"}, nil},
	{"internal/mover", "transfers go on without the broker: the mover must not be able to call it", []string{
		"internal/schedule", "internal/pacing", "internal/datachannel", "internal/served", "internal/failure", "internal/tcpsock", "internal/tlsid",
		"internal/agentstate", "internal/atomicfile", "internal/brokerapi", "internal/signal", "internal/signalport", "golang.org/x/sys/unix",
		"internal/mechanism", "internal/wirerate",
	}, []string{"net/http"}},
	{"internal/mechanism", "it holds sockets, of whoever; what it needs of traffic control is given to it, so that a sender does not reach netlink", []string{
		"internal/pacing", "internal/schedule", "internal/tcpsock", "internal/wirerate", "golang.org/x/sys/unix",
	}, []string{"net", "net/http"}},
	{"internal/tcpsock", "options of sockets: it knows no transfers", []string{"golang.org/x/sys/unix"}, []string{"net/http"}},
	{"internal/signal", "who may send is decided with time and randomness as arguments, explored without a sleep: no clock, no I/O", nil, []string{"time", "os", "net", "crypto/rand"}},
	{"internal/signalport", "signals between hosts must work without the broker", []string{"internal/signal"}, []string{"net/http"}},
	{"internal/signalping", "what is measured is what agents use, and nothing else", []string{"internal/signal", "internal/signalport"}, []string{"net/http"}},
	{"internal/gateway", "disciplines are arithmetic with time as an argument, exact to the bit: no clock, no I/O", nil, []string{"time", "os", "net"}},
	{"internal/tun", "packets in, packets out: it knows no link", []string{"golang.org/x/sys/unix"}, []string{"net"}},
	{"internal/emulate", "the laboratory's link must work without broker and agent", []string{
		"internal/gateway", "internal/tun", "golang.org/x/sys/unix",
	}, []string{"net/http"}},
	{"internal/wirerate", "a conversion of rates is arithmetic", nil, []string{"time", "os", "net"}},
	{"internal/tclinux", "what changes the kernel's traffic control knows neither broker nor transfers", []string{
		"internal/wirerate", "golang.org/x/sys/unix",
	}, []string{"net", "net/http"}},
	{"internal/doctor", "it reads and changes nothing, and is of use where no agent is: no transfers, no broker", []string{
		"internal/clock", "internal/tclinux", "internal/wirerate", "golang.org/x/sys/unix",
	}, []string{"net", "net/http"}},
	{"internal/flows", "it holds sockets of other processes and knows no transfers, no broker", []string{"golang.org/x/sys/unix"}, []string{"net/http"}},
	{"internal/local", "a command's supervisor must not be able to call the broker: the daemon speaks for it", []string{"golang.org/x/sys/unix"}, []string{"net/http"}},
	{"internal/wrap", "a command of somebody is supervised without the agent's credentials: no broker, no state folder but its socket", []string{
		"internal/flows", "internal/local", "internal/pacing", "internal/schedule", "internal/failure",
		"internal/tcpsock", "golang.org/x/sys/unix",
	}, []string{"net/http"}},
	{"internal/brokerapi", "types and checks only: who knows the contract cannot call the broker", nil, []string{"net/http"}},
}

func TestImportRules(t *testing.T) {
	for _, rule := range rules {
		out, err := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}} {{.Standard}}", module+rule.pkg).Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			path, standard, _ := strings.Cut(strings.TrimSpace(line), " ")
			name := strings.TrimPrefix(path, module)
			switch {
			case standard == "true" && slices.Contains(rule.mayNot, path) && direct(t, rule.pkg, path):
				t.Errorf("%s imports %s, but %s", rule.pkg, path, rule.reason)
			case standard == "false" && name != rule.pkg && !slices.Contains(rule.may, name):
				t.Errorf("%s reaches %s, but %s", rule.pkg, name, rule.reason)
			}
		}
	}
}

// direct: the standard library's own insides are not our business.
func direct(t *testing.T, pkg, path string) bool {
	out, err := exec.Command("go", "list", "-f", "{{join .Imports \"\\n\"}}", module+pkg).Output()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Contains(strings.Split(string(out), "\n"), path)
}
