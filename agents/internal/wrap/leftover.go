// SPDX-License-Identifier: Apache-2.0

package wrap

import (
	"os"
	"slices"
	"syscall"

	"bandwidthbroker/agents/internal/flows"
)

// AnswerOnly stands where the shim's arguments have the supervisor's process id.
const AnswerOnly = "answer"

// Answerer lets connections happen that processes make which outlive the command: without a process that answers their
// filter they could make none any more. It ends with the last of them. The listener is descriptor 3.
func Answerer() { answerAll(shimSocket, func(connecting) {}) }

// leaveAnswerer starts one if there is anybody left.
func (s *Supervisor) leaveAnswerer() {
	tree, err := flows.Tree(os.Getpid())
	if err != nil || len(tree) == 0 {
		return
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer null.Close()
	nothing := null.Fd()
	attributes := &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{nothing, nothing, nothing, uintptr(s.command.listener)}, Sys: &syscall.SysProcAttr{Setsid: true},
	}
	if _, err := syscall.ForkExec("/proc/self/exe", append(slices.Clone(s.Shim), AnswerOnly), attributes); err != nil {
		s.warn("processes that outlive the command cannot connect any more: %v", err)
	}
}
