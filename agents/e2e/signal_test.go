// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"bandwidthbroker/agents/internal/brokerapi"
	"bandwidthbroker/agents/internal/fakebroker"
	"bandwidthbroker/agents/internal/signal"
)

// chain is two transfers of which the second starts on the end of the first, between four agents.
type chain struct {
	*lab
	a, b, c, d    *host // a sends to c, then b to d
	first, second *job
	start         brokerapi.StartAfter
	end           brokerapi.EndSignal
	key           signal.Key
}

const timeout = 300 * time.Millisecond

// newChain books the second right behind the first, both at 40 Mbit/s; volumes in bytes, booked in time.
func newChain(t *testing.T, booked time.Duration, volume int64) *chain {
	t.Helper()
	l := newLab(t)
	c := &chain{lab: l, a: l.agent("a"), b: l.agent("b"), c: l.agent("c"), d: l.agent("d")}
	at := 1200 * time.Millisecond // until then all four have enrolled, and the second host's clock is known
	c.first = l.job(c.a, c.c, volume, steps(at, booked.Seconds(), 40)...)
	c.second = l.job(c.b, c.d, 4_000_000, steps(at+booked, 1, 40)...)
	// The same instant to the microsecond, as the broker would book it.
	shift := c.first.segments[0].End.Sub(c.second.segments[0].Begin)
	for i := range c.second.segments {
		s := &c.second.segments[i]
		s.Begin, s.End = s.Begin.Add(shift), s.End.Add(shift)
	}
	_, _ = rand.Read(c.key[:])
	peer := func(j *job) brokerapi.SignalPeer {
		return brokerapi.SignalPeer{TransferID: j.id, Host: j.from.name, DataAddress: j.from.address, Key: hex.EncodeToString(c.key[:])}
	}
	early := c.first.segments[0].Begin
	c.start = brokerapi.StartAfter{
		Predecessor: peer(c.first), Kind: "direct", EarlyFrom: &early, TimeoutUs: timeout.Microseconds(), OnTimeout: "start",
	}
	c.end = brokerapi.EndSignal{Successor: peer(c.second), Kind: "direct", TimeoutUs: timeout.Microseconds(), OnOverrun: "delay"}
	return c
}

// assign tells all four hosts.
func (c *chain) assign() {
	first, second := c.first.sender(), c.second.sender()
	first.EndSignals = []brokerapi.EndSignal{c.end}
	second.StartAfter = &c.start
	c.broker.Assign("c", c.first.receiver())
	c.broker.Assign("d", c.second.receiver())
	c.broker.Assign("b", second)
	c.broker.Assign("a", first)
}

// signalled waits for a signal report with a code.
func (c *chain) signalled(j *job, code string) fakebroker.Received {
	c.t.Helper()
	r, err := c.broker.Await(15*time.Second, func(r fakebroker.Received) bool {
		return r.TransferID == j.id && r.Kind == "signal" && r.Code == code
	})
	if err != nil {
		machine.Fatalf(c.t, "signal %s of %s: %v; had %v", code, j.id, err, c.codes(j))
	}
	c.t.Logf("%s %s: %s", j.id, code, r.Detail)
	return r
}

// codes are the signal reports of a transfer so far.
func (c *chain) codes(j *job) (codes []string) {
	for _, r := range c.broker.Reports() {
		if r.TransferID == j.id && r.Kind == "signal" {
			codes = append(codes, r.Code)
		}
	}
	return codes
}

func (c *chain) wantCodes(j *job, want ...string) {
	c.t.Helper()
	if got := c.codes(j); !slices.Equal(got, want) {
		machine.Errorf(c.t, "signals of %s: %v, want %v", j.id, got, want)
	}
}

// gap is from one report to another, by broker time.
func (c *chain) gap(from, to fakebroker.Received, most time.Duration) {
	c.t.Helper()
	gap := to.At.Sub(from.At)
	c.t.Logf("%s after %s: %s", to.Code, from.Code, gap)
	if gap > most {
		machine.Errorf(c.t, "%s came %s after %s, at most %s is due", to.Code, gap, from.Code, most)
	}
}

// apart checks, with the counters of both receiving kernels, that the second did not send while the first did. The first
// megabit of the second tells its start from its handshake.
func (c *chain) apart(first, second []sample) {
	c.t.Helper()
	var begin, end int64
	for i := 1; i < len(first); i++ {
		if first[i].bytes > first[i-1].bytes+20_000 {
			end = first[i-1].at
		}
	}
	for i := 1; i < len(second) && begin == 0; i++ {
		if second[i].bytes > second[i-1].bytes+20_000 {
			begin = second[i].at
		}
	}
	c.t.Logf("the second began %.1f ms after the end of the first, sampled every %s", float64(begin-end)/1000, sampleEvery)
	if begin < end {
		machine.Errorf(c.t, "both sent for %.1f ms", float64(end-begin)/1000)
	}
}

