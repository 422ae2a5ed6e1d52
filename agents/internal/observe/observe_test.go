// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"bandwidthbroker/agents/internal/agentstate"
	"bandwidthbroker/agents/internal/brokerapi"
	"bandwidthbroker/agents/internal/mover"
	"bandwidthbroker/agents/internal/schedule"
	"bandwidthbroker/agents/internal/tclinux"
	"bandwidthbroker/agents/internal/tclinux/tctest"
	"bandwidthbroker/agents/internal/wirerate"
)

var (
	peer = netip.MustParseAddr("192.0.2.7")
	full = wirerate.TCP(1448, false, true, wirerate.Ethernet)
)

// bubble is broker time inside of synctest.
type bubble struct{}

func (bubble) Now() int64   { return time.Now().UnixMicro() }
func (bubble) Guard() int64 { return 1000 }

// outbox is one without a disk.
type outbox struct {
	reports []string
	started bool
	counted agentstate.Counted
	ended   brokerapi.AgentReportKind
	full    atomic.Bool // the disk
}

func (b *outbox) Report(kind brokerapi.AgentReportKind, f mover.Facts) error {
	if b.full.Load() {
		return errors.New("no space left")
	}
	b.reports = append(b.reports, strings.TrimSpace(fmt.Sprintf("%s %d %s %s", kind, f.Bytes, f.Code, f.Detail)))
	return nil
}
func (b *outbox) StartOnce() bool                             { first := !b.started; b.started = true; return first }
func (b *outbox) ShortfallOnce(int64) bool                    { return false }
func (b *outbox) End(outcome brokerapi.AgentReportKind) error { b.ended = outcome; return nil }
func (b *outbox) Counted() agentstate.Counted                 { return b.counted }
func (b *outbox) Count(c agentstate.Counted)                  { b.counted = c }

// names knows one host, from its second question on.
type names struct{ asked int }

func (n *names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.asked++
	if host != "dtn-b" || n.asked == 1 {
		return nil, errors.New("no such host")
	}
	return []netip.Addr{peer}, nil
}

// play is an observer on a made-up kernel, in virtual time.
type play struct {
	t      *testing.T
	begin  time.Time
	kernel *tctest.Kernel
	shaper *tclinux.Shaper
	outbox *outbox
	names  *names
	orders mover.Orders
	allow  string // DefaultRules unless set
	*Observer
}

func newPlay(t *testing.T) *play {
	p := &play{t: t, begin: time.Now(), kernel: tctest.New("eth0"), outbox: &outbox{}, names: &names{}}
	p.kernel.Routes[peer] = "eth0"
	at := func(seconds int64) int64 { return p.begin.UnixMicro() + seconds*1_000_000 }
	p.orders = mover.Orders{
		Transfer: "tr_1", Send: true, Volume: 30_000_000, Fallback: 8_000_000, Peer: mover.Peer{Host: "dtn-b", Address: peer.String() + ":7411"},
		Match:    mover.Match{Protocol: "tcp", Address: "192.0.2.7", DestinationPorts: "5001"},
		Segments: []schedule.Segment{{Begin: at(10), End: at(12), RateBps: 80_000_000}, {Begin: at(12), End: at(13), RateBps: 160_000_000}},
	}
	return p
}

func (p *play) rules() Rules {
	p.t.Helper()
	text := p.allow
	if text == "" {
		text = DefaultRules
	}
	rules, err := ParseRules(text)
	if err != nil {
		p.t.Fatal(err)
	}
	return rules
}

func (p *play) start() {
	p.t.Helper()
	var err error
	if p.shaper, err = tclinux.Open(p.kernel); err != nil {
		p.t.Fatal(err)
	}
	p.Observer = Start(Options{Clock: bubble{}, Classes: p.shaper, Names: p.names, Rules: p.rules(), Outbox: p.outbox, Log: slog.New(slog.DiscardHandler)}, p.orders)
}

// until waits until so long after the begin of the play, and a moment more.
func (p *play) until(seconds float64) {
	time.Sleep(time.Until(p.begin.Add(time.Duration(seconds * float64(time.Second)))))
	synctest.Wait()
}

// send has full packets leave.
func (p *play) send(packets uint64) { p.kernel.Send("eth0", 1, 1514*packets, packets) }

func (p *play) rate() int64 {
	r, err := p.shaper.Read("tr_1")
	if err != nil {
		return 0
	}
	return r.RateBps
}

func (p *play) reported(want ...string) {
	p.t.Helper()
	if !slices.Equal(p.outbox.reports, want) {
		p.t.Errorf("reports %q, want %q", p.outbox.reports, want)
	}
}

func TestLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(t)
		p.start()
		wire := func(payload int64) int64 { return (full.Wire(payload) + 7) / 8 * 8 }
		for _, step := range []struct {
			at   float64
			rate int64
		}{{7.9, 0}, {8.1, tclinux.MinRateBps}, {9.999, tclinux.MinRateBps}, {10.0015, wire(80e6)}, {11.9, wire(80e6)}, {12.0015, wire(160e6)}, {12.9995, wire(8e6)}, {20, wire(8e6)}} {
			p.until(step.at)
			if got := p.rate(); got != step.rate {
				t.Errorf("at %v s: %d bit/s on the wire, want %d", step.at, got, step.rate)
			}
			if step.at == 11.9 {
				p.reported()
				p.send(10_000)
			}
		}
		p.reported("started 14480000")
		if got := p.Progress(); got != (mover.Progress{Bytes: 14_480_000, AppliedBps: 8_000_000, Connected: true}) {
			t.Errorf("%+v", got)
		}
		p.orders.Paused = true
		p.Update(p.orders)
		p.until(21)
		if p.rate() != tclinux.MinRateBps {
			t.Errorf("paused: %d bit/s", p.rate())
		}
		p.orders.Paused = false
		p.Update(p.orders)
		p.send(11_000)
		p.until(22)
		p.reported("started 14480000", "finished 30408000")
		if p.outbox.ended != brokerapi.Finished || p.rate() != wire(8e6) {
			t.Errorf("%s, and still %d bit/s", p.outbox.ended, p.rate())
		}
		p.Stop(true)
		if state := p.kernel.State(); state != "eth0 pfifo_fast 0:" {
			t.Errorf("left:\n%s", state)
		}
	})
}

func TestEnds(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(p *play)
		packets uint64
		at      float64
		want    []string
	}{
		"less than the volume": {nil, 100, 44, []string{"started 144800", "finished 144800"}},
		"nothing":              {nil, 0, 44, []string{"failed 0 nothing_observed no packet matched until 2000-01-01T00:00:43Z"}},
		"a foreign qdisc": {func(p *play) { p.kernel.SetRoot(tclinux.Qdisc{Device: "eth0", Kind: "tbf", Handle: 0x10000}) }, 0, 9,
			[]string{"failed 0 mechanism_unavailable htb: device eth0 has the root qdisc tbf 1:, which somebody configured, and there can be only one: " +
				"remove it (tc qdisc del dev eth0 root) or choose another mechanism"}},
		"nonsense": {func(p *play) { p.orders.Match.DestinationPorts = "9-1" }, 0, 9,
			[]string{`failed 0 internal match: destination_ports: "9-1": want a port, 5001, or a range, 5001-5010`}},
		"no way, ever": {func(p *play) { p.kernel.SetRoute(peer, "") }, 0, 14, []string{
			"failed 0 mechanism_unavailable htb: no way to 192.0.2.7: network is unreachable"}},
		"a name": {func(p *play) { p.orders.Match.Address = "dtn-b" }, 100, 12, []string{"started 144800"}},
		"a full disk": {func(p *play) {
			p.outbox.full.Store(true)
			time.AfterFunc(45*time.Second, func() { p.outbox.full.Store(false) })
		}, 100, 46, []string{"finished 144800"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPlay(t)
				if c.change != nil {
					c.change(p)
				}
				p.start()
				p.until(11)
				if c.packets > 0 {
					p.send(c.packets)
				}
				p.until(c.at)
				p.reported(c.want...)
				p.Stop(true)
			})
		})
	}
}

// A stop in good order removes the class and remembers the count; kill -9 leaves the class, and the next run goes on with
// it.
func TestRestarts(t *testing.T) {
	for name, again := range map[string]func(p *play){
		"stopped": func(p *play) { p.Stop(false); p.shaper.Close() },
		"killed": func(p *play) {
			kept := p.outbox.counted
			p.kernel.CrashAfter(0) // what it would still do is not done
			p.Stop(false)
			p.outbox.counted = kept
			p.kernel.Restart()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPlay(t)
				p.start()
				p.until(11)
				p.send(1000)
				p.until(11.2)
				p.send(3000)
				p.until(11.4)
				p.send(500) // and nobody has looked yet
				again(p)
				p.start()
				p.until(11.6)
				p.send(2000)
				p.until(11.8)
				if got := p.Progress().Bytes; got != 6500*1448 {
					t.Errorf("%d bytes, want %d", got, 6500*1448)
				}
				p.reported("started 1448000")
				p.Stop(true)
			})
		})
	}
}

// A class that somebody removes comes back by itself, and what it had counted is not lost.
func TestSomebodyRemovesTheClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(t)
		p.start()
		p.until(11)
		p.send(1000)
		p.until(11.2)
		p.kernel.SetRoot(tclinux.Qdisc{Device: "eth0", Kind: "pfifo_fast"})
		p.until(11.5)
		if p.rate() != (full.Wire(80e6)+7)/8*8 {
			t.Errorf("%d bit/s", p.rate())
		}
		p.send(500)
		p.until(11.8)
		if got := p.Progress().Bytes; got != 1500*1448 {
			t.Errorf("%d bytes", got)
		}
		p.Stop(true)
	})
}

