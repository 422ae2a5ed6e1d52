// SPDX-License-Identifier: Apache-2.0

package wrap

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// command is the supervised program: first the shim that waits for the word to go, then itself, under one process id.
type command struct {
	pid      int
	ownGroup bool // it has a process group of its own; otherwise it shares ours, with the terminal
	talk     *os.File
	listener int    // of the filter; -1: there is none
	reason   string // why
	ended    chan syscall.WaitStatus
	refused  chan word // why the command could not be started
}

// prepare starts the shim; the command begins with start.
func prepare(shim []string, arguments []string) (*command, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "shim"), pair[1]
	c := &command{talk: ours, listener: -1, ownGroup: !atTerminal(), ended: make(chan syscall.WaitStatus, 1), refused: make(chan word, 1)}
	began := make(chan error)
	argv := append(append(slices.Clone(shim), strconv.Itoa(os.Getpid())), arguments...)
	go c.father(argv, theirs, began)
	if err := <-began; err != nil {
		_ = ours.Close()
		return nil, err
	}
	if err := c.hear(); err != nil {
		_ = ours.Close()
		return nil, err
	}
	return c, nil
}

// children maps a process id to the command that waits for it: of several commands in one process, each father reaps any of their children.
var children = struct {
	sync.Mutex
	ended map[int]chan<- syscall.WaitStatus
}{ended: map[int]chan<- syscall.WaitStatus{}}

// father forks on a thread that lives as long as this process: the command dies with the thread that made it
// (PR_SET_PDEATHSIG). The same thread reaps it, and the orphans of its tree.
func (c *command) father(argv []string, theirs int, began chan<- error) {
	runtime.LockOSThread()
	attributes := &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2, uintptr(theirs)}, Sys: &syscall.SysProcAttr{Setpgid: c.ownGroup}}
	children.Lock()
	pid, err := syscall.ForkExec("/proc/self/exe", argv, attributes)
	if err == nil {
		children.ended[pid] = c.ended
	}
	children.Unlock()
	_ = unix.Close(theirs)
	c.pid = pid
	began <- err
	if err != nil {
		return
	}
	for {
		var status syscall.WaitStatus
		reaped, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			// No child is left. The thread must not end: its end would kill the command (PR_SET_PDEATHSIG).
			select {}
		case status.Exited() || status.Signaled():
			announce(reaped, status)
		}
	}
}

// announce gives an ended process's status to the command that it belongs to; orphans belong to none.
func announce(pid int, status syscall.WaitStatus) {
	children.Lock()
	defer children.Unlock()
	if ended, ok := children.ended[pid]; ok {
		delete(children.ended, pid)
		ended <- status // has room for it
	}
}

// hear waits for the shim to be ready.
func (c *command) hear() error {
	w, fd, err := receive(int(c.talk.Fd()))
	switch {
	case err != nil:
		return fmt.Errorf("the command's first process: %w", err)
	case w.Failed != "":
		return &CannotStart{w.Failed, w.Code}
	}
	c.listener, c.reason = fd, w.Reason
	return nil
}

// CannotStart says why there is no command; Code is what a shell would exit with.
type CannotStart struct {
	Reason string
	Code   int
}

func (e *CannotStart) Error() string { return e.Reason }

// start gives the word to go. Whether the command could be executed is known when talk is at its end.
func (c *command) start() error {
	if _, err := unix.Write(int(c.talk.Fd()), []byte{1}); err != nil {
		return err
	}
	w, _, err := receive(int(c.talk.Fd()))
	_ = c.talk.Close()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	}
	return &CannotStart{w.Failed, w.Code}
}

// signal passes a signal on: to the command's group, or to the command alone where the terminal has told its group.
func (c *command) signal(s syscall.Signal) {
	if c.ownGroup {
		_ = syscall.Kill(-c.pid, s)
		return
	}
	_ = syscall.Kill(c.pid, s)
}

// receive reads one word, with a descriptor (-1: none).
func receive(socket int) (word, int, error) {
	piece, rights := make([]byte, 64<<10), make([]byte, unix.CmsgSpace(4))
	n, rightsLength, _, _, err := unix.Recvmsg(socket, piece, rights, unix.MSG_CMSG_CLOEXEC)
	for errors.Is(err, unix.EINTR) {
		n, rightsLength, _, _, err = unix.Recvmsg(socket, piece, rights, unix.MSG_CMSG_CLOEXEC)
	}
	if err != nil {
		return word{}, -1, err
	}
	if n == 0 {
		return word{}, -1, io.EOF
	}
	fd := -1
	if messages, err := unix.ParseSocketControlMessage(rights[:rightsLength]); err == nil && len(messages) > 0 {
		if fds, err := unix.ParseUnixRights(&messages[0]); err == nil && len(fds) > 0 {
			fd = fds[0]
		}
	}
	var w word
	return w, fd, json.Unmarshal(piece[:n], &w)
}

// atTerminal says that this process is in the foreground of a terminal: then the command must stay in the same process
// group, or it could not read from it, and the shell's job control would only see us.
func atTerminal() bool {
	terminal, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer terminal.Close()
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
