// SPDX-License-Identifier: Apache-2.0

package emulate

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bandwidthbroker/agents/internal/gateway"
)

// spaces makes two network namespaces, without names, and returns their paths; and enter runs f in one of them.
func spaces(t *testing.T) [2]string {
	t.Helper()
	var paths [2]string
	for i := range paths {
		made := make(chan error)
		release := make(chan struct{})
		go func() {
			runtime.LockOSThread() // the thread goes with the goroutine
			err := unix.Unshare(unix.CLONE_NEWNET)
			if err == nil { // neighbour discovery would be counted, too
				_ = os.WriteFile("/proc/sys/net/ipv6/conf/all/disable_ipv6", []byte("1"), 0)
				_ = os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0)
			}
			paths[i] = fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), unix.Gettid())
			made <- err
			<-release
		}()
		if err := <-made; err != nil {
			t.Skipf("NOT SHOWN HERE: packets across namespaces, no right to make them (%v); run as root", err)
		}
		t.Cleanup(func() { close(release) })
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Skipf("NOT SHOWN HERE: packets across namespaces: %v", err)
	}
	return paths
}

func enter(t *testing.T, path string, f func() error) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			err = unix.Setns(fd, unix.CLONE_NEWNET)
			unix.Close(fd)
		}
		if err == nil {
			err = f()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// address gives a device an address by the old ioctl: its peer is the rest of the /24.
func address(device, ip string) func() error {
	return func() error {
		control, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(control)
		for _, step := range []struct {
			request uint
			ip      string
		}{{unix.SIOCSIFADDR, ip}, {unix.SIOCSIFNETMASK, "255.255.255.0"}} {
			r, err := unix.NewIfreq(device)
			if err != nil {
				return err
			}
			if err := r.SetInet4Addr(net.ParseIP(step.ip).To4()); err != nil {
				return err
			}
			if err := unix.IoctlIfreq(control, step.request, r); err != nil {
				return err
			}
		}
		return nil
	}
}

// setting is a running emulator with a UDP socket at each end.
type setting struct {
	*Emulator
	left, right net.PacketConn
	stop        func()
}

func start(t *testing.T, o Options) setting {
	t.Helper()
	paths := spaces(t)
	o.Left, o.Right = End{paths[0], "bwbgwt-l"}, End{paths[1], "bwbgwt-r"}
	if o.MTU == 0 {
		o.MTU = 1500
	}
	if o.Realtime == "" {
		o.Realtime = Ordinary
	}
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := e.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	s := setting{Emulator: e}
	s.stop = func() { cancel(); running.Wait() }
	t.Cleanup(func() { s.stop(); e.Close() })
	for i, end := range []struct {
		device, ip string
		socket     *net.PacketConn
	}{{"bwbgwt-l", "10.9.0.1", &s.left}, {"bwbgwt-r", "10.9.0.2", &s.right}} {
		enter(t, paths[i], address(end.device, end.ip))
		enter(t, paths[i], func() (err error) {
			*end.socket, err = net.ListenPacket("udp4", end.ip+":7000")
			return err
		})
		t.Cleanup(func() { (*end.socket).Close() })
	}
	return s
}

// patience is for a machine that is busy with everything else, too.
const patience = 30 * time.Second

var right = &net.UDPAddr{IP: net.IPv4(10, 9, 0, 2), Port: 7000}

// send numbers datagrams from the left end, each so large that its packet has 1000 bytes.
func (s setting) send(t *testing.T, from, to int) {
	t.Helper()
	datagram := make([]byte, 1000-28)
	for i := from; i < to; i++ {
		copy(datagram, fmt.Sprintf("%06d", i))
		if _, err := s.left.WriteTo(datagram, right); err != nil {
			t.Fatal(err)
		}
	}
}

// receive returns the number of the next datagram at the right end, -1 if none comes.
func (s setting) receive(t *testing.T) int {
	t.Helper()
	var datagram [2000]byte
	if err := s.right.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.right.ReadFrom(datagram[:]); err != nil {
		return -1
	}
	number, err := strconv.Atoi(string(datagram[:6]))
	if err != nil {
		t.Fatal(err)
	}
	return number
}

func (s setting) order(t *testing.T, line string) {
	t.Helper()
	if a := s.Obey([]byte(line)).(answer); !a.OK {
		t.Fatalf("%s: %s", line, a.Error)
	}
}

func (s setting) is(t *testing.T, what string, condition func(DirectionStatistics) bool) {
	t.Helper()
	for end := time.Now().Add(patience); !condition(s.Statistics().Directions[LeftRight]); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not so: %s: %+v", what, s.Statistics().Directions[LeftRight])
		}
	}
}

