// SPDX-License-Identifier: Apache-2.0

package wrap

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bandwidthbroker/agents/internal/fitness"
	"bandwidthbroker/agents/internal/local"
	"bandwidthbroker/agents/internal/mechanism"
)

// TestMain makes this program what it is in the agent: its own shim; and the command of the tests.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "shim" {
		supervisor, _ := strconv.Atoi(os.Args[2])
		os.Exit(Shim(os.Args[3:], supervisor))
	}
	if len(os.Args) > 4 && os.Args[1] == "send" {
		send(os.Args[2], os.Args[3], os.Args[4])
		os.Exit(3)
	}
	os.Exit(m.Run())
}

// send is the command: so many connections send so many bytes each.
func send(to, streams, bytes string) {
	n, _ := strconv.Atoi(streams)
	size, _ := strconv.ParseInt(bytes, 10, 64)
	var sending sync.WaitGroup
	for range n {
		sending.Go(func() {
			conn, err := net.Dial("tcp", to)
			if err != nil {
				os.Exit(9)
			}
			buffer := make([]byte, 64<<10)
			for left := size; left > 0; {
				wrote, err := conn.Write(buffer[:min(left, int64(len(buffer)))])
				if err != nil {
					os.Exit(8)
				}
				left -= int64(wrote)
			}
			_ = conn.Close()
		})
	}
	sending.Wait()
}

// run interprets classic BPF as far as the filter uses it.
func run(t *testing.T, program []unix.SockFilter, number int32, arch uint32, args ...uint64) uint32 {
	t.Helper()
	data := make([]byte, 64)
	binary.NativeEndian.PutUint32(data[dataNumber:], uint32(number))
	binary.NativeEndian.PutUint32(data[dataArch:], arch)
	for i, arg := range args {
		binary.NativeEndian.PutUint64(data[dataArgs+8*i:], arg)
	}
	var a uint32
	for at := 0; at < len(program); at++ {
		in := program[at]
		jump := func(yes bool) {
			if yes {
				at += int(in.Jt)
			} else {
				at += int(in.Jf)
			}
		}
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			a = binary.NativeEndian.Uint32(data[in.K:])
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			jump(a == in.K)
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			jump(a&in.K != 0)
		case unix.BPF_RET | unix.BPF_K:
			return in.K
		default:
			t.Fatalf("instruction %#x", in.Code)
		}
	}
	t.Fatal("the program does not end")
	return 0
}

func TestTheFilterTellsOfConnectionsAlone(t *testing.T) {
	program, ok := filter()
	if !ok {
		t.Skipf("NOT SHOWN on %s: connections are found by scanning there", runtime.GOARCH)
	}
	arch := architectures[runtime.GOARCH]
	for _, c := range []struct {
		name   string
		number int32
		arch   uint32
		args   []uint64
		told   bool
	}{
		{"connect", unix.SYS_CONNECT, arch, nil, true},
		{"connect of a 32-bit program", unix.SYS_CONNECT, arch ^ 1, nil, false},
		{"write", unix.SYS_WRITE, arch, nil, false},
		{"sendto", unix.SYS_SENDTO, arch, []uint64{3, 0, 0, unix.MSG_NOSIGNAL}, false},
		{"sendto that connects", unix.SYS_SENDTO, arch, []uint64{3, 0, 0, unix.MSG_NOSIGNAL | fastOpen}, true},
		{"sendto of so many bytes", unix.SYS_SENDTO, arch, []uint64{3, 0, fastOpen, 0}, false},
		{"sendmsg", unix.SYS_SENDMSG, arch, []uint64{3, 0, 0}, false},
		{"sendmsg that connects", unix.SYS_SENDMSG, arch, []uint64{3, 0, fastOpen}, true},
	} {
		want := uint32(unix.SECCOMP_RET_ALLOW)
		if c.told {
			want = unix.SECCOMP_RET_USER_NOTIF
		}
		if got := run(t, program, c.number, c.arch, c.args...); got != want {
			t.Errorf("%s: %#x", c.name, got)
		}
	}
}

