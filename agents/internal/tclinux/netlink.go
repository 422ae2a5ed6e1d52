// SPDX-License-Identifier: Apache-2.0

package tclinux

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// connection talks rtnetlink (rtnetlink(7)). It stays with the network namespace in which it was opened.
type connection struct {
	mu       sync.Mutex
	fd       int
	sequence uint32
	buffer   []byte
}

const (
	// patience: the kernel answers at once, or something is wrong that waiting does not cure.
	patience = 5 * time.Second
	// received at once; a dump's part is at most 32 KiB (netlink(7)).
	bufferSize = 64 << 10
	// dumpTries: a dump during which something changed is asked for again.
	dumpTries = 8
)

var errInterrupted = errors.New("the dump was interrupted by a change")

func connect() (*connection, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("netlink socket: %w", err)
	}
	c := &connection{fd: fd, buffer: make([]byte, bufferSize)}
	// The texts of the kernel say more than its error numbers; old kernels have none.
	_ = unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_EXT_ACK, 1)
	_ = unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_CAP_ACK, 1)
	timeout := unix.NsecToTimeval(int64(patience))
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout)); err != nil {
		return nil, errors.Join(fmt.Errorf("netlink socket: %w", err), c.close())
	}
	return c, nil
}

func (c *connection) close() error { return unix.Close(c.fd) }

// ask sends one request and returns the bodies of what the kernel sends back.
func (c *connection) ask(kind, flags uint16, body []byte) ([][]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for try := 0; ; try++ {
		bodies, err := c.exchange(kind, flags, body)
		if !errors.Is(err, errInterrupted) || try == dumpTries {
			return bodies, err
		}
	}
}

func (c *connection) exchange(kind, flags uint16, body []byte) ([][]byte, error) {
	c.sequence++
	if flags&unix.NLM_F_DUMP != unix.NLM_F_DUMP {
		flags |= unix.NLM_F_ACK // so that every answer has an end
	}
	message := make([]byte, unix.NLMSG_HDRLEN, unix.NLMSG_HDRLEN+len(body))
	binary.NativeEndian.PutUint32(message, uint32(unix.NLMSG_HDRLEN+len(body)))
	binary.NativeEndian.PutUint16(message[4:], kind)
	binary.NativeEndian.PutUint16(message[6:], flags|unix.NLM_F_REQUEST)
	binary.NativeEndian.PutUint32(message[8:], c.sequence)
	message = append(message, body...)
	if err := unix.Sendto(c.fd, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, fmt.Errorf("netlink: send: %w", err)
	}
	var answer answer
	for !answer.complete {
		n, _, err := unix.Recvfrom(c.fd, c.buffer, 0)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return nil, fmt.Errorf("netlink: the kernel did not answer within %s", patience)
		case err != nil:
			return nil, fmt.Errorf("netlink: receive: %w", err)
		}
		if err := answer.take(c.buffer[:n], c.sequence); err != nil {
			return nil, err
		}
	}
	if answer.interrupted {
		return nil, errInterrupted
	}
	return answer.bodies, nil
}

// answer is what has come so far.
type answer struct {
	bodies      [][]byte
	interrupted bool
	complete    bool
}

// take reads the messages of one datagram. What belongs to an earlier request, one that timed out, is passed over.
func (a *answer) take(datagram []byte, sequence uint32) error {
	for len(datagram) >= unix.NLMSG_HDRLEN {
		length := int(binary.NativeEndian.Uint32(datagram))
		if length < unix.NLMSG_HDRLEN || length > len(datagram) {
			return fmt.Errorf("netlink: a message of %d bytes in %d", length, len(datagram))
		}
		kind, flags := binary.NativeEndian.Uint16(datagram[4:]), binary.NativeEndian.Uint16(datagram[6:])
		mine := binary.NativeEndian.Uint32(datagram[8:]) == sequence
		body := datagram[unix.NLMSG_HDRLEN:length]
		datagram = datagram[min(align(length), len(datagram)):]
		if !mine {
			continue
		}
		a.interrupted = a.interrupted || flags&unix.NLM_F_DUMP_INTR != 0
		switch kind {
		case unix.NLMSG_ERROR, unix.NLMSG_DONE:
			a.complete = true
			if err := acknowledged(body, flags, kind == unix.NLMSG_DONE); err != nil {
				return err
			}
		case unix.NLMSG_NOOP, unix.NLMSG_OVERRUN:
		default:
			a.bodies = append(a.bodies, append([]byte(nil), body...))
		}
	}
	return nil
}

// acknowledged is the error in an acknowledgement, with the kernel's own words where it has some.
func acknowledged(body []byte, flags uint16, done bool) error {
	if len(body) < 4 {
		if done {
			return nil
		}
		return errors.New("netlink: an acknowledgement without a code")
	}
	code := int32(binary.NativeEndian.Uint32(body))
	if code == 0 {
		return nil
	}
	// A positive code, or the least, has no error number.
	errno := unix.Errno(-int64(code))
	if flags&unix.NLM_F_ACK_TLVS == 0 {
		return errno
	}
	rest := body[4:]
	if !done {
		rest = rest[min(unix.NLMSG_HDRLEN, len(rest)):]
	}
	for kind, value := range attributes(rest) {
		if kind == unix.NLMSGERR_ATTR_MSG {
			return fmt.Errorf("%w (%s)", errno, text(value))
		}
	}
	return errno
}

// typeMask leaves out the two flags of an attribute's type (NLA_TYPE_MASK).
const typeMask = 0x3fff

func align(n int) int { return (n + 3) &^ 3 }

// attributes walks over attributes; what is cut off is left out.
func attributes(b []byte) func(yield func(kind uint16, value []byte) bool) {
	return func(yield func(uint16, []byte) bool) {
		for len(b) >= 4 {
			length := int(binary.NativeEndian.Uint16(b))
			if length < 4 || length > len(b) {
				return
			}
			if !yield(binary.NativeEndian.Uint16(b[2:])&typeMask, b[4:length]) {
				return
			}
			b = b[min(align(length), len(b)):]
		}
	}
}

func attribute(b []byte, kind uint16, value []byte) []byte {
	b = binary.NativeEndian.AppendUint16(b, uint16(4+len(value)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, value...)
	return append(b, make([]byte, align(len(value))-len(value))...)
}

func text(value []byte) string {
	for i, c := range value {
		if c == 0 {
			return string(value[:i])
		}
	}
	return string(value)
}

func terminated(s string) []byte { return append([]byte(s), 0) }
