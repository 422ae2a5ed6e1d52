// SPDX-License-Identifier: Apache-2.0

package tclinux_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"bandwidthbroker/agents/internal/tclinux"
	"bandwidthbroker/agents/internal/tclinux/tctest"
)

var (
	near = netip.MustParseAddr("10.9.0.2")
	far  = netip.MustParseAddr("192.0.2.7")
)

func newKernel() *tctest.Kernel {
	k := tctest.New("eth0", "eth1")
	k.Routes[near], k.Routes[far] = "eth0", "eth1"
	return k
}

func open(t testing.TB, system tclinux.System) *tclinux.Shaper {
	t.Helper()
	s, err := tclinux.Open(system)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func to(remote netip.Addr, rate int64, first, last uint16) tclinux.Class {
	return tclinux.Class{Remote: remote, RateBps: rate, Matches: []tclinux.Match{{
		Protocol: tclinux.TCP, Destination: netip.PrefixFrom(remote, remote.BitLen()), DestinationPorts: tclinux.Ports{First: first, Last: last},
	}}}
}

func want(t testing.TB, s *tclinux.Shaper, owner string, c tclinux.Class) {
	t.Helper()
	if err := s.Want(owner, c); err != nil {
		t.Fatalf("%s: %v", owner, err)
	}
}

func sync(t testing.TB, s *tclinux.Shaper) int {
	t.Helper()
	done, err := s.Sync()
	if err != nil {
		t.Fatal(err)
	}
	return len(done)
}

// The text is what an administrator would have to type.
func TestOperations(t *testing.T) {
	k := newKernel()
	s := open(t, k)
	step := func(name, golden string) {
		t.Helper()
		k.Log = nil
		sync(t, s)
		if got := strings.Join(k.Log, "\n"); got != strings.TrimSpace(golden) {
			t.Errorf("%s:\n%s\nwant:\n%s", name, got, golden)
		}
	}
	want(t, s, "a", to(near, 800_000_000, 5201, 5202))
	want(t, s, "b", tclinux.Class{Remote: far, RateBps: 40_000_000_000})
	step("two owners", `
qdisc add dev eth0 root handle bbb: htb default 0 r2q 47
qdisc add dev eth1 root handle bbb: htb default 0 r2q 47
class add dev eth0 parent bbb: classid bbb:1 htb rate 800000000bit ceil 800000000bit burst 100000 cburst 100000 quantum 100000
class add dev eth1 parent bbb: classid bbb:1 htb rate 40000000000bit ceil 40000000000bit burst 5000000 cburst 5000000 quantum 200000
filter add dev eth0 parent bbb: protocol ip prio 1 u32 match u32 05000000 0f000000 at 0 match u32 00000000 00001fff at 4 match u32 00060000 00ff0000 at 8 match u32 0a090002 ffffffff at 16 match u32 00001451 0000ffff at 20 flowid bbb:1
filter add dev eth0 parent bbb: protocol ip prio 1 u32 match u32 05000000 0f000000 at 0 match u32 00000000 00001fff at 4 match u32 00060000 00ff0000 at 8 match u32 0a090002 ffffffff at 16 match u32 00001452 0000ffff at 20 flowid bbb:1`)
	step("the same again", ``)

	want(t, s, "b", tclinux.Class{Remote: far, RateBps: 10_000_000})
	want(t, s, "a", to(near, 900_000_000, 5201, 5201))
	want(t, s, "c", tclinux.Class{Remote: near, RateBps: 1_000_000})
	step("less before new before more before old", `
class change dev eth1 parent bbb: classid bbb:1 htb rate 10000000bit ceil 10000000bit burst 1250 cburst 1250 quantum 1514
class add dev eth0 parent bbb: classid bbb:2 htb rate 1000000bit ceil 1000000bit burst 125 cburst 125 quantum 1514
class change dev eth0 parent bbb: classid bbb:1 htb rate 900000000bit ceil 900000000bit burst 112500 cburst 112500 quantum 112500
filter del dev eth0 parent bbb: handle 800:0:2 protocol ip prio 1 u32 match u32 05000000 0f000000 at 0 match u32 00000000 00001fff at 4 match u32 00060000 00ff0000 at 8 match u32 0a090002 ffffffff at 16 match u32 00001452 0000ffff at 20 flowid bbb:1`)

	k.Routes[far] = "eth0"
	step("another way: new class first", `
class add dev eth0 parent bbb: classid bbb:3 htb rate 10000000bit ceil 10000000bit burst 1250 cburst 1250 quantum 1514
qdisc del dev eth1 root handle bbb:`)

	v6 := netip.MustParseAddr("2001:db8::7")
	k.Routes[v6] = "eth1"
	want(t, s, "d", tclinux.Class{Remote: v6, RateBps: 80_000_000, Matches: []tclinux.Match{{
		Protocol: tclinux.UDP, Destination: netip.MustParsePrefix("2001:db8::/48"), SourcePorts: tclinux.Ports{First: 1024, Last: 65535},
	}}})
	s.Drop("a")
	s.Drop("b")
	step("IPv6, and the order at the end", `
qdisc add dev eth1 root handle bbb: htb default 0 r2q 47
class add dev eth1 parent bbb: classid bbb:1 htb rate 80000000bit ceil 80000000bit burst 10000 cburst 10000 quantum 10000
filter add dev eth1 parent bbb: protocol ipv6 prio 2 u32 match u32 00001100 0000ff00 at 4 match u32 20010db8 ffffffff at 24 match u32 00000000 ffff0000 at 28 match u32 04000000 fc000000 at 40 flowid bbb:1
filter add dev eth1 parent bbb: protocol ipv6 prio 2 u32 match u32 00001100 0000ff00 at 4 match u32 20010db8 ffffffff at 24 match u32 00000000 ffff0000 at 28 match u32 08000000 f8000000 at 40 flowid bbb:1
filter add dev eth1 parent bbb: protocol ipv6 prio 2 u32 match u32 00001100 0000ff00 at 4 match u32 20010db8 ffffffff at 24 match u32 00000000 ffff0000 at 28 match u32 10000000 f0000000 at 40 flowid bbb:1
filter add dev eth1 parent bbb: protocol ipv6 prio 2 u32 match u32 00001100 0000ff00 at 4 match u32 20010db8 ffffffff at 24 match u32 00000000 ffff0000 at 28 match u32 20000000 e0000000 at 40 flowid bbb:1
filter add dev eth1 parent bbb: protocol ipv6 prio 2 u32 match u32 00001100 0000ff00 at 4 match u32 20010db8 ffffffff at 24 match u32 00000000 ffff0000 at 28 match u32 40000000 c0000000 at 40 flowid bbb:1
filter add dev eth1 parent bbb: protocol ipv6 prio 2 u32 match u32 00001100 0000ff00 at 4 match u32 20010db8 ffffffff at 24 match u32 00000000 ffff0000 at 28 match u32 80000000 80000000 at 40 flowid bbb:1
filter del dev eth0 parent bbb: handle 800:0:1 protocol ip prio 1 u32 match u32 05000000 0f000000 at 0 match u32 00000000 00001fff at 4 match u32 00060000 00ff0000 at 8 match u32 0a090002 ffffffff at 16 match u32 00001451 0000ffff at 20 flowid bbb:1
class del dev eth0 parent bbb: classid bbb:1
class del dev eth0 parent bbb: classid bbb:3`)

	s.Drop("c")
	want(t, s, "e", tclinux.Class{Remote: near, FQ: true})
	step("fq in the place of htb", `
qdisc del dev eth0 root handle bbb:
qdisc add dev eth0 root handle bbb: fq`)
	k.Log = nil
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(k.Log, "\n"); got != "qdisc del dev eth0 root handle bbb:\nqdisc del dev eth1 root handle bbb:" {
		t.Errorf("at the end:\n%s", got)
	}
	if k.State() != newKernel().State() {
		t.Errorf("left:\n%s", k.State())
	}
}

func TestASecondSyncDoesNothing(t *testing.T) {
	s := open(t, newKernel())
	for i := range uint16(20) {
		want(t, s, fmt.Sprint(i), to([]netip.Addr{near, far}[i%2], 1_000_000*int64(i+1), 1000*i, 1000*i+700))
	}
	if n := sync(t, s); n < 40 {
		t.Errorf("%d operations for 20 classes", n)
	}
	for range 3 {
		if n := sync(t, s); n != 0 {
			t.Errorf("%d operations with nothing to do", n)
		}
	}
}

func TestWhatIsRefused(t *testing.T) {
	k := newKernel()
	k.SetRoot(tclinux.Qdisc{Device: "eth1", Kind: "fq_codel", Handle: 0x8001 << 16})
	s := open(t, k)
	want(t, s, "a", to(near, 1_000_000, 80, 90))
	tooMany := to(near, 1e6, 1, 65534)
	tooMany.Matches[0].SourcePorts = tclinux.Ports{First: 1, Last: 65534}
	mixed := to(near, 1e6, 1, 1)
	mixed.Matches[0].Source = netip.MustParsePrefix("2001:db8::1/128")
	portless := to(near, 1e6, 1, 1)
	portless.Matches[0].Protocol = 0
	for _, c := range []struct {
		class tclinux.Class
		why   string
	}{
		{to(far, 1e6, 1, 1), "device eth1 has the root qdisc fq_codel 8001:, which somebody configured, and there can be only one: remove it (tc qdisc del dev eth1 root) or choose another mechanism"},
		{to(netip.MustParseAddr("203.0.113.1"), 1e6, 1, 1), "no way to 203.0.113.1: network is unreachable"},
		{to(near, 0, 1, 1), "rate of 0 bit/s: want 10000 to 1000000000000000"},
		{to(near, 1e6, 2, 1), "match 0: destination ports 2-1: the first is above the last"},
		{to(near, 1e6, 85, 100), "some of the packets are matched by a already"},
		{tclinux.Class{Remote: near, RateBps: 1e6, Matches: []tclinux.Match{{Protocol: tclinux.TCP}}}, "match 0: no address and no port: it would take every packet of the host"},
		{tclinux.Class{RateBps: 1e6}, "neither a device nor a remote address"},
		{tclinux.Class{Device: "eth7", RateBps: 1e6}, `no device "eth7"`},
		{tclinux.Class{Remote: near, FQ: true}, "device eth0 cannot have fq and classes of htb at once: a uses the other"},
		{tclinux.Class{Remote: near, FQ: true, RateBps: 1}, "fq takes rates from sockets: no rate and no matches here"},
		{tooMany, "the port ranges need 900 filters, more than 256: choose ranges that begin and end at multiples of a power of two"},
		{mixed, "match 0: source 2001:db8::1/128 and destination 10.9.0.2/32 are of two address families"},
		{portless, "match 0: destination ports without a protocol that has ports (TCP or UDP)"},
	} {
		if err := s.Want("b", c.class); err == nil || err.Error() != c.why {
			t.Errorf("%+v: %v\nwant %s", c.class, err, c.why)
		}
	}
	if n := sync(t, s); n != 5 { // root, class, and 80-90 as 80-87, 88-89, 90
		t.Errorf("%d operations\n%s", n, strings.Join(k.Log, "\n"))
	}
	foreign := new(tclinux.ForeignQdisc)
	k.SetRoot(tclinux.Qdisc{Device: "eth0", Kind: "tbf", Handle: 1 << 16})
	if _, err := s.Sync(); !errors.As(err, &foreign) || foreign.Qdisc.Kind != "tbf" {
		t.Errorf("somebody took the device over: %v", err)
	}
	if _, held := s.ID("a"); held {
		t.Error("a class that is gone is still named")
	}
	if err := s.Close(); err != nil || !strings.Contains(k.State(), "eth0 tbf 1:") {
		t.Errorf("%v\n%s", err, k.State())
	}
	if _, err := s.Sync(); !errors.Is(err, tclinux.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// Where fq is there already, with one queue or with several, it is used as it is.
func TestFQIsLeftAsItIs(t *testing.T) {
	for _, root := range []tclinux.Qdisc{
		{Device: "eth0", Kind: "fq", Handle: 1 << 16}, {Device: "eth0", Kind: "fq"}, {Device: "eth0", Kind: "mq", Handle: 1 << 16, Leaves: []string{"fq", "fq"}},
	} {
		k := newKernel()
		k.SetRoot(root)
		s := open(t, k)
		want(t, s, "a", tclinux.Class{Remote: near, FQ: true})
		if n := sync(t, s); n != 0 {
			t.Errorf("%v: %s", root, k.Log)
		}
		if err := s.PacesByFQ(near); err != nil {
			t.Error(err)
		}
		if err := s.PacesByFQ(far); err == nil || !strings.HasPrefix(err.Error(), "device eth1 has the qdisc pfifo_fast, not fq") {
			t.Error(err)
		}
	}
	k := newKernel()
	k.SetRoot(tclinux.Qdisc{Device: "eth0", Kind: "mq", Handle: 1 << 16, Leaves: []string{"fq", "fq_codel"}})
	if err := open(t, k).Want("a", tclinux.Class{Remote: near, FQ: true}); err == nil {
		t.Error("one queue does not pace, and nobody said so")
	}
}

// A class whose filters are the wanted ones is taken over, counters and all; the others go.
func TestWhatACrashLeft(t *testing.T) {
	k := newKernel()
	s := open(t, k)
	want(t, s, "gone", to(near, 1_000_000, 1, 1))
	want(t, s, "observed", to(near, 2_000_000, 2, 2))
	want(t, s, "socket", tclinux.Class{Remote: far, RateBps: 3_000_000})
	sync(t, s)
	id, _ := s.ID("observed")
	k.Send("eth0", uint16(id), 12345, 9)
	k.Restart()
	k.Log = nil
	s = open(t, k)
	if n := sync(t, s); n != 0 {
		t.Errorf("%d operations before anybody could say what is wanted: %s", n, k.Log)
	}
	want(t, s, "observed", to(near, 4_000_000, 2, 2))
	if n := sync(t, s); n != 1 {
		t.Errorf("%d operations: %s", n, k.Log)
	}
	if _, err := s.Sweep(); err != nil {
		t.Error(err)
	}
	if got := strings.Join(k.Log, "\n"); !strings.HasPrefix(got, "class change dev eth0 parent bbb: classid bbb:2 ") || strings.Count(got, "\n") != 3 ||
		!strings.HasSuffix(got, "class del dev eth0 parent bbb: classid bbb:1\nqdisc del dev eth1 root handle bbb:") {
		t.Errorf("after a crash:\n%s", got)
	}
	read, err := s.Read("observed")
	if want := (tclinux.Reading{Device: "eth0", ID: id, RateBps: 4_000_000, Bytes: 12345, Packets: 9}); err != nil || read != want {
		t.Errorf("%+v, %v", read, err)
	}
	if all := s.Readings(); len(all) != 1 || all["observed"] != read {
		t.Errorf("%v", all)
	}
}

// states brings a shaper through the life of some transfers; each is a desired state.
var states = []map[string]tclinux.Class{
	{"a": to(near, 1e9, 5201, 5210), "b": to(far, 2e9, 1, 1)},
	{"a": to(near, 5e8, 5201, 5204), "b": to(far, 3e9, 1, 1), "c": {Remote: near, RateBps: 1e6}},
	{"b": to(near, 1e6, 1, 1), "c": {Remote: near, RateBps: 2e6}, "d": to(far, 1e7, 7, 7)},
	{"d": to(far, 1e7, 7, 8)},
	{},
}

// apply sets a desired state and carries it out; an error is that of Sync.
func apply(t testing.TB, s *tclinux.Shaper, state map[string]tclinux.Class) (int, error) {
	t.Helper()
	for _, owner := range []string{"a", "b", "c", "d"} {
		if _, wanted := state[owner]; !wanted {
			s.Drop(owner)
		}
	}
	for _, owner := range slices.Sorted(keys(state)) {
		want(t, s, owner, state[owner])
	}
	done, err := s.Sweep()
	return len(done), err
}

func keys(state map[string]tclinux.Class) func(func(string) bool) {
	return func(yield func(string) bool) {
		for owner := range state {
			if !yield(owner) {
				return
			}
		}
	}
}

// shapes is what matters of a state: how often which class with which filters, whatever its number.
func shapes(k *tctest.Kernel) string {
	lines := strings.Split(k.State(), "\n")
	names := map[string]string{}
	for i, line := range lines {
		words := strings.Fields(line)
		switch words[1] {
		case "class":
			names[words[0]+words[2]] = strings.Join(words[3:], " ")
		case "filter":
			_, minor, _ := strings.Cut(words[len(words)-1], ":")
			lines[i] = strings.TrimSuffix(line, minor) + names[words[0]+minor]
		}
	}
	for i, line := range lines {
		if words := strings.Fields(line); words[1] == "class" {
			lines[i] = words[0] + " class " + strings.Join(words[3:], " ")
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// Dying after any operation leaves a kernel from which the next start comes to what is wanted then, and from there to
// nothing.
func TestCrashAtEveryStep(t *testing.T) {
	crashes := 0
	for from := range states {
		for next := range states {
			for after := 0; ; after++ {
				k := newKernel()
				s := open(t, k)
				if _, err := apply(t, s, states[from]); err != nil {
					t.Fatal(err)
				}
				k.CrashAfter(after)
				_, err := apply(t, s, states[next])
				if err == nil {
					break
				}
				if !errors.Is(err, tctest.ErrCrash) {
					t.Fatal(err)
				}
				crashes++
				k.Restart()
				s = open(t, k)
				if _, err := apply(t, s, states[next]); err != nil {
					t.Fatalf("%d to %d, died after %d operations: %v", from, next, after, err)
				}
				straight := newKernel()
				if _, err := apply(t, open(t, straight), states[next]); err != nil {
					t.Fatal(err)
				}
				if got, want := shapes(k), shapes(straight); got != want {
					t.Errorf("%d to %d, died after %d operations:\n%s\nwant\n%s", from, next, after, got, want)
				}
				if n := sync(t, s); n != 0 {
					t.Errorf("%d to %d, died after %d operations: %d more to do", from, next, after, n)
				}
				if err := s.Close(); err != nil || k.State() != newKernel().State() {
					t.Errorf("%d to %d, died after %d operations: %v, left\n%s", from, next, after, err, k.State())
				}
			}
		}
	}
	if crashes < 100 {
		t.Errorf("only %d crashes were tried", crashes)
	}
}

// Whatever is asked for, dropped, refused or interrupted on the way, a Sync that succeeds brings the kernel to what is
// wanted, and the next finds nothing to do.
func TestAnySequenceConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := newKernel()
		s, _ := tclinux.Open(k)
		wanted := map[string]tclinux.Class{}
		owners := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"})
		t.Repeat(map[string]func(*rapid.T){
			"want": func(t *rapid.T) {
				owner, first := owners.Draw(t, "owner"), rapid.Uint16Range(0, 40).Draw(t, "first")
				c := to(rapid.SampledFrom([]netip.Addr{near, far}).Draw(t, "remote"), rapid.Int64Range(10_000, 1e11).Draw(t, "rate"),
					first, first+rapid.Uint16Range(0, 9).Draw(t, "more"))
				if rapid.Bool().Draw(t, "socket") {
					c.Matches = nil
				}
				if s.Want(owner, c) == nil {
					wanted[owner] = c
				}
			},
			"drop": func(t *rapid.T) {
				owner := owners.Draw(t, "owner")
				s.Drop(owner)
				delete(wanted, owner)
			},
			"somebody removes a qdisc": func(t *rapid.T) {
				k.SetRoot(tclinux.Qdisc{Device: rapid.SampledFrom([]string{"eth0", "eth1"}).Draw(t, "device"), Kind: "pfifo_fast"})
			},
			"route": func(t *rapid.T) { k.Routes[near], k.Routes[far] = k.Routes[far], k.Routes[near] },
			"crash": func(t *rapid.T) {
				k.CrashAfter(rapid.IntRange(0, 6).Draw(t, "after"))
				_, _ = s.Sync()
				k.Restart()
				s, _ = tclinux.Open(k)
				for owner, c := range wanted {
					if err := s.Want(owner, c); err != nil {
						t.Fatal(err)
					}
					if rapid.Bool().Draw(t, "one by one") {
						_, _ = s.Sync()
					}
				}
				_, _ = s.Sweep()
			},
			"": func(t *rapid.T) {
				if _, err := s.Sync(); err != nil {
					t.Fatal(err)
				}
				if done, err := s.Sync(); err != nil || len(done) != 0 {
					t.Fatalf("%v, still to do: %v", err, done)
				}
				straight := newKernel()
				straight.Routes = k.Routes
				fresh, _ := tclinux.Open(straight)
				for owner, c := range wanted {
					if err := fresh.Want(owner, c); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := fresh.Sync(); err != nil || shapes(k) != shapes(straight) {
					t.Fatalf("%v\n%s\nwant\n%s", err, shapes(k), shapes(straight))
				}
				ids := map[string]bool{}
				for owner := range wanted {
					r, err := s.Read(owner)
					name := fmt.Sprint(r.Device, r.ID)
					if err != nil || ids[name] || r.RateBps != (wanted[owner].RateBps+7)/8*8 {
						t.Fatalf("%s: %+v, %v", owner, r, err)
					}
					ids[name] = true
				}
			},
		})
	})
}

// A class that owes time at a low rate gives its packets to a new one when the rate rises, and the count goes on.
func TestDebtIsLeftBehind(t *testing.T) {
	k := newKernel()
	s := open(t, k)
	want(t, s, "a", to(near, 1_000_000, 7, 7))
	want(t, s, "socket", tclinux.Class{Remote: near, RateBps: 1_000_000})
	sync(t, s)
	for minor := range uint16(3) {
		k.Owe("eth0", minor, 500*time.Millisecond)
	}
	k.Send("eth0", 1, 5000, 5)
	for i, c := range []struct {
		rate       int64
		operations int
		minor      uint32
	}{{900_000, 2, 1}, {1e9, 2 + 2 + 1, 3}, {2e9, 2, 3}} {
		want(t, s, "a", to(near, c.rate, 7, 7))
		want(t, s, "socket", tclinux.Class{Remote: near, RateBps: c.rate})
		k.Log = nil
		if n := sync(t, s); n != c.operations {
			t.Errorf("step %d:\n%s", i, strings.Join(k.Log, "\n"))
		}
		k.Send("eth0", 3, 100, 1)
		if r, err := s.Read("a"); err != nil || r.ID != tclinux.Handle|c.minor || r.RateBps != c.rate || r.Bytes < 5000 || r.Packets < 5 {
			t.Errorf("step %d: %+v, %v", i, r, err)
		}
	}
	if r, _ := s.Read("a"); r.Bytes != 5200 || r.Packets != 7 {
		t.Errorf("counted %+v", r)
	}
}

// A new class that could not be made leaves the old one, and its count, as they were.
func TestDebtAndFailure(t *testing.T) {
	for after := range 4 {
		k := newKernel()
		s := open(t, k)
		want(t, s, "a", to(near, 1_000_000, 7, 7))
		sync(t, s)
		k.Owe("eth0", 1, time.Second)
		k.Send("eth0", 1, 5000, 5)
		want(t, s, "a", to(near, 1e9, 7, 7))
		k.CrashAfter(after)
		if _, err := s.Sync(); !errors.Is(err, tctest.ErrCrash) {
			t.Fatal(err)
		}
		k.CrashAfter(-1)
		sync(t, s)
		if r, err := s.Read("a"); err != nil || r.Bytes != 5000 || r.RateBps != 1e9 {
			t.Errorf("failed after %d operations: %+v, %v", after, r, err)
		}
		if n := sync(t, s); n != 0 {
			t.Errorf("failed after %d operations: %d more", after, n)
		}
	}
}

func TestOnlyOneShapes(t *testing.T) {
	k := newKernel()
	open(t, k)
	if _, err := tclinux.Open(k); err == nil {
		t.Error("two at once")
	}
}