// relay is a network between the two senders in which a test does what it likes to datagrams.
type relay struct {
	socket *net.UDPConn
	to     *net.UDPAddr
	back   *net.UDPAddr

	mu    sync.Mutex
	alter func(datagram []byte, kind signal.Kind) [][]byte // what arrives in its place
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	address, err := net.ResolveUDPAddr("udp", to)
	if err != nil {
		t.Fatal(err)
	}
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	r := &relay{socket: socket, to: address}
	go r.run()
	return r
}

func (r *relay) run() {
	buf := make([]byte, 1500)
	for {
		n, from, err := r.socket.ReadFromUDP(buf)
		if err != nil {
			return
		}
		to := r.to
		if from.Port == r.to.Port {
			to = r.back
		} else {
			r.back = from
		}
		out := [][]byte{slices.Clone(buf[:n])}
		r.mu.Lock()
		if r.alter != nil {
			out = r.alter(out[0], signal.Kind(buf[5]))
		}
		r.mu.Unlock()
		for _, datagram := range out {
			if to != nil {
				_, _ = r.socket.WriteToUDP(datagram, to)
			}
		}
	}
}

// between puts a relay on the way from the first sender to the second and back.
func (c *chain) between(alter func(datagram []byte, kind signal.Kind) [][]byte) *relay {
	r := newRelay(c.t, c.b.address)
	r.alter = alter
	c.end.Successor.DataAddress = r.socket.LocalAddr().String()
	return r
}

func TestAnEarlyEndStartsTheNextAtOnce(t *testing.T) {
	c := newChain(t, 3*time.Second, 5_000_000) // done after one of three seconds
	c.assign()
	sent := c.signalled(c.first, "go_sent")
	got := c.signalled(c.second, "go_received")
	c.gap(sent, got, 50*time.Millisecond)
	if !got.At.Before(c.second.segments[0].Begin.Add(-time.Second)) {
		machine.Errorf(t, "the second started at %s, booked is %s", got.At, c.second.segments[0].Begin)
	}
	c.first.arrived(10 * time.Second)
	c.second.arrived(10 * time.Second)
	if finished := c.second.await(time.Second, c.d, "finished"); finished.At.After(c.second.segments[0].Begin) {
		machine.Errorf(t, "the second ended no earlier than it was booked to begin")
	}
	c.wantCodes(c.first, "go_sent")
	c.wantCodes(c.second, "go_received")
}

func TestALostSignalIsRepeated(t *testing.T) {
	c := newChain(t, 3*time.Second, 5_000_000)
	lost := 0
	c.between(func(d []byte, kind signal.Kind) [][]byte {
		if kind == signal.Go && lost == 0 {
			lost++
			return nil
		}
		return [][]byte{d}
	})
	c.assign()
	sent := c.signalled(c.first, "go_sent")
	got := c.signalled(c.second, "go_received")
	c.gap(sent, got, 80*time.Millisecond)
	c.second.arrived(10 * time.Second)
	if lost != 1 {
		t.Errorf("%d GOs were lost", lost)
	}
}

// An attacker between two hosts can keep signals from arriving, and nothing else: what is changed, recorded or sent back is
// ignored, and counted.
func TestForgedAndReplayedSignalsStartNobody(t *testing.T) {
	c := newChain(t, 2*time.Second, 9_900_000) // busy to its end
	var recorded [][]byte
	forged := 0
	c.between(func(d []byte, kind signal.Kind) [][]byte {
		out := [][]byte{d}
		if kind != signal.Hold {
			return out
		}
		recorded = append(recorded, d)
		asGo := slices.Clone(d)
		asGo[5], asGo[6] = byte(signal.Go), byte(signal.Done)
		copy(asGo[12:16], []byte{0, 0, 0, 0})
		flipped := slices.Clone(d)
		flipped[len(flipped)-1] ^= 1
		forged += 2
		out = append(out, asGo, flipped, recorded[0], []byte("BWBS"), []byte("nonsense"))
		return out
	})
	c.assign()
	got := c.signalled(c.second, "go_received")
	if early := c.second.segments[0].Begin.Sub(got.At); early > 300*time.Millisecond {
		t.Errorf("the second started %s early", early)
	}
	c.second.arrived(10 * time.Second)
	eventually(t, "the forged signals are counted", 5*time.Second, func() bool { return status(t, c.b).Signals.Forged >= int64(forged) })
	if s := status(t, c.b).Signals; s.Malformed < 2 || !s.Direct {
		t.Errorf("%+v", s)
	}
	if !strings.Contains(c.b.logged(), "does not hold the pair's key") {
		t.Error("no warning of forged signals")
	}
	if strings.Contains(c.b.logged(), hex.EncodeToString(c.key[:])) {
		t.Error("the log holds the pair's key")
	}
}

