// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// crowd opens connections that say nothing, from an address of this host.
func (p *pair) crowd(from string, n int) []net.Conn {
	p.t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 5 * time.Second}
	var made []net.Conn
	for range n {
		conn, err := dialer.Dial("tcp", p.listener.Address())
		if err != nil {
			p.t.Fatal(err)
		}
		p.t.Cleanup(func() { _ = conn.Close() })
		made = append(made, conn)
	}
	return made
}

// waitFor is for what another goroutine does at once.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within ten seconds: %s", what)
		}
	}
}

func (s *strangers) count(from string) (ofOne, all int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[origin(&net.TCPAddr{IP: net.ParseIP(from)})], len(s.oldest)
}

type safeBuffer struct {
	sync.Mutex
	bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.Lock()
	defer b.Unlock()
	return b.Buffer.Write(p)
}

func (b *safeBuffer) String() string {
	b.Lock()
	defer b.Unlock()
	return b.Buffer.String()
}

// A crowd of one address keeps no sender out, neither of another address nor of the same; the log says whose it is, once.
func TestACrowdOfOneAddress(t *testing.T) {
	for _, size := range []int{70, 1000} {
		for _, from := range []string{"127.0.0.2", "127.0.0.1"} { // the sender comes from 127.0.0.1
			t.Run(fmt.Sprintf("%d of %s", size, from), func(t *testing.T) {
				p := newPair(t, 1000)
				log := &safeBuffer{}
				p.log = slog.New(slog.NewTextHandler(log, nil))
				p.listener.strangers.mu.Lock() // the listener runs already
				p.listener.strangers.log = p.log
				p.listener.strangers.mu.Unlock()
				p.receiver()
				crowd := p.crowd(from, size)
				waitFor(t, "the crowd is bounded", func() bool {
					n, _ := p.listener.strangers.count(from)
					return n == maxOfOne
				})
				// The oldest gave way, the youngest are there.
				_ = crowd[0].SetReadDeadline(time.Now().Add(5 * time.Second))
				if _, err := crowd[0].Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
					t.Errorf("the oldest is still there: %v", err)
				}
				p.sender()
				p.sent.wait(t, "sent")
				p.same()
				if strings.Contains(log.String(), "attempt failed") {
					t.Errorf("the sender had to try again: %s", log)
				}
				if got := log.String(); strings.Count(got, "crowd it") != 1 || !strings.Contains(got, "address="+from+"/32") || !strings.Contains(got, "do=") {
					t.Errorf("log: %s", got)
				}
			})
		}
	}
}

// When many addresses fill the room together, the one that has the most gives way, not one that came with a single connection.
func TestTheGreediestGivesWay(t *testing.T) {
	p := newPair(t, 1000)
	single := p.crowd("127.0.0.100", 1)[0]
	for i := range 6 {
		p.crowd(fmt.Sprintf("127.0.0.%d", 2+i), maxOfOne)
	}
	waitFor(t, "the room is full", func() bool {
		_, all := p.listener.strangers.count("127.0.0.2")
		return all == maxStrangers
	})
	_ = single.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := single.Read(make([]byte, 1)); !os.IsTimeout(err) {
		t.Errorf("the only one of its address was closed: %v", err)
	}
	p.receiver()
	p.sender()
	p.sent.wait(t, "sent")
}

// Those that have proved themselves are not counted with those that have not.
func TestACrowdTakesNothingFromWhoIsKnown(t *testing.T) {
	p := newPair(t, 1000)
	p.receiver()
	known, _, _, _ := p.dial()
	p.crowd("127.0.0.1", 3*maxOfOne)
	waitFor(t, "the crowd is bounded", func() bool {
		n, _ := p.listener.strangers.count("127.0.0.1")
		return n == maxOfOne
	})
	_ = known.conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := known.conn.Read(make([]byte, 1)); err != nil && !os.IsTimeout(err) {
		t.Errorf("the proven connection was closed: %v", err)
	}
}

func TestWhatCountsAsOneAddress(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.7": "192.0.2.7/32", "::ffff:192.0.2.7": "192.0.2.7/32", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64",
	} {
		if got := origin(&net.TCPAddr{IP: net.ParseIP(text), Port: 1}); got.String() != want {
			t.Errorf("%s counts as %s, want %s", text, got, want)
		}
	}
}
