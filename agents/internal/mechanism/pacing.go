// SPDX-License-Identifier: Apache-2.0

package mechanism

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"bandwidthbroker/agents/internal/pacing"
	"bandwidthbroker/agents/internal/tcpsock"
)

// pacedSockets holds sockets by SO_MAX_PACING_RATE: the kernel gives every packet its time (RR-6205, section 2.1.4, "packet
// clock"). It counts payload. Several sockets share the rate.
type pacedSockets struct {
	rateBps int64 // unset: sockets stay as they are
	streams []*stream
	at      int64 // of the last Balance, µs; 0 before the first
	allowed func(pacing.Socket) error
	tsoLog  int // see pacing.Burst
}

// unset is the rate of a limiter that has not been told one.
const unset int64 = -1

// stream is one socket of several.
type stream struct {
	socket pacing.Socket
	share
	sent    uint64 // bytes, when last looked at
	heldBps int64  // as the kernel said; -1 before it was asked
}

// Pacing is SO_MAX_PACING_RATE: every packet has its time. It needs no privilege and no qdisc.
const Pacing Name = "pacing"

// NewPacing makes the limiter that needs neither privileges nor a qdisc. It leaves sockets as they are until it is told a
// rate: a low one for an instant would set a timer in the kernel that a later rate does not shorten.
func NewPacing() pacing.Limiter {
	return &pacedSockets{rateBps: unset, tsoLog: tcpsock.TSORoundTripLog()}
}

// newPacing holds its sockets to the least that the kernel can until it is told a rate.
func newPacing(Means, string) pacing.Limiter { return &pacedSockets{tsoLog: tcpsock.TSORoundTripLog()} }

// probePacing sets a rate beyond 32 bits and reads it back.
func probePacing(Means) error {
	return probe(func(fd int) error {
		const want = 80_000_000_000
		held, err := tcpsock.SetPacingRate(fd, want)
		switch {
		case errors.Is(err, unix.ENOPROTOOPT):
			return errors.New("the kernel has no SO_MAX_PACING_RATE (Linux 3.13)")
		case err != nil:
			return err
		case held != want:
			return fmt.Errorf("the kernel keeps pacing rates in 32 bits (before Linux 4.20): %d bit/s became %d", int64(want), held)
		}
		return nil
	})
}

// Attach makes room before it lets the new socket in, so that the sum is never above the rate.
func (p *pacedSockets) Attach(s pacing.Socket) error {
	if p.index(s) >= 0 {
		return nil
	}
	if p.allowed != nil {
		if err := p.allowed(s); err != nil {
			return err
		}
	}
	made := &stream{socket: s, heldBps: -1}
	if err := inspect(s, func(info *unix.TCPInfo) { made.sent, made.minBps = info.Bytes_sent, minBps(info, p.tsoLog) }); err != nil {
		return err
	}
	p.streams = append(p.streams, made)
	if _, err := p.apply(); err != nil {
		p.streams = slices.DeleteFunc(p.streams, func(t *stream) bool { return t == made })
		return err
	}
	return nil
}

func (p *pacedSockets) Detach(s pacing.Socket) {
	if i := p.index(s); i >= 0 {
		p.streams = slices.Delete(p.streams, i, i+1)
		_, _ = p.apply()
	}
}

func (p *pacedSockets) index(s pacing.Socket) int {
	return slices.IndexFunc(p.streams, func(t *stream) bool { return t.socket == s })
}

func (p *pacedSockets) SetRate(rateBps int64) (int64, error) {
	p.rateBps = rateBps
	return p.apply()
}

// Balance moves what is not used to where it is.
func (p *pacedSockets) Balance(now int64) error {
	before := p.at
	p.at = now
	if len(p.streams) < 2 {
		return nil
	}
	for _, t := range p.streams {
		err := inspect(t.socket, func(info *unix.TCPInfo) {
			if sent := info.Bytes_sent; before != 0 && now > before {
				t.saw(int64(sent-min(t.sent, sent)), now-before)
			}
			t.sent, t.minBps = info.Bytes_sent, minBps(info, p.tsoLog)
		})
		if err != nil {
			return err
		}
	}
	_, err := p.apply()
	return err
}

// apply tells the kernel of changed shares, the smaller ones first.
func (p *pacedSockets) apply() (held int64, err error) {
	if len(p.streams) == 0 || p.rateBps == unset {
		return max(p.rateBps, 0), nil
	}
	shares := make([]*share, len(p.streams))
	for i, t := range p.streams {
		shares[i] = &t.share
	}
	divide(p.rateBps, shares)
	var failures []error
	for _, raise := range []bool{false, true} {
		for _, t := range p.streams {
			want := t.rateBps
			if p.rateBps == 0 {
				want = t.minBps
			}
			want = max(want/8, 1) * 8
			if (t.heldBps >= 0 && want > t.heldBps) != raise || want == t.heldBps {
				continue
			}
			if err := t.set(want); err != nil {
				failures = append(failures, err)
			}
		}
	}
	for _, t := range p.streams {
		held += max(t.heldBps, 0)
	}
	return held, errors.Join(failures...)
}

func (t *stream) set(rateBps int64) error {
	return withFD(t.socket, func(fd int) (err error) {
		t.heldBps, err = tcpsock.SetPacingRate(fd, rateBps)
		if err == nil && t.heldBps != rateBps {
			err = fmt.Errorf("SO_MAX_PACING_RATE is %d bit/s after it was set to %d", t.heldBps, rateBps)
		}
		return err
	})
}

// Close lets the sockets go as fast as they like: another limiter holds them from now on, or none.
func (p *pacedSockets) Close() error {
	for _, t := range p.streams {
		_ = withFD(t.socket, tcpsock.ClearPacingRate) // a closed socket needs nothing
	}
	p.streams = nil
	return nil
}

// minBps is the smallest rate that is worth setting. What has left at a low rate keeps the kernel from sending for as
// long as it takes at that rate, also when the rate is raised: no longer than half a second.
func minBps(info *unix.TCPInfo, tsoLog int) int64 {
	return 2 * 8 * pacing.Burst(int64(max(info.Snd_mss, 536)), int64(info.Min_rtt), tsoLog)
}

// withFD calls f with a socket's descriptor.
func withFD(s pacing.Socket, f func(fd int) error) error {
	var failed error
	if err := s.Control(func(fd uintptr) { failed = f(int(fd)) }); err != nil {
		return err
	}
	return failed
}

// inspect calls f with what the kernel tells of a connection.
func inspect(s pacing.Socket, f func(*unix.TCPInfo)) error {
	return withFD(s, func(fd int) error {
		info, err := tcpsock.Info(fd)
		if err == nil {
			f(info)
		}
		return err
	})
}
