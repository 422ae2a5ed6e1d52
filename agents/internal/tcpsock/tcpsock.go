// SPDX-License-Identifier: Apache-2.0

// Package tcpsock sets what a paced TCP connection needs from the Linux kernel: the pacing rate, a congestion control
// that does not pace by its own mind, little unsent data, and writes that stay packets of their own.
package tcpsock

import (
	"errors"
	"math"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Conn is a TCP connection whose writes keep their boundaries on the way to the wire.
type Conn struct {
	*net.TCPConn
	raw syscall.RawConn

	// The pending write. They are fields, and attempt is made once, so that a write allocates nothing.
	pending []byte
	total   atomic.Int64
	wrote   int
	failed  error
	attempt func(fd uintptr) bool
}

// Wrap takes over a TCP connection.
func Wrap(c *net.TCPConn) (*Conn, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	made := &Conn{TCPConn: c, raw: raw}
	made.attempt = made.try
	return made, nil
}

// Write sends p with MSG_EOR: the kernel does not merge it with the next write into one large segment, so the size of a
// burst is the size of a write, at any rate. One writer at a time.
func (c *Conn) Write(p []byte) (int, error) {
	c.pending, c.wrote, c.failed = p, 0, nil
	err := c.raw.Write(c.attempt)
	c.pending = nil
	c.total.Add(int64(c.wrote))
	if err == nil {
		err = c.failed
	}
	return c.wrote, err
}

func (c *Conn) try(fd uintptr) bool {
	for len(c.pending) > 0 {
		n, err := unix.SendmsgN(int(fd), c.pending, nil, nil, unix.MSG_EOR|unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
		switch err {
		case nil:
			c.wrote += n
			c.pending = c.pending[n:]
		case unix.EINTR:
		case unix.EAGAIN:
			return false // the runtime waits until the socket is writable
		default:
			c.failed = err
			return true
		}
	}
	return true
}

// Writable waits until the kernel takes more, but no longer than patience; it returns whether it does. A caller that asks before
// a write is not held up by a queue that drains at a rate that was lowered meanwhile.
func (c *Conn) Writable(patience time.Duration) (bool, error) {
	var ready bool
	if err := c.control(func(fd int) (err error) { ready, err = writable(fd); return err }); ready || err != nil {
		return ready, err
	}
	if err := c.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return false, err
	}
	var failed error
	err := c.raw.Write(func(fd uintptr) bool {
		ready, failed = writable(int(fd))
		return ready || failed != nil
	})
	if cleared := c.SetWriteDeadline(time.Time{}); err == nil {
		err = cleared
	}
	switch {
	case failed != nil:
		return false, failed
	case errors.Is(err, os.ErrDeadlineExceeded):
		return false, nil
	default:
		return ready, err
	}
}

func writable(fd int) (bool, error) {
	polled := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	_, err := unix.Poll(polled, 0)
	if errors.Is(err, unix.EINTR) {
		return false, nil
	}
	return polled[0].Revents != 0, err
}

func (c *Conn) control(f func(fd int) error) error {
	var failed error
	if err := c.raw.Control(func(fd uintptr) { failed = f(int(fd)) }); err != nil {
		return err
	}
	return failed
}

// Control calls f with the descriptor. With Local and Remote it makes a Conn a socket that a mechanism can hold.
func (c *Conn) Control(f func(fd uintptr)) error { return c.raw.Control(f) }

// Local is this end's address.
func (c *Conn) Local() netip.AddrPort { return addrPort(c.LocalAddr()) }

// Remote is the other end's address.
func (c *Conn) Remote() netip.AddrPort { return addrPort(c.RemoteAddr()) }

func addrPort(a net.Addr) netip.AddrPort {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	is := tcp.AddrPort()
	return netip.AddrPortFrom(is.Addr().Unmap(), is.Port())
}

// SetNotSentLowWater bounds the unsent bytes that the kernel takes.
func (c *Conn) SetNotSentLowWater(n int) error {
	return c.control(func(fd int) error {
		return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, n)
	})
}

// ChooseCongestionControl takes the first of the names that this process may use, and returns which one holds.
func (c *Conn) ChooseCongestionControl(names ...string) (string, error) {
	var held string
	err := c.control(func(fd int) error {
		for _, name := range names {
			if unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name) == nil {
				break
			}
		}
		var err error
		held, err = unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
		return err
	})
	return held, err
}

// Info is what the kernel tells of the connection.
func (c *Conn) Info() (info *unix.TCPInfo, err error) {
	err = c.control(func(fd int) error { info, err = Info(fd); return err })
	return info, err
}

// Written is how many bytes (framing included) were handed to the kernel.
func (c *Conn) Written() int64 { return c.total.Load() }

// AcknowledgeAtOnce has the kernel acknowledge what it has received now, instead of waiting up to 40 ms for more to come.
func AcknowledgeAtOnce(c *net.TCPConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1) })
	return errors.Join(err, failed)
}

// SetReadLowWater has the kernel wake a reader only when so many bytes have come, or the last (SO_RCVLOWAT).
func SetReadLowWater(c *net.TCPConn, bytes int) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVLOWAT, bytes) })
	return errors.Join(err, failed)
}

// InFlight is how many bytes (framing included) were written and not yet acknowledged by the peer's kernel.
func (c *Conn) InFlight() (int64, error) {
	written := c.total.Load()
	info, err := c.Info()
	if err != nil {
		return 0, err
	}
	return max(0, written-Acked(info)), nil
}

// Acked is how many bytes the peer's kernel has acknowledged, without the SYN, which the kernel counts.
func Acked(info *unix.TCPInfo) int64 { return max(0, int64(info.Bytes_acked)-1) }

// Need makes room for so many bytes written and not yet acknowledged where the kernel's own tuning would stop earlier
// (tcp_wmem), or come to it only with acknowledgements. It returns what there is room for: less, when neither net.core.wmem_max
// nor CAP_NET_ADMIN allow more.
func (c *Conn) Need(bytes int64) (room int64, err error) {
	err = c.control(func(fd int) error {
		most := tunedSendBuffer()
		if room = most / memoryPerByte; room >= bytes {
			return growSendBuffer(fd, int(bytes*memoryPerByte))
		}
		held, err := SetSendBuffer(fd, int(min(bytes*memoryPerByte, math.MaxInt32)))
		if int64(held) < most { // the limit of SO_SNDBUF is below what the kernel would have tuned it to
			return errors.Join(err, FreeSendBuffer(fd))
		}
		room = int64(held) / memoryPerByte
		return err
	})
	return room, err
}

// memoryPerByte is what the kernel counts for a byte in large writes, at most: a page fragment may be half used.
const memoryPerByte = 2

// tunedSendBuffer is the third number of tcp_wmem.
func tunedSendBuffer() int64 {
	raw, err := os.ReadFile("/proc/sys/net/ipv4/tcp_wmem")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(raw))
	if len(fields) != 3 {
		return 0
	}
	most, _ := strconv.ParseInt(fields[2], 10, 64)
	return most
}

// KeepAlive lets the kernel find out about a peer that is gone while nothing is sent.
func KeepAlive(c *net.TCPConn) error {
	return c.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 4})
}