// TestPacketsTakeTheirTime: 20 packets of 1000 bytes at 1 Mb/s take 8 ms each, and 30 ms to travel.
func TestPacketsTakeTheirTime(t *testing.T) {
	s := start(t, Options{Link: gateway.Settings{CapacityBps: 1_000_000, Delay: 30_000_000, Buffer: 100_000}})
	began := time.Now()
	s.send(t, 0, 20)
	for want := range 20 {
		got := s.receive(t)
		took := time.Since(began)
		due := 30*time.Millisecond + time.Duration(want+1)*8*time.Millisecond
		if got != want || took < due {
			t.Fatalf("packet %d after %v, want %d not before %v", got, took, want, due)
		}
	}
	stats := s.Statistics().Directions[LeftRight]
	if late := time.Since(began) - 190*time.Millisecond; late > 50*time.Millisecond && stats.Lateness.Max < 20_000 {
		t.Errorf("%v too long, and the emulator does not know: %+v", late, stats)
	}
	if stats.Forwarded != (Amount{20, 20_000}) || stats.QueueMaxBytes != 19_000 {
		t.Errorf("%+v", stats)
	}
}

func TestOrders(t *testing.T) {
	s := start(t, Options{Link: gateway.Settings{CapacityBps: 8_000, Buffer: 5_000}})
	// 1 s for each packet: they can be counted at leisure.
	s.send(t, 0, 10)
	s.is(t, "one is sent, five wait", func(d DirectionStatistics) bool {
		return d.OnTheLink == 6 && d.QueueBytes == 5000 && d.Dropped["overflow"].Packets == 4
	})
	s.order(t, `{"op":"set","capacity_bps":1000000000,"delay_us":1000,"direction":"left-right"}`)
	for want := range 6 {
		if got := s.receive(t); got != want {
			t.Fatalf("packet %d, want %d", got, want)
		}
	}
	if d := s.Statistics().Directions[RightLeft]; d.CapacityBps != 8_000 || d.DelayUs != 0 {
		t.Errorf("the other direction was set, too: %+v", d)
	}
	s.order(t, `{"op":"set","buffer_bytes":100000,"capacity_bps":8000}`)
	s.send(t, 10, 13)
	s.is(t, "three are under way", func(d DirectionStatistics) bool { return d.OnTheLink == 3 })
	s.order(t, `{"op":"cut"}`)
	s.send(t, 13, 14)
	s.is(t, "all are lost", func(d DirectionStatistics) bool { return d.Cut && d.OnTheLink == 0 && d.Dropped["cut"].Packets == 4 })
	s.order(t, `{"op":"restore"}`)
	s.order(t, `{"op":"set","capacity_bps":1000000000}`)
	s.order(t, `{"op":"drop","protocol":"udp","port":7000,"count":2}`)
	s.send(t, 14, 18)
	for want := 16; want < 18; want++ {
		if got := s.receive(t); got != want {
			t.Fatalf("packet %d, want %d", got, want)
		}
	}
	s.order(t, `{"op":"set","loss":1}`)
	s.send(t, 18, 19)
	s.is(t, "it is lost", func(d DirectionStatistics) bool { return d.Dropped["lost"].Packets == 1 })
	for want, line := range map[string]string{
		"no order":               `{"op":`,
		"unknown field":          `{"op":"cut","when":1}`,
		"more than one":          `{"op":"cut"}{"op":"cut"}`,
		`op is "fly"`:            `{"op":"fly"}`,
		`direction is "up"`:      `{"op":"cut","direction":"up"}`,
		"set wants":              `{"op":"set"}`,
		"capacity is 0":          `{"op":"set","capacity_bps":0}`,
		"delay_us is -1":         `{"op":"set","delay_us":-1}`,
		"buffer is -1":           `{"op":"set","buffer_bytes":-1}`,
		"loss is 1.5":            `{"op":"set","loss":1.5}`,
		`protocol is "carrier`:   `{"op":"drop","protocol":"carrier pigeon","count":1}`,
		"count is -1":            `{"op":"drop","count":-1}`,
		"Go struct field order.": `{"op":"drop","port":99999,"count":1}`,
	} {
		if a := s.Obey([]byte(line)).(answer); a.OK || !strings.Contains(a.Error, want) {
			t.Errorf("%s: %+v, want %q", line, a, want)
		}
	}
}

