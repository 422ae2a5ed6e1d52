// SPDX-License-Identifier: Apache-2.0

package wrap

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The exit codes of a shell for a command that could not be started.
const (
	CannotRun = 126
	NotFound  = 127
)

// shimSocket is the descriptor on which the shim and the supervisor speak.
const shimSocket = 3

// word is what they say: from the shim Ready, with the filter's descriptor or the reason why there is none, and Failed
// when the command cannot be started; from the supervisor an empty one, to go.
type word struct {
	Ready  bool   `json:"ready,omitempty"`
	Reason string `json:"reason,omitempty"` // why connections are not caught before they begin
	Failed string `json:"failed,omitempty"`
	Code   int    `json:"code,omitempty"`
}

// Shim becomes the command: it asks the kernel to tell the supervisor of every connection before it is made, waits for
// the word to go, and executes it. It returns only when that fails, with the exit code.
func Shim(command []string, supervisor int) int {
	// Filters, and the signal at the parent's death, belong to a thread: the one that executes.
	runtime.LockOSThread()
	unix.CloseOnExec(shimSocket)
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil || os.Getppid() != supervisor {
		return CannotRun
	}
	path, err := exec.LookPath(command[0])
	if errors.Is(err, exec.ErrDot) {
		err = nil
	}
	if err != nil {
		return tellFailure(err)
	}
	listener, err := listen()
	ready := word{Ready: true}
	if err != nil {
		ready.Reason = err.Error()
	}
	if tell(ready, listener) != nil {
		return CannotRun
	}
	if listener >= 0 {
		_ = unix.Close(listener)
	}
	var go1 [1]byte
	if n, err := unix.Read(shimSocket, go1[:]); n != 1 || err != nil {
		return CannotRun // the supervisor is gone, or does not want to any more
	}
	return tellFailure(syscall.Exec(path, command, os.Environ()))
}

func tellFailure(err error) int {
	code := CannotRun
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound) {
		code = NotFound
	}
	_ = tell(word{Failed: err.Error(), Code: code}, -1)
	return code
}

func tell(w word, fd int) error {
	raw, err := json.Marshal(w)
	if err != nil {
		return err
	}
	var rights []byte
	if fd >= 0 {
		rights = unix.UnixRights(fd)
	}
	return unix.Sendmsg(shimSocket, raw, rights, nil, 0)
}

// listen installs the filter on this thread and returns the descriptor on which its questions arrive; -1 with a reason
// where the kernel or another filter does not let us. A process without CAP_SYS_ADMIN must give up setuid programs for it
// (no_new_privs).
func listen() (int, error) {
	program, ok := filter()
	if !ok {
		return -1, fmt.Errorf("the numbers of the system calls of %s are not known", runtime.GOARCH)
	}
	fd, err := install(program)
	if errors.Is(err, unix.EACCES) {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return -1, fmt.Errorf("no_new_privs: %w", err)
		}
		fd, err = install(program)
	}
	if err != nil {
		return -1, fmt.Errorf("seccomp user notification: %w", err)
	}
	return fd, nil
}

// waitKillable keeps ordinary signals, which some runtimes send all the time, from interrupting a call that is being
// answered (Linux 5.19).
const waitKillable = unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV

func install(program []unix.SockFilter) (int, error) {
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	for _, flags := range []uintptr{unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | waitKillable, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER} {
		fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
		if errno == 0 {
			return int(fd), nil
		}
		if errno != unix.EINVAL {
			return -1, errno
		}
	}
	return -1, unix.EINVAL
}
