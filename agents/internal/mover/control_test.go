// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"bandwidthbroker/agents/internal/mechanism"
	"bandwidthbroker/agents/internal/schedule"
	"bandwidthbroker/agents/internal/signalport"
	"bandwidthbroker/agents/internal/tcpsock"
)

// What control costs a sender at 1 Gbit/s, reading, hashing and sending apart: all that the loop does between two writes,
// by the number of writes per second. `go test ./internal/mover -run - -bench Control`
func BenchmarkControl(b *testing.B) {
	const rate = 1_000_000_000
	for _, name := range []mechanism.Name{mechanism.Pacing, mechanism.Window, mechanism.Userland} {
		b.Run(string(name), func(b *testing.B) {
			t, err := looped(b, name, rate)
			if err != nil {
				b.Fatal(err)
			}
			frame := make([]byte, chunkSize)
			var writes, waits int
			now := t.clock.Now()
			begin := now
			b.ResetTimer()
			for range b.N {
				_ = t.clock.Now()
				if err := t.look(now); err != nil {
					b.Fatal(err)
				}
				t.checkShortfall(now)
				d := t.pacer.Next(now, 1<<30)
				if err := t.pace(d.RateBps); err != nil {
					b.Fatal(err)
				}
				if _, _, err := t.rise(now, frame); err != nil {
					b.Fatal(err)
				}
				allowed, wakeAt, err := t.allowed(now, d, 1<<30)
				if err != nil {
					b.Fatal(err)
				}
				if allowed == 0 {
					now = max(wakeAt, now+50) // virtual time: waiting costs no processor
					waits++
					continue
				}
				if _, err := t.link.tcp.Writable(blockedFor); err != nil {
					b.Fatal(err)
				}
				t.pacer.Wrote(min(allowed, d.Quantum))
				writes++
			}
			b.StopTimer()
			perSecond := float64(writes+waits) / (float64(now-begin) / 1e6)
			perTurn := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
			b.ReportMetric(perSecond, "turns/s")
			b.ReportMetric(float64(waits)/(float64(now-begin)/1e6), "waits/s")
			b.ReportMetric(100*perSecond*perTurn/1e9, "%core")
		})
	}
}

// looped is a transmission over the loopback that follows a booking of an hour.
func looped(b *testing.B, name mechanism.Name, rate int64) (*transmission, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	dialed, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return nil, err
	}
	accepted, err := l.Accept()
	if err != nil {
		return nil, err
	}
	go func() { _, _ = io.Copy(io.Discard, accepted) }()
	b.Cleanup(func() { _ = dialed.Close(); _ = accepted.Close() })
	tcp, err := tcpsock.Wrap(dialed.(*net.TCPConn))
	if err != nil {
		return nil, err
	}
	now := time.Now().UnixMicro()
	o := &Orders{
		Transfer: "tr_1", Volume: 400_000_000_000, Revision: 1, Mechanism: name,
		Segments: []schedule.Segment{{Begin: now - 1_000_000, End: now + 3_600_000_000, RateBps: rate}},
	}
	log := slog.New(slog.DiscardHandler)
	s := &Sender{clock: wallClock{}, log: log, outbox: newOutbox(), mechanisms: everything(), changed: make(chan struct{}, 1)}
	port := signalport.Mute(log)
	s.gate, s.tail = NewGate(port, s.clock, false, s.wake, s.signalled), NewTail(port, s.clock, s.signalled)
	s.follow(o)
	return &transmission{Sender: s, link: &link{channel: newChannel(tcp), tcp: tcp, gone: make(chan struct{})}}, nil
}
