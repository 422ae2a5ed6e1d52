// SPDX-License-Identifier: Apache-2.0

package wrap

import (
	"os"
	"syscall"
	"time"

	"bandwidthbroker/agents/internal/flows"
)

// Forwarded are the signals that a supervisor must be told of.
var Forwarded = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}

// pass gives a signal to the command. What the terminal sends (ctrl-C, ctrl-\) it has sent to the command as well, when
// that shares our process group. A second ctrl-C kills.
func (s *Supervisor) pass(got os.Signal) {
	number, ok := got.(syscall.Signal)
	if !ok {
		return
	}
	if number == syscall.SIGINT {
		if s.interrupts++; s.interrupts > 1 {
			s.ends = "killed after a second interrupt"
			s.kill()
			return
		}
	}
	if s.ends == "" && (number == syscall.SIGINT || number == syscall.SIGTERM) {
		s.ends = number.String()
	}
	if !s.command.ownGroup && (number == syscall.SIGINT || number == syscall.SIGQUIT) {
		return
	}
	s.command.signal(number)
}

// terminate asks the command to end, and kills it when it does not.
func (s *Supervisor) terminate() {
	s.command.signal(syscall.SIGTERM)
	s.killAt = time.Now().Add(terminated)
}

// kill ends the command and everything that it started.
func (s *Supervisor) kill() {
	tree, err := flows.Tree(os.Getpid())
	if err != nil {
		tree = []int{s.command.pid}
	}
	for _, pid := range tree {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}