func TestChoice(t *testing.T) {
	ports, err := ParsePorts("873, 8000-8002")
	if err != nil || len(ports) != 4 {
		t.Fatal(ports, err)
	}
	to, err := ParseAddresses("192.0.2.0/24,2001:db8::7")
	if err != nil {
		t.Fatal(err)
	}
	at := netip.MustParseAddrPort
	none := netip.AddrPort{}
	for _, c := range []struct {
		choice    Choice
		local, to netip.AddrPort
		want      bool
	}{
		{Choice{}, none, at("192.0.2.7:80"), true},
		{Choice{}, none, at("127.0.0.1:80"), false},
		{Choice{}, none, at("[::1]:80"), false},
		{Choice{}, none, at("0.0.0.0:80"), false},
		{Choice{}, none, none, false},
		{Choice{Loopback: true}, none, at("[::ffff:127.0.0.1]:80"), true},
		{Choice{Ports: ports}, none, at("192.0.2.7:80"), false},
		{Choice{Ports: ports}, none, at("192.0.2.7:8002"), true},
		{Choice{Ports: ports}, at("192.0.2.1:873"), at("192.0.2.7:50000"), true},
		{Choice{To: to}, none, at("[2001:db8::7]:1"), true},
		{Choice{To: to}, none, at("[::ffff:192.0.2.9]:1"), true},
		{Choice{To: to}, none, at("198.51.100.1:1"), false},
	} {
		if got := c.choice.takes(c.local, c.to); got != c.want {
			t.Errorf("%+v takes %v: %v", c.choice, c.to, got)
		}
	}
	for _, text := range []string{"", "0", "70000", "9-8", "x", "1,,2"} {
		if _, err := ParsePorts(text); err == nil {
			t.Errorf("ports %q", text)
		}
		if _, err := ParseAddresses(text + "/x"); err == nil {
			t.Errorf("addresses %q", text)
		}
	}
}

func FuzzAddress(f *testing.F) {
	f.Add([]byte{2, 0, 0, 80, 127, 0, 0, 1})
	f.Add([]byte{10, 0, 0, 80})
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, raw []byte) {
		if to, inet := parseAddress(raw); to.IsValid() && !inet {
			t.Fatal("an address of another family")
		}
	})
}

// orders is a daemon that gives one schedule and keeps the reports.
type orders struct {
	local.Orders
	mu      sync.Mutex
	reports []local.Report
	line    atomic.Pointer[local.Line]
}

func (o *orders) About() local.About { return local.About{} }

func (o *orders) Serve(line *local.Line, _ local.Hello, _ int) {
	o.line.Store(line)
	_ = line.Send(local.Message{Time: &local.Time{Monotonic: local.Monotonic(), Broker: local.Monotonic(), Guard: 1000}}, -1)
	_ = line.Send(local.Message{Orders: &o.Orders}, -1)
	for {
		m, _, err := line.Receive()
		if err != nil {
			return
		}
		if m.Report != nil {
			o.mu.Lock()
			o.reports = append(o.reports, *m.Report)
			o.mu.Unlock()
			_ = line.Send(local.Message{Taken: &local.Taken{Number: m.Report.Number}}, -1)
		}
	}
}

func (o *orders) last(t *testing.T, kind string) local.Report {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.reports) == 0 || o.reports[len(o.reports)-1].Kind != kind {
		t.Fatalf("reports: %+v", o.reports)
	}
	return o.reports[len(o.reports)-1]
}

// supervised runs a command by a schedule. Broker time is monotonic time here.
func supervised(t *testing.T, o *orders, command ...string) (code int, said string, err error) {
	t.Helper()
	path := local.Path(t.TempDir())
	server, err := local.Listen(path, "", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go server.Serve(o)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	client := local.NewClient(path, "tr_1")
	go func() {
		if err := client.Run(ctx); err != nil {
			cancel(err)
		}
	}()
	var messages strings.Builder
	code, err = New(Options{
		Command: command, Shim: []string{"wrap.test", "shim"}, Choice: Choice{Loopback: true}, Client: client,
		Limiter: mechanism.NewPacing, Signals: make(chan os.Signal), Messages: &messages,
	}).Run(ctx)
	return code, messages.String(), err
}

// sink takes everything and says how much, and when the first and the last byte came.
type sink struct {
	net.Listener
	bytes       atomic.Int64
	first, last atomic.Int64
	open        sync.WaitGroup
}

func newSink(t *testing.T) *sink {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &sink{Listener: listener}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.open.Go(func() {
				buffer := make([]byte, 64<<10)
				for {
					n, err := conn.Read(buffer)
					s.bytes.Add(int64(n))
					s.first.CompareAndSwap(0, local.Monotonic())
					s.last.Store(local.Monotonic())
					if err != nil {
						if !errors.Is(err, io.EOF) {
							s.bytes.Add(-1 << 40) // not an orderly end
						}
						return
					}
				}
			})
		}
	}()
	return s
}

