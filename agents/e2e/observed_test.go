// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bandwidthbroker/agents/internal/brokerapi"
	"bandwidthbroker/agents/internal/fakebroker"
	"bandwidthbroker/agents/internal/tclinux/tctest"
)

// A program of somebody sends as fast as it can; the agent, which knows only its port, holds it to the booked rates,
// counts it, dies in the middle and goes on, and leaves the host as it was.
func TestObserved(t *testing.T) {
	here := tctest.NewNamespace(t, "mode observed: an unknown program's packets are classed and counted by real agents")
	there := tctest.NewNamespace(t, "")
	device := here.Join(there)
	t.Parallel()
	clean := here.Run("tc qdisc show dev " + device)

	l := &lab{t: t}
	var err error
	here.Do(func() { l.broker, err = fakebroker.Start() })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.broker.Die)
	var a *host
	here.Do(func() { a = l.agent("a") })

	var sink net.Listener
	there.Do(func() { sink, err = net.Listen("tcp", "10.9.0.2:7300") })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sink.Close() })
	go func() {
		if c, err := sink.Accept(); err == nil {
			_, _ = io.Copy(io.Discard, c)
		}
	}()

	// 1.5 s at 80 and 2 s at 160 Mbit/s carry 55 MB; a second at the fallback rate, 8 Mbit/s, another one.
	segments := steps(1500*time.Millisecond, 1.5, 80, 2, 160)
	l.broker.Fallback(8_000_000)
	assignment := brokerapi.Assignment{
		TransferID: "tr_seen", Role: brokerapi.Send, Mode: brokerapi.Observed, State: "ACTIVE", PlanRevision: 1, VolumeBytes: 55_500_000,
		Segments: segments, Key: strings.Repeat("0", 64), Peer: brokerapi.Peer{Host: "b", DataAddress: "10.9.0.2:7411"},
		Match: &brokerapi.FlowMatchOut{Protocol: "tcp", DestinationPorts: new("7300-7301")},
	}
	l.broker.Assign("a", assignment)
	time.Sleep(time.Until(segments[0].Begin.Add(-200 * time.Millisecond)))
	var conn net.Conn
	here.Do(func() { conn, err = net.Dial("tcp", "10.9.0.2:7300") })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	raw, _ := conn.(*net.TCPConn).SyscallConn()
	_ = raw.Control(func(fd uintptr) { _ = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "cubic") })
	go func() {
		b := make([]byte, 1<<18)
		for {
			if _, err := conn.Write(b); err != nil {
				return
			}
		}
	}()
	acked := func() (n int64) {
		_ = raw.Control(func(fd uintptr) {
			if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
				n = int64(info.Bytes_acked)
			}
		})
		return n
	}
	// Within a segment, when the class has settled. Never more is what matters; less may be this busy machine.
	within := func(from, to time.Duration, mbit float64) {
		t.Helper()
		time.Sleep(time.Until(segments[0].Begin.Add(from)))
		begin, first := time.Now(), acked()
		time.Sleep(time.Until(segments[0].Begin.Add(to)))
		got := float64(acked()-first) * 8 / 1e6 / time.Since(begin).Seconds()
		t.Logf("%s to %s: %.1f Mbit/s, booked %.0f", from, to, got, mbit)
		if got > mbit*1.03 {
			t.Errorf("%s to %s: %.1f Mbit/s, booked %.0f", from, to, got, mbit)
		}
		if got < mbit*0.5 {
			machine.Errorf(t, "%s to %s: %.1f Mbit/s, booked %.0f", from, to, got, mbit)
		}
	}
	within(500*time.Millisecond, 1400*time.Millisecond, 80)
	a.kill(syscall.SIGKILL)
	if !strings.Contains(here.Run("tc class show dev "+device), "class htb bbb:") {
		t.Error("the class went with the process, and the program was free")
	}
	here.Do(func() { a.start() })
	within(2200*time.Millisecond, 3200*time.Millisecond, 160)
	finished, err := l.broker.Await(30*time.Second, func(r fakebroker.Received) bool { return r.Kind == brokerapi.Finished || r.Kind == brokerapi.Failed })
	if err != nil {
		machine.Fatalf(t, "it has not ended: %v", err)
	}
	if finished.Kind != brokerapi.Finished {
		t.Fatalf("%+v", finished)
	}
	if sent := acked(); finished.Bytes < assignment.VolumeBytes || finished.Bytes > sent+500_000 || finished.Bytes < sent-2_000_000 {
		t.Errorf("%d bytes finished, %d acknowledged", finished.Bytes, sent)
	}
	late := finished.At.Sub(segments[1].End)
	if late < -200*time.Millisecond || late > 20*time.Second {
		machine.Errorf(t, "finished %s after the end of what was booked", late)
	}
	kinds := map[brokerapi.AgentReportKind]int{}
	var last int64
	for _, r := range l.broker.Reports() {
		kinds[r.Kind]++
		if r.Bytes < last {
			t.Errorf("the count went back from %d to %d", last, r.Bytes)
		}
		last = r.Bytes
	}
	if kinds["started"] != 1 || kinds["finished"] != 1 || kinds["progress"] < 2 {
		t.Errorf("reports: %v", kinds)
	}
	l.broker.Assign("a")
	eventually(t, "tc as it was", 5*time.Second, func() bool { return here.Run("tc qdisc show dev "+device) == clean })
}

// Without the privilege the transfer fails, and says what is missing.
func TestObservedWithoutPrivilege(t *testing.T) {
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Skip("NOT SHOWN without setpriv (util-linux): the answer to a missing privilege")
	}
	l := newLab(t)
	a := l.agent("a")
	eventually(t, "the agent runs", 10*time.Second, func() bool { return strings.Contains(a.logged(), "agent runs") })
	a.kill(syscall.SIGTERM)
	a.without = []string{"setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin"}
	a.start()
	l.broker.Assign("a", brokerapi.Assignment{
		TransferID: "tr_unseen", Role: brokerapi.Send, Mode: brokerapi.Observed, State: "ACTIVE", PlanRevision: 1, VolumeBytes: 1,
		Segments: steps(time.Minute, 1, 1), Key: strings.Repeat("0", 64), Peer: brokerapi.Peer{Host: "b", DataAddress: "192.0.2.1:1"},
		Match: &brokerapi.FlowMatchOut{Protocol: "tcp", DestinationPorts: new("7300")},
	})
	r, err := l.broker.Await(10*time.Second, func(r fakebroker.Received) bool { return r.Kind == brokerapi.Failed })
	if err != nil || r.Code != "mechanism_unavailable" || !strings.Contains(r.Detail, "CAP_NET_ADMIN") {
		t.Errorf("%v, %+v", err, r)
	}
}