// Packets that take another way find their class there.
func TestAnotherWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(t)
		p.kernel.SetRoot(tclinux.Qdisc{Device: "eth1", Kind: "pfifo_fast"})
		p.start()
		p.until(14)
		p.send(1000)
		p.kernel.SetRoute(peer, "eth1")
		p.until(20)
		if r, err := p.shaper.Read("tr_1"); err != nil || r.Device != "eth1" {
			t.Errorf("%+v, %v", r, err)
		}
		p.kernel.Send("eth1", 1, 1514*100, 100)
		p.until(21)
		if got := p.Progress().Bytes; got != 1100*1448 {
			t.Errorf("%d bytes", got)
		}
		p.Stop(true)
	})
}

// Packets that are smaller than the device allows have more headers: the class gets more, so that the payload is right.
func TestSmallerPackets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(t)
		p.start()
		p.until(10.5)
		p.kernel.Send("eth0", 1, 2000*(1200+66), 2000)
		p.until(10.8)
		if want := ((wirerate.Framing{Payload: 1200, Headers: 66}).Wire(80e6) + 7) / 8 * 8; p.rate() != want {
			t.Errorf("%d bit/s on the wire, want %d", p.rate(), want)
		}
		p.kernel.Send("eth0", 1, 20000*(20+66), 20000)
		p.until(11.1)
		if want := ((wirerate.Framing{Payload: minPayload, Headers: 66}).Wire(80e6) + 7) / 8 * 8; p.rate() != want {
			t.Errorf("%d bit/s on the wire, want %d", p.rate(), want)
		}
		p.Stop(true)
	})
}

// Whatever classes come and go, the count is the sum of what they counted, and never goes back.
func TestCountAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCount(agentstate.Counted{}, full)
		var bytes, packets uint64
		var sum int64
		for range rapid.IntRange(1, 30).Draw(t, "readings") {
			n := rapid.Uint64Range(0, 5000).Draw(t, "packets")
			size := rapid.Uint64Range(66, 1514).Draw(t, "size")
			if rapid.IntRange(0, 5).Draw(t, "event") == 0 && packets > n {
				bytes, packets = 0, 0 // a new class
			}
			bytes, packets = bytes+n*size, packets+n
			sum += int64(n * (size - 66))
			if got := c.take(bytes, packets); got != sum {
				t.Fatalf("%d, want %d", got, sum)
			}
			c.learn()
			if f := c.framing; f.Payload > full.Payload || f.Payload < minPayload {
				t.Fatalf("%+v", f)
			}
		}
	})
}

func FuzzPorts(f *testing.F) {
	for _, text := range []string{"", "5001", "5001-5010", "0", "9-1", "1-65536", "-", "1-2-3", " 1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parsePorts(text)
		if err != nil || text == "" {
			return
		}
		back := fmt.Sprintf("%d-%d", p.First, p.Last)
		if again, err := parsePorts(back); err != nil || again != p || p.First == 0 || p.Last < p.First {
			t.Errorf("%q is %v is %v, %v", text, p, again, err)
		}
	})
}

// Packets that the host's administrator has not let be observed are not touched: the transfer fails, long before its time where no name must
// be looked up, and says why.
func TestWhatIsNotAllowedIsNotTouched(t *testing.T) {
	for name, change := range map[string]func(p *play){
		"somebody else's flow": func(p *play) { p.orders.Match.Address = "192.0.2.99" },
		"every port":           func(p *play) { p.orders.Match.DestinationPorts = "" },
		"administration":       func(p *play) { p.orders.Match.DestinationPorts = "22" },
		"the agents' own":      func(p *play) { p.orders.Match.DestinationPorts = "7000-8000" },
		"a stricter host":      func(p *play) { p.allow = "none" },
		"no peer":              func(p *play) { p.orders.Peer = mover.Peer{} },
		"by name":              func(p *play) { p.orders.Match.Address, p.names.asked, p.allow = "dtn-b", 1, "198.51.100.0/24" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPlay(t)
				p.kernel.Routes[netip.MustParseAddr("192.0.2.99")] = "eth0"
				change(p)
				p.start()
				said := func() bool {
					return len(p.outbox.reports) == 1 && strings.HasPrefix(p.outbox.reports[0], "failed 0 match_refused ")
				}
				p.until(0.001)
				if name != "by name" && name != "no peer" && !said() {
					t.Errorf("at once: %q", p.outbox.reports)
				}
				p.until(20)
				if !said() {
					t.Errorf("in the end: %q", p.outbox.reports)
				}
				if p.rate() != 0 || p.Progress().Connected {
					t.Errorf("packets are held to %d bit/s", p.rate())
				}
				p.Stop(true)
			})
		})
	}
}