// TestTraceAddsUp: what is in the trace is what was counted, to the byte, with framing.
func TestTraceAddsUp(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace.csv")
	s := start(t, Options{Link: gateway.Settings{CapacityBps: 80_000_000, Delay: 20_000_000, Buffer: 20_000}, Framing: 38, Trace: file})
	for burst := range 5 {
		s.send(t, burst*30, burst*30+30)
		time.Sleep(20 * time.Millisecond)
	}
	s.is(t, "all has come through", func(d DirectionStatistics) bool { return d.Offered.Packets == 150 && d.OnTheLink == 0 })
	s.stop()
	stats := s.Statistics().Directions[LeftRight]
	if stats.ProcessorUs == 0 || stats.Dropped["overflow"].Packets == 0 {
		t.Errorf("%+v", stats)
	}
	opened, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	rows, err := csv.NewReader(opened).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if header := strings.Join(rows[0], ",") + "\n"; header != TraceHeader {
		t.Fatal(header)
	}
	sums := map[string]int64{}
	for _, row := range rows[1:] {
		if flow := strings.Join(row[1:7], " "); flow != "left-right udp 10.9.0.1 7000 10.9.0.2 7000" {
			t.Fatalf("a flow is %q", flow)
		}
		at, _ := strconv.ParseInt(row[0], 10, 64)
		if age := time.Since(time.UnixMicro(at)); age < 0 || age > time.Minute {
			t.Errorf("a row is of %v ago", age)
		}
		for i, name := range []string{"offered", "forwarded", "dropped"} {
			n, _ := strconv.ParseInt(row[7+i], 10, 64)
			sums[name] += n
			if name == "forwarded" && n > 80_000_000/8/100+1038 {
				t.Errorf("%d bytes in 10 ms of 80 Mb/s", n)
			}
		}
	}
	if sums["offered"] != 150*1038 || sums["forwarded"] != stats.Forwarded.Bytes || sums["dropped"] != stats.Dropped["overflow"].Bytes {
		t.Errorf("%v, want %+v", sums, stats)
	}
}

func TestControlSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control")
	e := &Emulator{}
	for i, name := range []string{LeftRight, RightLeft} {
		link, err := gateway.NewLink(gateway.Settings{CapacityBps: 1}, 0, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		e.directions[i] = &direction{name: name, link: link, since: time.Now(), wake: -1}
	}
	// A socket that a killed emulator left.
	dead, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	dead.Close()
	if err := e.Listen(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if err := e.Listen(t.Context(), path); err == nil || !strings.Contains(err.Error(), "another emulator") {
		t.Errorf("a second one: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	connection, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	lines := bufio.NewScanner(connection)
	for _, c := range []struct {
		line string
		want answer
	}{
		{`{"op":"set","capacity_bps":7}`, answer{OK: true}},
		{`nonsense`, answer{Error: "this is no order: invalid character 'o' in literal null (expecting 'u')"}},
		{`{"op":"cut"}`, answer{OK: true}},
	} {
		fmt.Fprintln(connection, c.line)
		var got answer
		if !lines.Scan() {
			t.Fatal(lines.Err())
		}
		if err := json.Unmarshal(lines.Bytes(), &got); err != nil || got != c.want {
			t.Errorf("%s: %+v %v, want %+v", c.line, got, err, c.want)
		}
	}
	for _, d := range e.directions {
		if d.link.Settings().CapacityBps != 7 || !d.link.IsCut() {
			t.Errorf("%s was not changed", d.name)
		}
	}
}

// FuzzObey: no line makes it panic, and what is set is within bounds.
func FuzzObey(f *testing.F) {
	for _, line := range []string{
		`{"op":"set","capacity_bps":7,"loss":0.5,"delay_us":5,"buffer_bytes":9}`, `{"op":"drop","count":3,"protocol":"udp","port":1}`,
		`{"op":"cut","direction":"left-right"}`, `{"op":"restore"}`, `{"op":"set","loss":1e999}`, `{"op":"set","delay_us":9223372036854775807}`, `[]`,
	} {
		f.Add(line)
	}
	link, err := gateway.NewLink(gateway.Settings{CapacityBps: 1}, 0, 1, 1)
	if err != nil {
		f.Fatal(err)
	}
	d := &direction{name: LeftRight, link: link, since: time.Now(), wake: -1}
	e := &Emulator{directions: [2]*direction{d, d}}
	f.Fuzz(func(t *testing.T, line string) {
		if strings.Contains(line, "statistics") {
			t.Skip("there is no device to ask")
		}
		e.Obey([]byte(line))
		if err := d.link.Settings().Check(); err != nil {
			t.Error(err)
		}
	})
}

func TestNothingToStartFrom(t *testing.T) {
	for want, o := range map[string]Options{
		"MTU is 0":        {Realtime: Ordinary},
		`realtime is "x"`: {MTU: 1500, Realtime: "x"},
		"no such file":    {MTU: 1500, Realtime: Ordinary, Trace: "/nosuch/trace"},
		"nosuch":          {MTU: 1500, Realtime: Ordinary, Left: End{"nosuch", "x"}, Link: gateway.Settings{CapacityBps: 1}},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
}
