// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bandwidthbroker/agents/internal/mechanism"
	"bandwidthbroker/agents/internal/schedule"
	"bandwidthbroker/agents/internal/tclinux"
)

// inside marks the process that runs in a network namespace of its own.
const inside = "BWB_TEST_INSIDE_A_NAMESPACE"

// alone runs the test again in a fresh network namespace, whose loopback carries Ethernet's frames, and returns whether
// this is that run.
func alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inside) != "" {
		return true
	}
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED, mechanisms were not tried on a kernel's network of their own: it needs root; run `sudo go test ./internal/mover -run " + t.Name() + "`")
	}
	again := exec.Command("unshare", "--net", "sh", "-c", `ip link set lo mtu 1500 up && exec "$0" -test.run "^$1\$" -test.v -test.parallel 8`, os.Args[0], t.Name())
	again.Env = append(os.Environ(), inside+"=1")
	out, err := again.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
	return false
}

// By every mechanism what the receiving kernel takes follows the booking: within 1 % over each segment of 2 s (userland: at most
// 5 % below), and never more than 1 % and a burst above it over 100 ms. What this host itself was late is left out.
func TestMechanismsOnTheKernel(t *testing.T) {
	if !alone(t) {
		return
	}
	kernel, err := tclinux.OpenKernel()
	if err != nil {
		t.Fatal(err)
	}
	var means mechanism.Means
	if shaper, err := tclinux.Open(kernel); err != nil {
		means.NoClasses = err
	} else {
		defer func() { _ = shaper.Close() }()
		means.Classes = tclinux.Sockets{Shaper: shaper}
	}
	means.NoFQ = tclinux.AnyFQ(kernel)
	means.FQ = func(to netip.Addr) error { return tclinux.PacesByFQ(kernel, to) }
	host := mechanism.Known.Probe([]mechanism.Name{mechanism.Pacing}, means)
	t.Run("all", func(t *testing.T) { // returns when the parallel ones have
		for _, r := range host.Reports() {
			t.Run(string(r.Name), func(t *testing.T) {
				if !r.Available {
					t.Skipf("SKIPPED, %s was not tried: %s", r.Name, r.Reason)
				}
				t.Parallel()
				follow(t, host, r.Name)
			})
		}
	})
	roots, err := kernel.Roots()
	if err != nil || slices.ContainsFunc(roots, func(q tclinux.Qdisc) bool { return q.Kind == "htb" }) {
		t.Errorf("left behind: %v, %v", roots, err)
	}
}

type taken struct{ at, bytes int64 }

func follow(t *testing.T, host Mechanisms, name mechanism.Name) {
	p := newPair(t, 30_000_000)
	begin := time.Now().UnixMicro() + 400_000
	booked := []schedule.Segment{
		{Begin: begin, End: begin + 2_000_000, RateBps: 40_000_000}, {Begin: begin + 2_000_000, End: begin + 5_000_000, RateBps: 75_000_000},
	}
	p.orders.Mechanism, p.orders.Segments = name, booked
	r := p.receiver()
	s := p.senderBy(host)
	var samples []taken
	var late, lost int64 // at most at once, and in all
	for now := int64(0); now < begin+4_000_000; {
		time.Sleep(10 * time.Millisecond)
		at := time.Now().UnixMicro()
		if now != 0 {
			late = max(late, at-now-10_000)
			lost += max(0, at-now-12_000)
		}
		now = at
		samples = append(samples, taken{now, r.Progress().Bytes})
	}
	s.Stop(false)
	if lost > 100_000 { // a sender that stood still as long was not slow by its mechanism; 20 to 45 ms are usual where nothing else runs
		t.Skipf("NOT SHOWN: a process that only sleeps was up to %.0f ms late on this host, %.0f ms in all", float64(late)/1000, float64(lost)/1000)
	}
	plan := schedule.New(booked)
	for i, b := range booked {
		got, span := between(samples, b.Begin, b.Begin+2_000_000)
		off := 100 * (float64(got)*8e6/float64(span)/float64(b.RateBps) - 1)
		t.Logf("segment %d: %+.2f %% off, this host was up to %.1f ms late, %.1f ms in all", i, off, float64(late)/1000, float64(lost)/1000)
		least := -1.0
		if name == mechanism.Userland {
			least = -5 // what its bucket lost while the process had to wait is not made up for
		}
		if slack := 100 * float64(late+lost) / 2_000_000; off < least-slack || off > 1+slack {
			t.Errorf("segment %d is %+.2f %% off", i, off)
		}
	}
	for i, j := 0, 0; j < len(samples); j++ {
		for samples[j].at-samples[i].at > 100_000 {
			i++
		}
		allowed := plan.Bytes(samples[i].at-late-20_000, samples[j].at)
		if got := samples[j].bytes - samples[i].bytes; got > allowed+allowed/100+chunkSize/4 {
			t.Errorf("%d bytes in %d ms, booked are %d", got, (samples[j].at-samples[i].at)/1000, allowed)
			break
		}
	}
}

// between is what was taken within an interval, and the time between its first and last sample.
func between(samples []taken, from, to int64) (bytes, span int64) {
	var first, last *taken
	for i := range samples {
		if s := &samples[i]; s.at >= from && s.at < to {
			if first == nil {
				first = s
			}
			last = s
		}
	}
	return last.bytes - first.bytes, max(last.at-first.at, 1)
}

// Reno, which doubles the window whatever the acknowledgements do, holds until something is lost; then cubic.
func TestCubicAfterALoss(t *testing.T) {
	if !alone(t) {
		return
	}
	p := newPair(t, 30_000_000)
	p.orders.Segments[0].RateBps = 40_000_000
	p.receiver()
	s := p.sender()
	awaitControl(t, s, 1_000_000, "reno")
	for _, state := range []string{"down", "up"} {
		if out, err := exec.Command("ip", "link", "set", "lo", state).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if state == "down" {
			time.Sleep(100 * time.Millisecond) // the retransmission time-out is 200 ms, so what is sent now is not repeated before
		}
	}
	awaitControl(t, s, 2_000_000, "cubic")
}

// awaitControl waits until so many bytes have come and the sender's socket has a congestion control.
func awaitControl(t *testing.T, s *Sender, bytes int64, want string) {
	t.Helper()
	var held string
	for deadline := time.Now().Add(10 * time.Second); s.Progress().Bytes < bytes || held != want; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%q after %d bytes, wanted is %q", held, s.Progress().Bytes, want)
		}
		if l := s.live.Load(); l != nil {
			_ = l.tcp.Control(func(fd uintptr) { held, _ = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION) })
		}
	}
}