func TestADeadPredecessorIsWaitedForNoLongerThanItsTimeout(t *testing.T) {
	c := newChain(t, 1500*time.Millisecond, 7_000_000)
	c.assign()
	c.first.progressed(2_000_000)
	c.a.kill(syscall.SIGKILL)
	got := c.signalled(c.second, "timeout")
	late := got.At.Sub(c.second.segments[0].Begin)
	t.Logf("started %s after its booked begin", late)
	if late < timeout-10*time.Millisecond {
		t.Errorf("the timeout is %s", timeout)
	}
	if late > timeout+100*time.Millisecond {
		machine.Errorf(t, "started %s late, the timeout is %s", late, timeout)
	}
	if _, err := c.broker.Await(10*time.Second, func(r fakebroker.Received) bool {
		return r.TransferID == c.second.id && (r.Kind == "shortfall" || r.Kind == "finished")
	}); err != nil {
		t.Error(err)
	}
}

func TestADeadPredecessorCancelsByPolicy(t *testing.T) {
	c := newChain(t, 1500*time.Millisecond, 7_000_000)
	c.start.OnTimeout = "cancel"
	c.assign()
	c.first.progressed(2_000_000)
	c.a.kill(syscall.SIGKILL)
	c.second.failed(10*time.Second, c.b, "signal_lost")
	c.wantCodes(c.second, "timeout")
}

func TestALatePredecessorHoldsTheNextUp(t *testing.T) {
	c := newChain(t, time.Second, 7_000_000) // 5 MB are booked: 0.4 s late
	c.assign()
	first, second := watch(t, c.c), watch(t, c.d)
	var samples, others []sample
	var sampling sync.WaitGroup
	until := c.second.segments[0].Begin.Add(900 * time.Millisecond)
	sampling.Go(func() { samples = first.until(until) })
	sampling.Go(func() { others = second.until(until) })
	c.signalled(c.first, "overrun")
	sent := c.signalled(c.first, "go_sent")
	got := c.signalled(c.second, "go_received")
	c.gap(sent, got, 50*time.Millisecond)
	late := got.At.Sub(c.second.segments[0].Begin)
	if late < 350*time.Millisecond {
		t.Errorf("the second started %s late only", late)
	}
	if late > 600*time.Millisecond {
		machine.Errorf(t, "the second started %s late", late)
	}
	sampling.Wait()
	c.apart(samples, others)
	for _, r := range c.broker.Reports() {
		if r.TransferID == c.first.id && r.Kind == "shortfall" {
			t.Error("the broker was asked to book anew what the successor waited for")
		}
	}
	c.first.arrived(10 * time.Second)
}

func TestALatePredecessorFallsBackByPolicy(t *testing.T) {
	c := newChain(t, time.Second, 7_000_000)
	c.end.OnOverrun = "fallback"
	c.assign()
	first := watch(t, c.c)
	c.signalled(c.first, "overrun")
	sent := c.signalled(c.first, "go_sent")
	got := c.signalled(c.second, "go_received")
	c.gap(sent, got, 50*time.Millisecond)
	begin := c.second.segments[0].Begin
	// The first lets go by the error of its clock before its booked end, which is when the second begins.
	switch late := got.At.Sub(begin); {
	case late < -5*time.Millisecond:
		t.Errorf("the second started %s before its booked begin", -late)
	case late > 100*time.Millisecond:
		machine.Errorf(t, "the second started %s after its booked begin", late)
	}
	if rate := goodput(first.until(begin.Add(600*time.Millisecond)), begin.UnixMicro()+100_000, begin.UnixMicro()+600_000); rate > 1.2e6 {
		machine.Errorf(t, "the first went on at %.1f Mbit/s, the fallback is 1", rate/1e6)
	}
	c.second.arrived(10 * time.Second)
}

