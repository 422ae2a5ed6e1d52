// SPDX-License-Identifier: Apache-2.0

package signalport

import (
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"bandwidthbroker/agents/internal/signal"
)

var (
	silent = slog.New(slog.NewTextHandler(io.Discard, nil))
	pair   = signal.Pair{Predecessor: "tr_1", Successor: "tr_2"}
	shared = signal.Key{1, 2, 3}
)

func open(t *testing.T) (*Port, string) {
	t.Helper()
	p := Open("127.0.0.1:0", silent)
	if p.Err() != nil {
		t.Fatal(p.Err())
	}
	t.Cleanup(p.Close)
	return p, p.socket.LocalAddr().String()
}

// succeed waits on a port; the channel is closed at the first verdict.
func succeed(p *Port, timeout int64) (*Successor, <-chan signal.Verdict) {
	decided := make(chan signal.Verdict, 1)
	var s *Successor
	made := make(chan struct{})
	s = p.Succeed(signal.SuccessorConfig{Pair: pair, Nonce: signal.Nonce{2}, Timeout: timeout}, shared, func() {
		go func() {
			<-made
			if v := s.Look().Verdict; v != signal.Waiting {
				select {
				case decided <- v:
				default:
				}
			}
		}()
	})
	close(made)
	return s, decided
}

func precede(p *Port, peer string) *Predecessor {
	return p.Precede(signal.PredecessorConfig{Pair: pair, Nonce: signal.Nonce{1}, Timeout: 10_000_000, Margin: 1_000}, shared, peer)
}

func await(t *testing.T, verdicts <-chan signal.Verdict, want signal.Verdict) {
	t.Helper()
	select {
	case got := <-verdicts:
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("no verdict")
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

func TestASignalOverTheLoopback(t *testing.T) {
	here, _ := open(t)
	there, address := open(t)
	s, verdicts := succeed(there, 60_000_000)
	s.Plan(there.Now()+60_000_000, 0)
	p := precede(here, address)
	p.Plan(here.Now()+500_000, signal.Never)
	eventually(t, "a lease", func() bool { return p.Look().LeaseUntil > here.Now() })
	if seen := s.Look(); seen.Expected == signal.Never {
		t.Error("the successor was not told when")
	}
	p.Release(0, signal.Done)
	await(t, verdicts, signal.Signalled)
	eventually(t, "answered", func() bool { return p.Look().Answered })
	if here.find(role{pair, true}) != nil {
		t.Error("a pair that is over is still listed")
	}
}

// A GO that was not heard is said again after its transfer is gone, and its answer too.
func TestAGoOutlivesItsTransfer(t *testing.T) {
	here, _ := open(t)
	there, address := open(t)
	p := precede(here, address)
	p.Release(0, signal.Cancelled)
	s, verdicts := succeed(there, 60_000_000)
	s.Plan(there.Now()+60_000_000, 0)
	await(t, verdicts, signal.Signalled)
	s.Leave()
	eventually(t, "answered", func() bool { return p.Look().Answered })
}

func TestBothEndsOnOneHostNeedNoSocket(t *testing.T) {
	p := Mute(silent)
	s, verdicts := succeed(p, 60_000_000)
	s.Plan(p.Now()+60_000_000, 0)
	precede(p, "192.0.2.1:1").Release(0, signal.Done)
	await(t, verdicts, signal.Signalled)
	if n := p.Statistics(); n.Sent != 0 || n.Unsent != 0 {
		t.Errorf("%+v", n)
	}
}

func TestAPortThatIsTakenLeavesTimeouts(t *testing.T) {
	_, address := open(t)
	p := Open(address, silent)
	defer p.Close()
	if p.Err() == nil || !strings.Contains(p.Err().Error(), "in use") {
		t.Errorf("error %v", p.Err())
	}
	s, verdicts := succeed(p, 20_000)
	s.Plan(p.Now(), signal.Never)
	await(t, verdicts, signal.TimedOut)
}

func TestStrangersGetNoAnswer(t *testing.T) {
	there, address := open(t)
	s, _ := succeed(there, 60_000_000)
	s.Plan(there.Now()+60_000_000, 0)
	conn, err := net.Dial("udp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	hold := signal.Frame{Kind: signal.Hold, Pair: pair, Number: 1, PredecessorNonce: signal.Nonce{1}}
	other := hold
	other.Successor = "tr_9"
	for _, datagram := range [][]byte{[]byte("x"), hold.Append(nil, signal.Key{9}), other.Append(nil, shared)} {
		_, _ = conn.Write(datagram)
	}
	eventually(t, "all are counted", func() bool {
		n := there.Statistics()
		return n.Malformed == 1 && n.Forged == 1 && n.Unknown == 1
	})
	_ = conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes in answer", n)
	}
	if _, err := conn.Write(hold.Append(nil, shared)); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := conn.Read(make([]byte, signal.MaxFrame)); err != nil {
		t.Errorf("who holds the key is not answered: %v", err)
	}
}

// However many datagrams come, only so many are looked at.
func TestAFloodIsBounded(t *testing.T) {
	b := bucket{perMilli: maxPerMilli, size: burst, left: burst}
	now, taken := int64(0), 0
	for now < 1_000_000 {
		now += b.take(now)
		taken++
	}
	if most := burst + 1000*maxPerMilli + 1; taken > most || taken < most*9/10 {
		t.Errorf("%d in a second, at most %d are meant", taken, most)
	}
}

func TestANameIsResolvedAside(t *testing.T) {
	var a address
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a.resolve("localhost:7411", func() bool { return ctx.Err() != nil })
	eventually(t, "resolved", func() bool { return a.get().Port() == 7411 })
}
