// SPDX-License-Identifier: Apache-2.0

// Package tcpsock sets what a paced TCP connection needs from the Linux kernel: the pacing rate, a congestion control
// that does not pace by its own mind, little unsent data, and writes that stay packets of their own.
package tcpsock

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
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

// Writable waits until the kernel takes more, but no longer than patience; it answers whether it does. Whoever asks before
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

// SetPacing sets the most the kernel sends on this connection, in bit/s of payload, and answers what it now holds to.
// The option counts bytes per second and takes 64 bits (32 bits would wrap above 34 Gbit/s).
func (c *Conn) SetPacing(rateBps int64) (int64, error) {
	var held int64
	err := c.control(func(fd int) error {
		var want [8]byte
		binary.NativeEndian.PutUint64(want[:], uint64(max(rateBps/8, 1)))
		if err := unix.SetsockoptString(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, string(want[:])); err != nil {
			return fmt.Errorf("SO_MAX_PACING_RATE %d bit/s: %w", rateBps, err)
		}
		got, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE)
		if err != nil {
			return fmt.Errorf("read SO_MAX_PACING_RATE back: %w", err)
		}
		held = int64(got) * 8
		return nil
	})
	return held, err
}

// SetNotSentLowWater bounds the unsent bytes that the kernel takes.
func (c *Conn) SetNotSentLowWater(n int) error {
	return c.control(func(fd int) error {
		return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, n)
	})
}

// ChooseCongestionControl takes the first of the names that this process may use, and answers which one holds.
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

// InFlight is how many bytes (framing included) were written and not yet acknowledged by the peer's kernel.
func (c *Conn) InFlight() (int64, error) {
	written := c.total.Load()
	acked, err := c.acked()
	return max(0, written-acked), err
}

// acked leaves out the SYN, which the kernel counts.
func (c *Conn) acked() (int64, error) {
	var acked int64
	err := c.control(func(fd int) error {
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err == nil {
			acked = max(0, int64(info.Bytes_acked)-1)
		}
		return err
	})
	return acked, err
}

// KeepAlive lets the kernel find out about a peer that is gone while nothing is sent.
func KeepAlive(c *net.TCPConn) error {
	return c.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 4})
}
