// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"time"

	"bandwidthbroker/agents/internal/datachannel"
	"bandwidthbroker/agents/internal/tcpsock"
	"bandwidthbroker/agents/internal/tlsid"
)

// link is the sender's end of a data channel after the handshake, with a goroutine that listens to the receiver.
type link struct {
	*channel
	tcp              *tcpsock.Conn
	hello, challenge datachannel.Nonce
	resume           int64

	gone chan struct{} // closed when the receiver cannot be heard any more
	err  error         // why; set before gone is closed
	done chan datachannel.Digest
	once sync.Once
}

// Reno and cubic leave the pace to us; bbr, where it is the default, halts for 200 ms every 10 s and paces by its own estimate.
//
// Until something is lost it is reno. Cubic ends the doubling of the window (HyStart) when acknowledgements come late by an eighth of
// the round trip; over 0.1 ms that is any processor that was busy for a moment, and a window of twenty segments then grows by
// one at a time while the booking asks for hundreds. Reno doubles until a loss, and a booked rate is no more than the path has.
const untilLoss = "reno"

// afterLoss are those to go on with, the best first.
var afterLoss = []string{"cubic", "reno"}

// lost says that the window is no longer doubled.
func lost(info *tcpsock.TCPInfo) bool { return info.Snd_ssthresh < math.MaxInt32 }

// connect opens the connection of one attempt, up to RESUME.
func (s *Sender) connect(ctx context.Context, o *Orders) (*link, error) {
	dialer := net.Dialer{Timeout: handshakeTimeout, KeepAlive: -1}
	dialer.SetMultipathTCP(false) // a rate is booked on one path
	dialed, err := dialer.DialContext(ctx, "tcp", o.Peer.Address)
	if err != nil {
		return nil, err
	}
	plain := dialed.(*net.TCPConn)
	stop := context.AfterFunc(ctx, func() { _ = plain.Close() })
	defer stop()
	l, err := s.shakeHands(ctx, plain, o)
	if err != nil {
		_ = plain.Close()
		return nil, err
	}
	return l, nil
}

func (s *Sender) shakeHands(ctx context.Context, plain *net.TCPConn, o *Orders) (*link, error) {
	if err := tcpsock.KeepAlive(plain); err != nil {
		return nil, err
	}
	tcp, err := tcpsock.Wrap(plain)
	if err != nil {
		return nil, err
	}
	control, err := tcp.ChooseCongestionControl(untilLoss)
	if err != nil {
		return nil, err
	}
	_ = plain.SetDeadline(time.Now().Add(handshakeTimeout))
	var conn net.Conn = tcp
	if o.Peer.Fingerprint != "" {
		secure := tls.Client(tcp, tlsid.Pin(o.Peer.Fingerprint))
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, fmt.Errorf("TLS with %s: %w", o.Peer.Host, err)
		}
		conn = secure
	}
	l := &link{channel: newChannel(conn), tcp: tcp, gone: make(chan struct{}), done: make(chan datachannel.Digest, 1)}
	if l.hello, l.challenge, l.resume, err = l.offer(o); err != nil {
		return nil, err
	}
	_ = plain.SetDeadline(time.Time{})
	s.log.Info("connected", "peer", o.Peer.Host, "address", o.Peer.Address, "resume_at", l.resume,
		"congestion_control", control, "tls", o.Peer.Fingerprint != "")
	return l, nil
}

// listen reads what the receiver says until the connection ends.
func (l *link) listen(g *gauges, progressed func()) {
	l.end(func() error {
		for {
			_ = l.conn.SetReadDeadline(time.Now().Add(peerSilence))
			kind, body, err := datachannel.ReadControl(l.reader, l.scratch[:])
			if err != nil {
				var late net.Error
				if errors.As(err, &late) && late.Timeout() {
					return fmt.Errorf("the receiver was silent for %s", peerSilence)
				}
				return err
			}
			switch kind {
			case datachannel.KindProgress:
				p, err := datachannel.ParseProgress(body)
				if err != nil {
					return err
				}
				if got := int64(p.Received); got != g.bytes.Load() {
					g.bytes.Store(got)
					progressed()
				}
				g.safe.Store(int64(p.Safe))
			case datachannel.KindDone:
				d, err := datachannel.ParseDone(body)
				if err != nil {
					return err
				}
				l.done <- d.Digest
				return errors.New("the receiver is done")
			case datachannel.KindError:
				return peerError(body)
			default:
				return fmt.Errorf("message type %d from a receiver", kind)
			}
		}
	}())
}

func (l *link) end(err error) {
	l.once.Do(func() {
		l.err = err
		close(l.gone)
		_ = l.tcp.Close() // also ends a write that waits
	})
}
