// SPDX-License-Identifier: Apache-2.0

package wrap

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// question is struct seccomp_notif: a thread wants to connect and waits for an answer.
type question struct {
	ID    uint64
	PID   uint32 // of the thread, as this process sees it
	Flags uint32
	Data  struct {
		Number             int32
		Arch               uint32
		InstructionPointer uint64
		Args               [6]uint64
	}
}

// answer is struct seccomp_notif_resp.
type answer struct {
	ID    uint64
	Value int64
	Error int32
	Flags uint32
}

// goOn lets the call happen as it was made (SECCOMP_USER_NOTIF_FLAG_CONTINUE).
const goOn = 1

// connecting is a socket that is about to connect.
type connecting struct {
	pid, fd int
	to      netip.AddrPort // zero where it could not be read
	inet    bool
}

// answerAll answers the filter's questions until no process with the filter is left. admit runs before each connection;
// whatever it does, the call goes on: pacing must not break the command.
func answerAll(listener int, admit func(connecting)) {
	for {
		polled := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(polled, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		if polled[0].Revents&unix.POLLIN == 0 {
			if polled[0].Revents != 0 {
				return // no process with the filter is left
			}
			continue
		}
		var q question
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&q))); errno != 0 {
			continue // the thread was killed, or interrupted, before we asked
		}
		if c := read(q); c.inet {
			admit(c)
		}
		a := answer{ID: q.ID, Flags: goOn}
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&a)))
	}
}

// read finds out what the thread is about to do. Another thread may change the memory meanwhile; nothing here is a
// matter of security.
func read(q question) connecting {
	c := connecting{pid: int(q.PID), fd: int(int32(q.Data.Args[0]))}
	if q.Data.Number != unix.SYS_CONNECT {
		c.inet = true // a send that connects (TCP Fast Open): the scan tells where to
		return c
	}
	var raw [28]byte // struct sockaddr_in6
	length := min(q.Data.Args[2], uint64(len(raw)))
	local := []unix.Iovec{{Base: &raw[0]}}
	local[0].SetLen(int(length))
	remote := []unix.RemoteIovec{{Base: uintptr(q.Data.Args[1]), Len: int(length)}}
	if n, err := unix.ProcessVMReadv(c.pid, local, remote, 0); err != nil || n < 2 {
		c.inet = err != nil // better a look too many than a connection too few
		return c
	}
	c.to, c.inet = parseAddress(raw[:length])
	return c
}

// parseAddress reads a struct sockaddr; inet is false for other families than IP.
func parseAddress(raw []byte) (to netip.AddrPort, inet bool) {
	if len(raw) < 2 {
		return netip.AddrPort{}, false
	}
	switch binary.NativeEndian.Uint16(raw) {
	case unix.AF_INET:
		if len(raw) < 8 {
			return netip.AddrPort{}, true
		}
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(raw[4:8])), binary.BigEndian.Uint16(raw[2:4])), true
	case unix.AF_INET6:
		if len(raw) < 24 {
			return netip.AddrPort{}, true
		}
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(raw[8:24])).Unmap(), binary.BigEndian.Uint16(raw[2:4])), true
	}
	return netip.AddrPort{}, false
}
