// SPDX-License-Identifier: Apache-2.0

package wrap

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"bandwidthbroker/agents/internal/failure"
	"bandwidthbroker/agents/internal/local"
)

// handOver is how long the end of the command waits for a daemon that is away to take the reports.
const handOver = 15 * time.Second

// notStarted reports a command that could not be executed.
func (s *Supervisor) notStarted(err error) (int, error) {
	code := CannotRun
	var cannot *CannotStart
	if errors.As(err, &cannot) {
		code = cannot.Code
	}
	s.report("failed", failure.CommandFailed, "cannot be started: "+err.Error())
	s.deliver()
	return code, err
}

// givenUp ends what has not begun.
func (s *Supervisor) givenUp() (int, error) {
	if s.Client.Over() == nil {
		s.report("failed", failure.CommandFailed, "given up: "+s.ends)
		s.deliver()
	}
	if s.interrupts > 0 {
		return 128 + int(syscall.SIGINT), errors.New(s.ends)
	}
	return CannotRun, errors.New(s.ends)
}

// finish reports how the command ended and returns its exit code.
func (s *Supervisor) finish(status syscall.WaitStatus) int {
	code := status.ExitStatus()
	detail := fmt.Sprintf("%s: exit status %d", s.Command[0], code)
	if status.Signaled() {
		code = 128 + int(status.Signal())
		detail = fmt.Sprintf("%s: ended by signal %d (%v)", s.Command[0], int(status.Signal()), status.Signal())
	}
	if s.ends != "" {
		detail += " (" + s.ends + ")"
	}
	s.Client.Progress(local.Progress{Bytes: s.acked()})
	if s.Client.Over() == nil {
		if code == 0 {
			s.report("finished", "", "")
		} else {
			s.report("failed", failure.CommandFailed, detail)
		}
		s.deliver()
	}
	s.show(s.Client.Now(), "")
	s.leaveLine()
	if s.command.listener >= 0 {
		s.leaveAnswerer()
	}
	return code
}

// deliver waits until the daemon has all reports.
func (s *Supervisor) deliver() {
	for deadline := time.Now().Add(handOver); s.Client.Untaken() > 0; {
		if time.Now().After(deadline) {
			s.warn("THE AGENT DID NOT TAKE %d REPORTS: it will tell the broker that the supervisor was lost", s.Client.Untaken())
			return
		}
		timer := time.NewTimer(time.Second)
		select {
		case <-s.Client.News():
		case <-timer.C:
		case <-s.Signals: // the command has ended: a second ctrl-C stops the waiting
			return
		}
		timer.Stop()
	}
}