func flat(rate int64, length time.Duration) *orders {
	now := local.Monotonic() + 300_000
	return &orders{Orders: local.Orders{
		Transfer: "tr_1", Volume: rate / 8, Segments: []local.Segment{{Begin: now, End: now + length.Microseconds(), RateBps: rate}},
	}}
}

func TestACommandKeepsToItsRate(t *testing.T) {
	const rate, streams, each = 400_000_000, 4, 10_000_000
	machine := fitness.Begin()
	defer machine.End()
	to := newSink(t)
	o := flat(rate, 3*time.Second)
	o.Volume = streams * each
	begin := o.Segments[0].Begin
	code, said, err := supervised(t, o, os.Args[0], "send", to.Addr().String(), strconv.Itoa(streams), strconv.Itoa(each))
	if err != nil || code != 3 {
		t.Fatal(code, err, said)
	}
	if strings.Contains(said, "LOOKING") {
		t.Skipf("NOT SHOWN that connections are paced from the first byte: %s", said)
	}
	if got := to.bytes.Load(); got != streams*each {
		t.Errorf("%d bytes arrived, or a connection did not end in order", got)
	}
	report := o.last(t, "failed") // its exit code was 3
	if report.Bytes != streams*each || report.Code != "command_failed" || !strings.Contains(report.Detail, "exit status 3") {
		t.Errorf("%+v", report)
	}
	if first := to.first.Load(); first < begin {
		t.Errorf("the first byte came %d µs before its time", begin-first)
	}
	took := float64(to.last.Load()-to.first.Load()) / 1e6
	achieved := streams * each * 8 / took
	// A busy machine may be slower; nothing makes it faster.
	if achieved > rate*1.02 {
		t.Errorf("%.1f Mbit/s where 400 are booked", achieved/1e6)
	}
	if achieved < rate*0.7 {
		machine.Errorf(t, "%.1f Mbit/s where 400 are booked", achieved/1e6)
	}
	t.Logf("%.1f Mbit/s of 400 on %d connections", achieved/1e6, streams)
}

func TestTheEndOfACommand(t *testing.T) {
	for _, c := range []struct {
		command string
		code    int
		kind    string
	}{{"exit 0", 0, "finished"}, {"exit 4", 4, "failed"}, {"kill -TERM $$", 128 + int(syscall.SIGTERM), "failed"}} {
		o := flat(1_000_000, time.Second)
		code, said, err := supervised(t, o, "sh", "-c", c.command)
		if err != nil || code != c.code {
			t.Errorf("%s: %d, %v, %s", c.command, code, err, said)
		}
		o.last(t, c.kind)
	}
	for _, c := range []struct {
		command string
		code    int
	}{{"no-such-program", NotFound}, {"/etc/passwd", CannotRun}} {
		o := flat(1_000_000, time.Second)
		code, _, err := supervised(t, o, c.command)
		if err == nil || code != c.code {
			t.Errorf("%s: %d, %v", c.command, code, err)
		}
		if report := o.last(t, "failed"); !strings.Contains(report.Detail, "cannot be started") {
			t.Errorf("%+v", report)
		}
	}
}

// Whichever thread of this process reaps a command, its supervisor is told.
func TestCommandsOfOneProcessAreReapedForEachOther(t *testing.T) {
	var waiting sync.WaitGroup
	for range 8 {
		waiting.Go(func() {
			code, said, err := supervised(t, flat(1_000_000, time.Second), "sh", "-c", "exit 4")
			if err != nil || code != 4 {
				t.Errorf("%d, %v, %s", code, err, said)
			}
		})
	}
	waiting.Wait()
}

func TestACancelledTransferEndsItsCommand(t *testing.T) {
	o := flat(1_000_000, 20*time.Second)
	go func() {
		for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			o.mu.Lock()
			began := len(o.reports) > 0
			o.mu.Unlock()
			if began {
				_ = o.line.Load().Send(local.Message{Over: &local.Refusal{Code: "cancelled", Detail: "no longer wanted"}}, -1)
				return
			}
		}
	}()
	code, said, err := supervised(t, o, "sh", "-c", "sleep 20")
	if err != nil || code != 128+int(syscall.SIGTERM) {
		t.Errorf("%d, %v, %s", code, err, said)
	}
}
