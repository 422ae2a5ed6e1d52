// SPDX-License-Identifier: Apache-2.0

package mechanism_test

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"bandwidthbroker/agents/internal/mechanism"
	"bandwidthbroker/agents/internal/pacing"
	"bandwidthbroker/agents/internal/tcpsock"
)

// pair is a connection over the loopback, whose receiving end is read and forgotten.
func pair(t *testing.T) *tcpsock.Conn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
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
	c, err := tcpsock.Wrap(dialed.(*net.TCPConn))
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, accepted) }()
	t.Cleanup(func() { _ = c.Close(); _ = accepted.Close() })
	return c
}

// option reads a socket option of 64 bits.
func pacingOf(t *testing.T, s pacing.Socket) (bytesPerSecond uint64) {
	t.Helper()
	_ = s.Control(func(fd uintptr) {
		bytesPerSecond, _ = unix.GetsockoptUint64(int(fd), unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE)
	})
	return bytesPerSecond
}

func priorityOf(t *testing.T, s pacing.Socket) (priority int) {
	t.Helper()
	_ = s.Control(func(fd uintptr) { priority, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PRIORITY) })
	return priority
}

// The kernel, read back after every step, never holds sockets to more than the rate together, and forgets it at the end.
func TestPacingSharesTheRate(t *testing.T) {
	p := mechanism.NewPacing()
	const rate = 90_000_000
	if held, err := p.SetRate(rate); err != nil || held != rate {
		t.Fatalf("without a socket: %d, %v", held, err)
	}
	var sockets []*tcpsock.Conn
	for n := 1; n <= 3; n++ {
		c := pair(t)
		sockets = append(sockets, c)
		for range 2 { // the second time is a no-op
			if err := p.Attach(c); err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range sockets {
			if got := pacingOf(t, s); got != rate/8/uint64(n) {
				t.Errorf("one of %d sockets has %d bytes/s", n, got)
			}
		}
	}
	p.Detach(sockets[0])
	if got := pacingOf(t, sockets[1]); got != rate/8/2 {
		t.Errorf("after one of three left, another has %d bytes/s", got)
	}
	if held, err := p.SetRate(2 * rate); err != nil || held != 2*rate {
		t.Errorf("held %d, %v", held, err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if got := pacingOf(t, sockets[1]); got != math.MaxUint64 {
		t.Errorf("after the end a socket has %d bytes/s", got)
	}
	if got := pacingOf(t, sockets[0]); got == math.MaxUint64 {
		t.Error("a socket that had left was changed at the end: it may be another's")
	}
}

// A connection that already sends must not set a timer by a rate that was not asked for.
func TestPacingLeavesASocketAloneUntilItIsToldARate(t *testing.T) {
	p, c := mechanism.NewPacing(), pair(t)
	if err := p.Attach(c); err != nil {
		t.Fatal(err)
	}
	if got := pacingOf(t, c); got != math.MaxUint64 {
		t.Errorf("paced to %d bytes/s", got)
	}
	if held, err := p.SetRate(50_000_000); err != nil || held != 50_000_000 || pacingOf(t, c) != 50_000_000/8 {
		t.Errorf("held %d, %v; paced to %d bytes/s", held, err, pacingOf(t, c))
	}
}

// A rate of 0 is the smallest that the kernel can hold without being blocked for long afterwards.
func TestPacingAtZero(t *testing.T) {
	p, c := mechanism.NewPacing(), pair(t)
	if err := p.Attach(c); err != nil {
		t.Fatal(err)
	}
	held, err := p.SetRate(0)
	if err != nil || held < 10_000 || held > 2_500_000 {
		t.Errorf("held %d, %v", held, err)
	}
}

// classes is a host with HTB, in memory.
type classes struct {
	log    []string
	refuse error
}

func (c *classes) Hold(owner string, to netip.Addr, wireBps int64) (uint32, int64, error) {
	c.log = append(c.log, fmt.Sprintf("hold %s to %s at %d", owner, to, wireBps))
	return 0x0bbb0001, wireBps, c.refuse
}

func (c *classes) Release(owner string) error {
	c.log = append(c.log, "release "+owner)
	return nil
}

func (c *classes) LinkHeader(netip.Addr) (int, error) { return 14, nil }

func TestHTBTriesAgainWhatFailed(t *testing.T) {
	if unix.Geteuid() != 0 {
		t.Skip("SKIPPED, htb was not tried on sockets: SO_PRIORITY above 6 needs CAP_NET_ADMIN; run as root")
	}
	tc := &classes{}
	h, err := mechanism.Known.Probe([]mechanism.Name{mechanism.HTB}, mechanism.Means{Classes: tc}).Own("", "tr_1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.SetRate(100_000_000); err != nil {
		t.Fatal(err)
	}
	if err := h.Attach(pair(t)); err != nil {
		t.Fatal(err)
	}
	tc.refuse = errors.New("no memory")
	for range 2 { // the second time for the same rate, which a cache could take for applied
		if held, err := h.SetRate(200_000_000); err == nil {
			t.Errorf("held %d, although the kernel refused", held)
		}
	}
	tc.refuse = nil
	if held, err := h.SetRate(200_000_000); err != nil || held < 200_000_000 {
		t.Errorf("held %d, %v, when the kernel takes it again", held, err)
	}
}

// Loopback segments are of 65,483 bytes (MTU 65,536) with 66 of headers.
func TestHTBCountsHeaders(t *testing.T) {
	if unix.Geteuid() != 0 {
		t.Skip("SKIPPED, htb was not tried on sockets: SO_PRIORITY above 6 needs CAP_NET_ADMIN; run as root")
	}
	tc := &classes{}
	h, err := mechanism.Known.Probe([]mechanism.Name{mechanism.HTB}, mechanism.Means{Classes: tc}).Own("", "tr_1")
	if err != nil {
		t.Fatal(h, err)
	}
	c := pair(t)
	if _, err := h.SetRate(100_000_000); err != nil {
		t.Fatal(err)
	}
	if err := h.Attach(c); err != nil {
		t.Fatal(err)
	}
	if got := priorityOf(t, c); got != 0x0bbb0001 {
		t.Errorf("SO_PRIORITY %#x", got)
	}
	var mss int64
	_ = c.Control(func(fd uintptr) {
		if info, err := tcpsock.Info(int(fd)); err == nil {
			mss = int64(info.Snd_mss)
		}
	})
	held, err := h.SetRate(200_000_000)
	if err != nil || held < 200_000_000 || held > 200_000_010 {
		t.Errorf("held %d, %v", held, err)
	}
	// A caller that asks every 40 ms for the same has the kernel asked once a second.
	for now := int64(5_000_000); now < 7_000_000; now += 40_000 {
		if again, err := h.SetRate(200_000_000); again != held || err != nil {
			t.Fatalf("held %d, %v", again, err)
		}
		if err := h.Balance(now); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if got := priorityOf(t, c); got != 0 {
		t.Errorf("SO_PRIORITY %#x after the end: the class may be another's by then", got)
	}
	wire := func(rate int64) int64 { return (rate*(mss+66) + mss - 1) / mss }
	hold := func(rate int64) string { return fmt.Sprintf("hold tr_1 to 127.0.0.1 at %d", wire(rate)) }
	want := []string{hold(100_000_000), hold(200_000_000), hold(200_000_000), hold(200_000_000), "release tr_1"}
	if !slices.Equal(tc.log, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(tc.log, "\n"), strings.Join(want, "\n"))
	}
}

func TestWhatAHostChooses(t *testing.T) {
	none := errors.New("it needs CAP_NET_ADMIN")
	means := mechanism.Means{NoClasses: none, NoFQ: errors.New("no device has fq")}
	host := mechanism.Known.Probe([]mechanism.Name{mechanism.HTB, mechanism.Pacing}, means)
	reasons := map[mechanism.Name]string{}
	for _, r := range host.Reports() {
		if r.Available != (r.Reason == "") {
			t.Errorf("%+v", r)
		}
		reasons[r.Name] = r.Reason
	}
	if len(reasons) != len(mechanism.Known) || reasons[mechanism.HTB] != none.Error() || reasons[mechanism.FQ] != "no device has fq" ||
		reasons[mechanism.Pacing]+reasons[mechanism.Window]+reasons[mechanism.Userland] != "" {
		t.Errorf("%v", reasons)
	}
	for asked, want := range map[mechanism.Name]mechanism.Name{"": "pacing", "window": "window", "userland": "userland"} {
		if got, err := host.Choose(asked); got != want || err != nil {
			t.Errorf("asked for %q it takes %q, %v", asked, got, err)
		}
		if l, err := host.Own(asked, "tr_1"); err != nil {
			t.Errorf("asked for %q it makes %v, %v", asked, l, err)
		}
	}
	var lacks *mechanism.Unavailable
	for _, asked := range []mechanism.Name{"htb", "fq", "magic"} {
		if got, err := host.Own(asked, "tr_1"); !errors.As(err, &lacks) {
			t.Errorf("asked for %q it makes %v, %v", asked, got, err)
		}
	}
	if _, err := mechanism.Known.Probe([]mechanism.Name{"htb"}, means).Choose(""); !errors.As(err, &lacks) || !strings.Contains(err.Error(), none.Error()) {
		t.Errorf("a host that prefers only what it lacks: %v", err)
	}
	if _, err := host.Foreign("userland", "tr_1"); !errors.As(err, &lacks) {
		t.Errorf("a token bucket in somebody else's process: %v", err)
	}
}

func TestNames(t *testing.T) {
	names, err := mechanism.ParseNames("pacing, htb")
	if err != nil || !slices.Equal(names, []mechanism.Name{"pacing", "htb"}) {
		t.Errorf("%v, %v", names, err)
	}
	for _, text := range []string{"", "pacing,", "tbf"} {
		if names, err := mechanism.ParseNames(text); err == nil {
			t.Errorf("%q was taken as %v", text, names)
		}
	}
}

// A writer that knows nothing of rates, held from outside by its send buffer.
func TestABufferHoldsAnotherWriter(t *testing.T) {
	l, err := mechanism.Known.Probe([]mechanism.Name{mechanism.Window}, mechanism.Means{}).Foreign("", "tr_1")
	if err != nil {
		t.Fatal(l, err)
	}
	c := pair(t)
	before := sendBuffer(t, c)
	if _, err := l.SetRate(50_000_000); err != nil {
		t.Fatal(err)
	}
	if err := l.Attach(c); err != nil {
		t.Fatal(err)
	}
	for now := int64(1); now < 1_000_000; now += pacing.BalanceEvery {
		if err := l.Balance(now); err != nil {
			t.Fatal(err)
		}
	}
	if got := sendBuffer(t, c); got > before {
		t.Errorf("the buffer grew from %d to %d bytes", before, got)
	}
	// On a path as short as this one no window is small enough.
	if got := pacingRate(c); got != 50_000_000/8 {
		t.Errorf("beneath the window the kernel paces to %d bytes/s", got)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var locked int
	_ = c.Control(func(fd uintptr) { locked, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BUF_LOCK) })
	if locked != 0 {
		t.Errorf("SO_BUF_LOCK is %d after the end", locked)
	}
	if got := pacingRate(c); got != math.MaxUint64 {
		t.Errorf("paced to %d bytes/s after the end", got)
	}
}

func pacingRate(c *tcpsock.Conn) (bytesPerSecond uint64) {
	_ = c.Control(func(fd uintptr) {
		bytesPerSecond, _ = unix.GetsockoptUint64(int(fd), unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE)
	})
	return bytesPerSecond
}

func sendBuffer(t *testing.T, c *tcpsock.Conn) (bytes int) {
	t.Helper()
	_ = c.Control(func(fd uintptr) { bytes, _ = tcpsock.SendBuffer(int(fd)) })
	return bytes
}
