// SPDX-License-Identifier: Apache-2.0

package tcpsock

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The functions of this file work on a descriptor, so that they serve sockets of other processes (duplicates made by
// pidfd_getfd) as well as our own.

// SetPacingRate sets the most the kernel sends on a socket, in bit/s of payload, and returns what it now holds to. The
// option counts bytes per second and takes 64 bits (32 bits would wrap above 34 Gbit/s).
func SetPacingRate(fd int, rateBps int64) (int64, error) {
	if err := setPacing(fd, uint64(max(rateBps/8, 1))); err != nil {
		return 0, fmt.Errorf("SO_MAX_PACING_RATE %d bit/s: %w", rateBps, err)
	}
	got, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE)
	if err != nil {
		return 0, fmt.Errorf("read SO_MAX_PACING_RATE back: %w", err)
	}
	return int64(min(got, math.MaxInt64/8)) * 8, nil
}

// ClearPacingRate lets a socket send as fast as its congestion control likes.
func ClearPacingRate(fd int) error { return setPacing(fd, math.MaxUint64) }

func setPacing(fd int, bytesPerSecond uint64) error {
	var want [8]byte
	binary.NativeEndian.PutUint64(want[:], bytesPerSecond)
	return unix.SetsockoptString(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, string(want[:]))
}

// TCPInfo is what the kernel tells of a connection.
type TCPInfo = unix.TCPInfo

// Info asks for it.
func Info(fd int) (*TCPInfo, error) {
	return unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
}

// HasTimestamps says that every segment carries the option of 12 bytes.
func HasTimestamps(info *unix.TCPInfo) bool { return info.Options&1 != 0 }

// SetPriority sets SO_PRIORITY, by which HTB finds a class, and checks it. Values above 6 need CAP_NET_ADMIN.
func SetPriority(fd int, priority uint32) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PRIORITY, int(priority)); err != nil {
		return fmt.Errorf("SO_PRIORITY %#x: %w", priority, err)
	}
	got, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PRIORITY)
	if err != nil {
		return fmt.Errorf("read SO_PRIORITY back: %w", err)
	}
	if uint32(got) != priority {
		return fmt.Errorf("SO_PRIORITY is %#x after it was set to %#x", got, priority)
	}
	return nil
}

// SetSendBuffer bounds the memory of what is written and not yet acknowledged; the kernel counts its own structures too.
// It returns the bound that holds: at least some kilobytes, at most net.core.wmem_max unless CAP_NET_ADMIN is there.
func SetSendBuffer(fd int, bytes int) (int, error) {
	half := max(bytes/2, 1) // the kernel doubles it
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, half) != nil {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, half); err != nil {
			return 0, fmt.Errorf("SO_SNDBUF %d: %w", half, err)
		}
	}
	return SendBuffer(fd)
}

// SendBuffer is the bound on that memory as it is now.
func SendBuffer(fd int) (int, error) { return unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF) }

// FreeSendBuffer lets the kernel choose the bound again (Linux 5.14).
func FreeSendBuffer(fd int) error {
	held, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BUF_LOCK)
	if err != nil {
		return err
	}
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BUF_LOCK, held&^sndbufLock)
}

const sndbufLock = 1 // SOCK_SNDBUF_LOCK

// growSendBuffer makes room now where the kernel would wait for an acknowledgement, and leaves its tuning on: single bytes widen the
// congestion window but need no room, so that the first large writes after them, over 100 ms, once stopped for 60. It needs
// CAP_NET_ADMIN; without that nothing changes.
func growSendBuffer(fd, bytes int) error {
	held, err := SendBuffer(fd)
	if err != nil || held >= bytes || unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, (bytes+1)/2) != nil {
		return err
	}
	_ = FreeSendBuffer(fd) // before Linux 5.14 it stays as it is now
	return nil
}

// SendQueue is what was written and not yet acknowledged: its bytes, and the memory that they take.
func SendQueue(fd int) (bytes, memory int, err error) {
	if bytes, err = unix.IoctlGetInt(fd, unix.TIOCOUTQ); err != nil {
		return 0, 0, fmt.Errorf("SIOCOUTQ: %w", err)
	}
	var words [memInfoVars]uint32
	size := uint32(unsafe.Sizeof(words))
	_, _, failed := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&words)), uintptr(unsafe.Pointer(&size)), 0)
	if failed != 0 {
		return 0, 0, fmt.Errorf("SO_MEMINFO: %w", failed)
	}
	return bytes, int(words[memInfoWmemQueued]), nil
}

const (
	memInfoVars       = 9
	memInfoWmemQueued = 5 // SK_MEMINFO_WMEM_QUEUED
)

// WidenReceive lets a listening socket's connections begin with a window of so many bytes, as far as tcp_rmem allows.
// SO_RCVLOWAT makes the kernel enlarge the buffer without switching its own tuning off, as SO_RCVBUF would, and
// connections begin with the listener's buffer as their window; the option itself is put back to 1.
func WidenReceive(fd int, bytes int) error {
	for _, low := range []int{bytes, 1} {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVLOWAT, low); err != nil {
			return fmt.Errorf("SO_RCVLOWAT %d: %w", low, err)
		}
	}
	return nil
}

// TSORoundTripLog is the sysctl net.ipv4.tcp_tso_rtt_log: for how short a round trip the kernel sends more at a time (see
// pacing.Burst). Where it cannot be read it is the kernel's default, 9.
func TSORoundTripLog() int {
	raw, err := os.ReadFile("/proc/sys/net/ipv4/tcp_tso_rtt_log")
	if err != nil {
		return 9
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		return 9
	}
	return n
}
