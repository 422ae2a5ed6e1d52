// SPDX-License-Identifier: Apache-2.0

package mechanism

import (
	"errors"
	"math"
	"slices"

	"golang.org/x/sys/unix"

	"bandwidthbroker/agents/internal/pacing"
	"bandwidthbroker/agents/internal/schedule"
	"bandwidthbroker/agents/internal/tcpsock"
)

// buffer is `window` for sockets of another process: SO_SNDBUF bounds what is written and not yet acknowledged, and the
// writer waits in the kernel. The bound counts memory, and a waiting writer is woken when a third is free, so that the
// window is coarse: it is what may be in flight, with some room, brought there by what really is acknowledged. A window has some packets at
// least, which on a short path is more than the rate carries in a round trip. Beneath it the kernel paces each socket to its share.
type buffer struct {
	rateBps int64
	clamps  []*clamp
	at      int64
	tsoLog  int // see pacing.Burst
}

type clamp struct {
	socket pacing.Socket
	share
	factor float64 // window = factor x rate x RTT
	sent   uint64  // bytes, when last looked at
	acked  int64
	since  int64 // µs: when acked was taken
	held   int   // bytes of SO_SNDBUF
	net    int64 // bit/s of SO_MAX_PACING_RATE; 0 before it was set
}

// late is by how much a writer may be woken too late for the window to stay full.
const late int64 = 5_000 // µs

func newBuffer(Means, string) pacing.Limiter { return &buffer{tsoLog: tcpsock.TSORoundTripLog()} }

func (b *buffer) index(s pacing.Socket) int {
	return slices.IndexFunc(b.clamps, func(c *clamp) bool { return c.socket == s })
}

func (b *buffer) Attach(s pacing.Socket) error {
	if b.index(s) >= 0 {
		return nil
	}
	made := &clamp{socket: s, factor: 1}
	if err := inspect(s, func(info *unix.TCPInfo) { made.sent = info.Bytes_sent }); err != nil {
		return err
	}
	b.clamps = append(b.clamps, made)
	return b.apply()
}

func (b *buffer) Detach(s pacing.Socket) {
	if i := b.index(s); i >= 0 {
		b.clamps = slices.Delete(b.clamps, i, i+1)
		_ = b.apply()
	}
}

func (b *buffer) SetRate(rateBps int64) (int64, error) {
	b.rateBps = rateBps
	return rateBps, b.apply()
}

// Balance compares what was acknowledged with each socket's share.
func (b *buffer) Balance(now int64) error {
	before := b.at
	b.at = now
	for _, c := range b.clamps {
		err := inspect(c.socket, func(info *unix.TCPInfo) {
			acked := tcpsock.Acked(info)
			if c.since == 0 {
				c.since, c.acked = now, acked
			}
			if span := now - c.since; span >= max(100_000, 2*int64(info.Rtt)) {
				c.learn(acked-c.acked, span)
				c.since, c.acked = now, acked
			}
			if before != 0 && now > before {
				c.saw(int64(info.Bytes_sent-min(c.sent, info.Bytes_sent)), now-before)
			}
			c.sent = info.Bytes_sent
		})
		if err != nil {
			return err
		}
	}
	return b.apply()
}

// learn moves the window half of the way to where the rate would have come out.
func (c *clamp) learn(acked, micros int64) {
	booked := schedule.Volume(c.rateBps, micros)
	if booked == 0 || acked == 0 {
		return
	}
	ratio := float64(booked) / float64(acked)
	c.factor = max(0.1, min(c.factor*math.Sqrt(max(0.5, min(ratio, 2))), 16))
}

func (b *buffer) apply() error {
	shares := make([]*share, len(b.clamps))
	for i, c := range b.clamps {
		shares[i] = &c.share
	}
	divide(b.rateBps, shares)
	var failures []error
	for _, c := range b.clamps {
		failures = append(failures, c.apply(b.tsoLog))
	}
	return errors.Join(failures...)
}

func (c *clamp) apply(tsoLog int) error {
	return withFD(c.socket, func(fd int) error {
		info, err := tcpsock.Info(fd)
		if err != nil {
			return err
		}
		net := c.rateBps
		if net == 0 {
			net = minBps(info, tsoLog) // what leaves at less keeps the kernel from sending long after the rate is raised
		}
		if net != c.net {
			if _, err := tcpsock.SetPacingRate(fd, net); err != nil {
				return err
			}
			c.net = net
		}
		bytes, memory, err := tcpsock.SendQueue(fd)
		if err != nil {
			return err
		}
		per := 1.3 // memory for a byte in large writes, until there is something to measure
		if bytes > int(2*info.Snd_mss) {
			per = float64(memory) / float64(bytes)
		}
		// Half of the last sixth, on average, is free and not yet filled; and a writer that is woken late must find something in flight.
		want := int(float64(schedule.Volume(c.rateBps, int64(info.Rtt)+late)) * c.factor * per * 7 / 6)
		want = max(want, int(4*info.Snd_mss))
		if c.held != 0 && math.Abs(float64(want-c.held)) < float64(c.held)/50 {
			return nil
		}
		_, err = tcpsock.SetSendBuffer(fd, want)
		c.held = want
		return err
	})
}

// Close lets the kernel choose its buffers again.
func (b *buffer) Close() error {
	for _, c := range b.clamps {
		_ = withFD(c.socket, tcpsock.FreeSendBuffer)
		_ = withFD(c.socket, tcpsock.ClearPacingRate)
	}
	b.clamps = nil
	return nil
}
