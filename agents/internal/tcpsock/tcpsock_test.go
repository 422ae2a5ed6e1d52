// SPDX-License-Identifier: Apache-2.0

package tcpsock

import (
	"context"
	"io"
	"math"
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// connected is a pair of connections over the loopback; control prepares the listener.
func connected(t *testing.T, control func(fd int)) (sender *Conn, receiver *net.TCPConn) {
	t.Helper()
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) { control(int(fd)) })
	}}
	config.SetMultipathTCP(false)
	l, err := config.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dialed, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if sender, err = Wrap(dialed.(*net.TCPConn)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sender.Close(); _ = accepted.Close() })
	return sender, accepted.(*net.TCPConn)
}

// Of a connection that begins with a narrow window a sender who knows its rate has nothing.
func TestTheReceiveWindowIsWideFromTheStart(t *testing.T) {
	window := func(control func(fd int)) uint32 {
		sender, receiver := connected(t, control)
		// The first segment after the handshake carries the scaled window.
		if _, err := receiver.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(sender, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		info, err := sender.Info()
		if err != nil {
			t.Fatal(err)
		}
		return info.Snd_wnd
	}
	narrow := window(func(int) {})
	wide := window(func(fd int) {
		if err := WidenReceive(fd, math.MaxInt32); err != nil {
			t.Fatal(err)
		}
	})
	t.Logf("the sender may have %d bytes in flight at first, %d before", wide, narrow)
	if wide < 8*narrow || wide < 1<<20 {
		t.Errorf("a window of %d bytes, %d without", wide, narrow)
	}
}

func TestPacingIsReadBack(t *testing.T) {
	c, _ := connected(t, func(int) {})
	err := c.control(func(fd int) error {
		for _, want := range []int64{8, 1_000_000, 80_000_000_000} {
			if held, err := SetPacingRate(fd, want); err != nil || held != want {
				t.Errorf("%d bit/s became %d, %v", want, held, err)
			}
		}
		if err := ClearPacingRate(fd); err != nil {
			return err
		}
		raw, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE)
		if raw != math.MaxUint64 {
			t.Errorf("cleared, it is %d", raw)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRoomForWhatIsInFlight(t *testing.T) {
	c, _ := connected(t, func(int) {})
	const little = 2_000_000
	if room, err := c.Need(little); err != nil || room < little {
		t.Fatalf("room for %d bytes, %v", room, err)
	}
	locked := func() (locked bool) {
		_ = c.control(func(fd int) error {
			held, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BUF_LOCK)
			locked = held&sndbufLock != 0
			return err
		})
		return locked
	}
	if locked() {
		t.Error("the kernel's own tuning was switched off without need")
	}
	if err := c.control(func(fd int) error {
		held, err := SendBuffer(fd)
		if unix.Geteuid() == 0 && held < little*memoryPerByte {
			t.Errorf("the buffer is %d bytes: %d are not taken at once", held, little)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	need := tunedSendBuffer() * 2
	room, err := c.Need(need)
	if err != nil {
		t.Fatal(err)
	}
	if unix.Geteuid() != 0 {
		t.Skipf("SKIPPED, SO_SNDBUFFORCE was not tried: it needs root; room for %d of %d bytes", room, need)
	}
	if room < need || !locked() {
		t.Errorf("room for %d of %d bytes", room, need)
	}
	_ = c.control(func(fd int) error { return FreeSendBuffer(fd) })
	if locked() {
		t.Error("the buffer could not be given back to the kernel")
	}
}

// Of two who answer each other the kernel holds its acknowledgements back, up to 40 ms, for an answer to carry them.
func TestAcknowledgedAtOnce(t *testing.T) {
	sender, receiver := connected(t, func(int) {})
	exchange := func(from, to net.Conn) {
		if _, err := from.Write(make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(to, make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
	}
	inFlight := func() uint32 {
		info, err := sender.Info()
		if err != nil {
			t.Fatal(err)
		}
		return info.Unacked
	}
	for range 100 {
		exchange(sender, receiver)
		exchange(receiver, sender)
		exchange(sender, receiver)
		if inFlight() == 0 {
			continue // this process stood still for 40 ms
		}
		if err := AcknowledgeAtOnce(receiver); err != nil {
			t.Fatal(err)
		}
		if left := inFlight(); left != 0 {
			t.Errorf("%d packets are not acknowledged", left)
		}
		return
	}
	t.Error("the kernel acknowledged everything by itself: nothing is shown")
}

func TestTheSendQueueIsCounted(t *testing.T) {
	c, receiver := connected(t, func(int) {})
	_ = receiver.SetReadBuffer(4096) // what does not fit stays with the sender
	_ = c.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
	_, _ = c.Write(make([]byte, 8<<20))
	err := c.control(func(fd int) error {
		bytes, memory, err := SendQueue(fd)
		if bytes <= 0 || memory < bytes {
			t.Errorf("%d bytes wait in %d bytes of memory", bytes, memory)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if inFlight, err := c.InFlight(); err != nil || inFlight <= 0 {
		t.Errorf("%d bytes in flight, %v", inFlight, err)
	}
}
