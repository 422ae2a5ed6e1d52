// SPDX-License-Identifier: Apache-2.0

package flows

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrNotTCP says that a descriptor is something else than a TCP connection over IP.
var ErrNotTCP = errors.New("not a TCP socket")

// The states of a connection that matter here, as TCP_INFO numbers them.
const (
	Established = 1
	SynSent     = 2
	SynReceived = 3
	FinWait1    = 4
	CloseWait   = 8
	LastAck     = 9
	Listen      = 10
	Closing     = 11
)

// Socket is a duplicate of a TCP socket of another process. While it is held the connection stays open, even when the
// process has closed its own descriptor: its holder must Shut it down then.
type Socket struct {
	mu    sync.Mutex
	fd    int // -1 when closed
	inode uint64
}

// Grab duplicates a descriptor of another process of the same user (pidfd_getfd, Linux 5.6). ErrNotTCP: it is no TCP
// socket. pid may be that of a thread.
func Grab(pid, descriptor int) (*Socket, error) {
	pidfd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		// It is a thread: its process has the same descriptors.
		if leader, ok := leaderOf(pid); ok {
			pidfd, err = unix.PidfdOpen(leader, 0)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("pidfd_open %d: %w", pid, err)
	}
	defer unix.Close(pidfd)
	fd, err := unix.PidfdGetfd(pidfd, descriptor, 0)
	if err != nil {
		return nil, fmt.Errorf("pidfd_getfd %d of process %d: %w", descriptor, pid, err)
	}
	s := &Socket{fd: fd}
	if err := s.check(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Adopt takes over a descriptor of this process, received from another one. On an error it is closed.
func Adopt(fd int) (*Socket, error) {
	s := &Socket{fd: fd}
	if err := s.check(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Socket) check() error {
	domain, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil || (domain != unix.AF_INET && domain != unix.AF_INET6) {
		return ErrNotTCP
	}
	if protocol, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_PROTOCOL); err != nil || protocol != unix.IPPROTO_TCP {
		return ErrNotTCP
	}
	var stat unix.Stat_t
	if err := unix.Fstat(s.fd, &stat); err != nil {
		return err
	}
	s.inode = stat.Ino
	return nil
}

// Inode identifies the socket, whichever process has it open.
func (s *Socket) Inode() uint64 { return s.inode }

// Control calls f with the descriptor, which is valid only inside of f. It implements mechanism.Socket.
func (s *Socket) Control(f func(fd uintptr)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fd < 0 {
		return os.ErrClosed
	}
	f(uintptr(s.fd))
	return nil
}

func (s *Socket) control(f func(fd int) error) error {
	var failed error
	if err := s.Control(func(fd uintptr) { failed = f(int(fd)) }); err != nil {
		return err
	}
	return failed
}

// Local is the address at this end; zero before it is known.
func (s *Socket) Local() netip.AddrPort { return s.address(unix.Getsockname) }

// Remote is the address at the other end; zero before it is known.
func (s *Socket) Remote() netip.AddrPort { return s.address(unix.Getpeername) }

func (s *Socket) address(of func(fd int) (unix.Sockaddr, error)) netip.AddrPort {
	var found netip.AddrPort
	_ = s.control(func(fd int) error {
		address, err := of(fd)
		switch a := address.(type) {
		case *unix.SockaddrInet4:
			found = netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
		case *unix.SockaddrInet6:
			found = netip.AddrPortFrom(netip.AddrFrom16(a.Addr).Unmap(), uint16(a.Port))
		}
		return err
	})
	return found
}

// Counts is what the kernel knows of a connection.
type Counts struct {
	State   int
	Sent    int64 // bytes of payload that left, each counted once however often it was sent
	Acked   int64 // of these, confirmed by the other end's kernel
	Unsent  int64 // bytes that wait for their time, or for room in the window
	Full    bool  // as much is under way as the network is trusted with (congestion window)
	Pacing  int64 // bit/s that the next packet is paced at; a cap that was raised shows here only after an acknowledgement
	Closed  int64 // µs for which the other end's window was closed, in all
	MinRTT  int64 // µs; 0: not known yet
	Retrans int64 // bytes sent again
	Segment int64 // bytes of payload in a full packet
}

// Counts asks the kernel (TCP_INFO). They stay exact after the process has closed its own descriptor.
func (s *Socket) Counts() (Counts, error) {
	var c Counts
	err := s.control(func(fd int) error {
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return err
		}
		c.State, c.Unsent, c.Retrans = int(info.State), int64(info.Notsent_bytes), int64(info.Bytes_retrans)
		c.Sent = max(0, int64(info.Bytes_sent)-c.Retrans)
		// bytes_acked counts the SYN and the FIN, which are no payload.
		c.Acked = min(int64(info.Bytes_acked), c.Sent)
		c.Segment = int64(info.Snd_mss)
		c.Pacing = int64(min(info.Pacing_rate, 1<<58)) * 8
		c.Full, c.Closed = info.Unacked >= info.Snd_cwnd, int64(info.Rwnd_limited)
		if info.Min_rtt != ^uint32(0) {
			c.MinRTT = int64(info.Min_rtt)
		}
		return nil
	})
	return c, err
}

// Shut does for the connection what the process meant when it closed its last descriptor: the FIN goes out behind what
// is still to be sent. Where the process had asked for an abort (SO_LINGER with time 0) nothing more is sent.
func (s *Socket) Shut() error {
	return s.control(func(fd int) error {
		if on, seconds, err := linger(fd); err == nil && on && seconds == 0 {
			return unix.ECONNABORTED
		}
		return unix.Shutdown(fd, unix.SHUT_WR)
	})
}

// Close gives the duplicate up. The connection goes on where the process still has it open.
func (s *Socket) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fd >= 0 {
		_ = unix.Close(s.fd)
		s.fd = -1
	}
}

