// SPDX-License-Identifier: Apache-2.0

package mechanism

import (
	"golang.org/x/sys/unix"

	"bandwidthbroker/agents/internal/pacing"
	"bandwidthbroker/agents/internal/tcpsock"
)

// Window lets no more be in flight than rate x round-trip time.
const Window Name = "window"

// SendWindow is a pacing.Limiter that holds its own process's writer back instead of the kernel.
type SendWindow interface {
	// Room is how many bytes may follow what was written at an instant (µs), and when to ask again if they are too few.
	Room(now int64, b Budget) (bytes, askAt int64, err error)
}

// Budget is what a send window needs to know of the booking.
type Budget struct {
	RateBps int64                    // booked now
	InHand  int64                    // bytes that may be written by the booking, negative when it is overdrawn
	Ahead   int64                    // the most that InHand is
	Lately  func(micros int64) int64 // bytes booked in so many microseconds until now
}

// window lets no more be in flight than rate x round-trip time (RR-6205, section 2.1.2, "RTT"), or exactly: than was booked
// during the last round trip, so that a step of the rate neither bursts nor pauses. Acknowledgements clock the
// writes; the kernel sends them at once. What a round trip costs beside the smoothed RTT (delayed acknowledgements, our own
// waking up) is found by a controller, which keeps the account of the booking half used.
type window struct {
	socket  pacing.Socket
	control control
}

func newWindow(Means, string) pacing.Limiter { return &window{} }

// probeWindow: acknowledgements must be counted by the kernel.
func probeWindow(Means) error {
	return probe(func(fd int) error {
		_, err := tcpsock.Info(fd)
		if err == nil {
			_, _, err = tcpsock.SendQueue(fd)
		}
		return err
	})
}

// Attach takes one socket: what is in flight on several cannot be held by one writer.
func (w *window) Attach(s pacing.Socket) error {
	if w.socket == s {
		return nil
	}
	if w.socket != nil {
		return &Unavailable{Window, "one writer, one connection"}
	}
	w.socket = s
	return withFD(s, tcpsock.ClearPacingRate)
}

func (w *window) Detach(s pacing.Socket) {
	if w.socket == s {
		w.socket = nil
	}
}

func (w *window) SetRate(rateBps int64) (int64, error) { return rateBps, nil }

func (w *window) Balance(int64) error { return nil }

func (w *window) Close() error { return nil }

// Room asks the kernel how much is acknowledged.
func (w *window) Room(now int64, b Budget) (bytes, askAt int64, err error) {
	var queued, rtt, mss int64
	err = withFD(w.socket, func(fd int) error {
		info, err := tcpsock.Info(fd)
		if err != nil {
			return err
		}
		outstanding, err := unix.IoctlGetInt(fd, unix.TIOCOUTQ)
		queued, rtt, mss = int64(outstanding), int64(info.Rtt), int64(info.Snd_mss)
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	rtt = max(rtt, 1)
	bytes = w.control.size(now, rtt, mss, b) - queued
	return bytes, now + askAfter(rtt), nil
}

// askAfter is when acknowledgements are looked for again, in µs: often within a round trip, and no more often than a process
// can be woken.
func askAfter(rtt int64) int64 { return max(60, min(rtt/8, 1_000)) }

// control finds the factor by which rate x (RTT + waking) must be taken for the booked rate to come out: proportional and
// integral in the account of the booking, slow enough for the answer of a round trip.
type control struct {
	at       int64 // µs
	integral float64
}

const (
	// waking is what a writer needs to see an acknowledgement and follow it (measured: 50 to 200 µs).
	waking = 120 // µs
	// fastest is the frequency of the loop on a short path, slow beside the waking, in 1/s; on longer ones a quarter of 1/RTT. It must be
	// through before the account is full, 5 ms later: what a writer that wakes up late for some milliseconds could not use of it is lost.
	fastest              = 400.0
	perRTT               = 0.25
	minFactor, maxFactor = 0.25, 32.0
)

// size is the window in bytes: at least two segments, for one would wait for the delayed acknowledgement.
func (c *control) size(now, rtt, mss int64, b Budget) int64 {
	speed := min(fastest, perRTT*1e6/float64(rtt))
	nominal := float64(b.Lately(rtt + waking))
	// Seconds by which the account is less used than half; bounded by the account itself on both sides.
	var behind float64
	if b.RateBps > 0 {
		behind = float64(b.InHand-b.Ahead/2) * 8 / float64(b.RateBps)
	}
	if step := float64(now-c.at) / 1e6; c.at != 0 && step < 1 {
		c.integral += speed * speed * behind * step
		c.integral = max(minFactor-1, min(c.integral, maxFactor-1))
	}
	c.at = now
	factor := max(minFactor, min(1+c.integral+2*speed*behind, maxFactor))
	return max(int64(nominal*factor), 2*mss)
}
