// SPDX-License-Identifier: Apache-2.0

package tctest

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Namespace is a network namespace of its own, which goes when the test ends, however it ends.
type Namespace struct {
	t    *testing.T
	file *os.File
}

// NewNamespace makes one, or skips the test and says what was not shown.
func NewNamespace(t *testing.T, shows string) *Namespace {
	t.Helper()
	n := &Namespace{t: t}
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		if err = unix.Unshare(unix.CLONE_NEWNET); err == nil {
			n.file, err = os.Open("/proc/thread-self/ns/net")
		}
	}()
	<-done
	if err != nil {
		t.Skipf("NOT SHOWN without root, run as root to see it: %s (%v)", shows, err)
	}
	t.Cleanup(func() { n.file.Close() })
	n.Run("ip link set lo up")
	return n
}

// Do calls f inside of the namespace. Sockets that f opens stay there.
func (n *Namespace) Do(f func()) {
	n.t.Helper()
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if err = unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err == nil {
			f()
		}
	}()
	<-done
	if err != nil {
		n.t.Fatal(err)
	}
}

// Run runs commands, one on each line, and returns what they printed.
func (n *Namespace) Run(commands string) string {
	n.t.Helper()
	var all strings.Builder
	for line := range strings.Lines(commands) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		n.Do(func() {
			out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
			all.Write(out)
			if err != nil {
				n.t.Errorf("%s: %v\n%s", strings.TrimSpace(line), err, out)
			}
		})
	}
	return all.String()
}

// Join connects two namespaces by an Ethernet cable, 10.9.0.1 and fd09::1 here, .2 and ::2 there, and names the device
// here.
func (n *Namespace) Join(other *Namespace) (device string) {
	n.t.Helper()
	n.Run(fmt.Sprintf(`ip link add bwbtc0 type veth peer name bwbtc1
		ip link set bwbtc1 netns /proc/%d/fd/%d
		ip addr add 10.9.0.1/24 dev bwbtc0
		ip addr add fd09::1/64 dev bwbtc0 nodad
		ip link set bwbtc0 up`, os.Getpid(), other.file.Fd()))
	other.Run(`ip addr add 10.9.0.2/24 dev bwbtc1
		ip addr add fd09::2/64 dev bwbtc1 nodad
		ip link set bwbtc1 up`)
	return "bwbtc0"
}
