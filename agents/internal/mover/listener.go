// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"math"
	"net"
	"sync"
	"syscall"
	"time"

	"bandwidthbroker/agents/internal/datachannel"
	"bandwidthbroker/agents/internal/failure"
	"bandwidthbroker/agents/internal/tcpsock"
)

// maxSessions bounds the connections that have proved to belong to a transfer.
const maxSessions = 256

// Listener accepts data channels and hands them to the receivers they prove to belong to.
type Listener struct {
	socket    net.Listener
	tls       *tls.Config
	log       *slog.Logger
	strangers *strangers
	sessions  chan struct{}

	mu        sync.Mutex
	receivers map[string]*Receiver
}

// Listen opens the data address. With a TLS configuration nothing else is spoken.
func Listen(address string, config *tls.Config, log *slog.Logger) (*Listener, error) {
	socket, err := listenWide(address)
	if err != nil {
		return nil, err
	}
	l := &Listener{
		socket: socket, tls: config, log: log, receivers: map[string]*Receiver{},
		strangers: newStrangers(log), sessions: make(chan struct{}, maxSessions),
	}
	go l.accept()
	return l, nil
}

// listenWide makes connections begin with the widest receive window that the host allows: the sender knows its rate
// from the first byte on, and must not wait for our kernel to find it out (it would take four round trips).
func listenWide(address string) (net.Listener, error) {
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) { _ = tcpsock.WidenReceive(int(fd), math.MaxInt32) })
	}}
	config.SetMultipathTCP(false) // a rate is booked on one path
	return config.Listen(context.Background(), "tcp", address)
}

// Address is where it listens.
func (l *Listener) Address() string { return l.socket.Addr().String() }

// Close takes no more connections; sessions end with their receivers.
func (l *Listener) Close() { _ = l.socket.Close() }

// Expect hands the transfer's connections to a receiver.
func (l *Listener) Expect(transfer string, r *Receiver) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.receivers[transfer] = r
}

// Forget answers unknown_transfer from now on.
func (l *Listener) Forget(transfer string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.receivers, transfer)
}

func (l *Listener) expected(transfer string) *Receiver {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.receivers[transfer]
}

func (l *Listener) accept() {
	for {
		conn, err := l.socket.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of descriptors, for instance: what is there goes on
			l.log.Error("accept", "error", err)
			time.Sleep(100 * time.Millisecond)
			continue
		}
		go l.meet(conn.(*net.TCPConn), l.strangers.greet(conn))
	}
}

// meet gives a stranger a short time to prove itself.
func (l *Listener) meet(plain *net.TCPConn, who *stranger) {
	defer plain.Close()
	defer l.strangers.leave(who)
	_ = plain.SetDeadline(time.Now().Add(handshakeTimeout))
	_ = tcpsock.KeepAlive(plain)
	var conn net.Conn = plain
	if l.tls != nil {
		conn = tls.Server(plain, l.tls)
	}
	c := newChannel(conn)
	r, hello, challenge, err := l.handshake(c, plain.RemoteAddr())
	if err != nil {
		l.log.Debug("handshake", "from", plain.RemoteAddr(), "error", err)
		return
	}
	_ = plain.SetDeadline(time.Time{})
	select {
	case l.sessions <- struct{}{}:
		defer func() { <-l.sessions }()
	default:
		l.log.Warn("too many data channels", "limit", maxSessions)
		return
	}
	if !l.strangers.leave(who) {
		return // closed a moment ago: its sender comes again
	}
	r.serve(c, hello, challenge)
}

func (l *Listener) handshake(c *channel, from net.Addr) (r *Receiver, hello, challenge datachannel.Nonce, err error) {
	body, err := c.read(datachannel.KindHello)
	if err != nil {
		return
	}
	h, err := datachannel.ParseHello(body)
	if err != nil {
		return
	}
	if r = l.expected(h.Transfer); r == nil {
		err = datachannel.Error{Code: datachannel.UnknownTransfer}
		_ = c.write(datachannel.Error{Code: datachannel.UnknownTransfer})
		return
	}
	hello = h.Nonce
	challenge, err = c.answer(h, r.orders.Load())
	switch {
	case errors.Is(err, errForged):
		l.log.Warn("refused a sender that does not hold the key", "transfer", h.Transfer, "from", from)
		_ = c.write(datachannel.Error{Code: failure.Authentication})
	case err != nil && failure.Of(err) != nil:
		_ = c.write(datachannel.Error{Code: failure.Of(err).Code, Detail: failure.Of(err).Detail})
	}
	return
}