// AvoidBBR gives a connection that has not begun another congestion control than bbr, which halts for 200 ms every ten
// seconds and paces by its own mind; it returns what holds now. Any other choice is left alone.
func (s *Socket) AvoidBBR() (string, error) {
	var held string
	err := s.control(func(fd int) (err error) {
		if held, err = unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION); err != nil || held != "bbr" {
			return err
		}
		for _, name := range []string{"cubic", "reno"} {
			if unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name) == nil {
				held = name
				return nil
			}
		}
		return nil
	})
	return held, err
}

// ErrSlow says that a connection takes a higher rate over only after its next acknowledgement.
var ErrSlow = errors.New("this process may not use bbr")

// Quicken has a higher cap take effect although nothing is on its way that could be acknowledged. The kernel works its
// pacing rate out anew when an acknowledgement comes, or when bbr begins; so bbr begins, and ends at once. ErrSlow where
// that is not allowed (net.ipv4.tcp_allowed_congestion_control).
func (s *Socket) Quicken() error {
	return s.control(func(fd int) error {
		before, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
		if err != nil || before == "bbr" {
			return err
		}
		if unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, "bbr") != nil {
			return ErrSlow
		}
		return unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, before)
	})
}

func leaderOf(thread int) (int, bool) {
	return readNumber(fmt.Sprintf("/proc/%d/status", thread), "Tgid:")
}

// linger reads SO_LINGER; x/sys has no getter for it.
func linger(fd int) (on bool, seconds int32, err error) {
	raw, err := syscall.GetsockoptIPv6Mreq(fd, unix.SOL_SOCKET, unix.SO_LINGER) // 20 bytes of room for the 8 that it takes
	if err != nil {
		return false, 0, err
	}
	return binary.NativeEndian.Uint32(raw.Multiaddr[0:4]) != 0, int32(binary.NativeEndian.Uint32(raw.Multiaddr[4:8])), nil
}