// A lease that is lost, here because nothing comes back any more, is given up before the successor takes the link.
func TestALostLeaseIsGivenUp(t *testing.T) {
	c := newChain(t, time.Second, 12_000_000) // 1.4 s late
	cut := make(chan struct{})
	c.between(func(d []byte, _ signal.Kind) [][]byte {
		select {
		case <-cut:
			return nil
		default:
			return [][]byte{d}
		}
	})
	c.assign()
	first, second := watch(t, c.c), watch(t, c.d)
	var samples, others []sample
	var sampling sync.WaitGroup
	until := c.second.segments[0].Begin.Add(1400 * time.Millisecond)
	sampling.Go(func() { samples = first.until(until) })
	sampling.Go(func() { others = second.until(until) })
	time.Sleep(time.Until(c.second.segments[0].Begin.Add(300 * time.Millisecond)))
	close(cut)
	c.signalled(c.first, "lease_lost")
	c.signalled(c.second, "timeout")
	sampling.Wait()
	c.apart(samples, others)
}

func TestSignalsGoOnWithoutTheBroker(t *testing.T) {
	c := newChain(t, 3*time.Second, 5_000_000)
	c.assign()
	c.first.progressed(1_000_000)
	c.broker.Die()
	eventually(t, "the second has started", 10*time.Second, func() bool { return strings.Contains(c.b.logged(), "go_received") })
	if !time.Now().Before(c.second.segments[0].Begin) {
		machine.Errorf(t, "not before its booked begin")
	}
	if err := c.broker.ComeBack(); err != nil {
		t.Fatal(err)
	}
	c.second.arrived(40 * time.Second)
}

func TestTheBrokersWordStartsTheNext(t *testing.T) {
	c := newChain(t, 3*time.Second, 5_000_000)
	c.start.Kind, c.end.Kind = "broker", "broker"
	c.broker.OnReport(func(r fakebroker.Received) {
		if r.Kind == "finished" && r.TransferID == c.first.id {
			c.start.Released = true
			second := c.second.sender()
			second.StartAfter = &c.start
			c.broker.Assign("b", second)
		}
	})
	c.assign()
	got := c.signalled(c.second, "released")
	finished := c.first.await(time.Second, c.c, "finished")
	t.Logf("started %s after the end of the first", got.At.Sub(finished.At))
	if !got.At.Before(c.second.segments[0].Begin) {
		machine.Errorf(t, "not before its booked begin")
	}
	c.second.arrived(10 * time.Second)
}

// Both senders on one host: no datagram is needed.
func TestAChainOnOneHost(t *testing.T) {
	l := newLab(t)
	a, b := l.agent("a"), l.agent("b")
	first := l.job(a, b, 2_000_000, steps(time.Second, 2, 40)...)
	second := l.job(a, b, 2_000_000, steps(3*time.Second, 1, 40)...)
	second.name, second.destination = "run7/y.h5", "incoming/y.h5"
	a.file(second.name, 2_000_000)
	key := strings.Repeat("5a", 32)
	early := first.segments[0].Begin
	send, then := first.sender(), second.sender()
	send.EndSignals = []brokerapi.EndSignal{{
		Successor: brokerapi.SignalPeer{TransferID: second.id, Host: "a", DataAddress: a.address, Key: key}, Kind: "direct", TimeoutUs: 200_000, OnOverrun: "delay",
	}}
	then.StartAfter = &brokerapi.StartAfter{
		Predecessor: brokerapi.SignalPeer{TransferID: first.id, Host: "a", DataAddress: a.address, Key: key}, Kind: "direct", EarlyFrom: &early,
		TimeoutUs: 200_000, OnTimeout: "start",
	}
	l.broker.Assign("b", first.receiver(), second.receiver())
	l.broker.Assign("a", send, then)
	second.arrived(10 * time.Second)
	if n := status(t, a).Signals.Sent; n != 0 {
		t.Errorf("%d datagrams to itself", n)
	}
	if !strings.Contains(a.logged(), "go_received") {
		t.Error("no signal")
	}
}

// Without the UDP port the agent says so, and successors go by their timeouts.
func TestWithoutThePort(t *testing.T) {
	l := newLab(t)
	address := freeAddress(t)
	udp, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		t.Fatal(err)
	}
	taken, err := net.ListenUDP("udp", udp)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	a := l.agentAt("a", address)
	eventually(t, "the agent has spoken", 10*time.Second, func() bool { return l.broker.Last("a").Agent != nil })
	eventually(t, "the status says that there is no port", 5*time.Second, func() bool {
		s := status(t, a).Signals
		return !s.Direct && strings.Contains(s.Reason, "in use")
	})
	told := fmt.Sprint((*l.broker.Last("a").Agent.Capabilities)["signals"])
	if !strings.Contains(told, "direct:false") {
		t.Errorf("the broker was told %s", told)
	}
}
