// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"hello":{"version":1,"transfer_id":"tr_1","began":false}}`, `{"report":{"number":1,"kind":"finished","bytes":5}}`, `{}`, `[]`, ``,
		`{"orders":{"transfer_id":"t","segments":[{"begin_us":1,"end_us":2,"rate_bps":3}]}}`, `{"time":{"broker_us":-1}}`, `{"taken":null}`,
		`{"rate":{"bps":-1}}`, `{"hello":{},"about":{}}`, `{"report":{"number":1,"kind":"failed","code":"X"}}`, "\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := Parse(line)
		if err != nil {
			return
		}
		if m.set() != 1 {
			t.Fatalf("%q has %d messages", line, m.set())
		}
		if m.Report != nil && (m.Report.Number < 1 || m.Report.Bytes < 0 || len(m.Report.Code) > 64) {
			t.Fatalf("taken: %+v", m.Report)
		}
	})
}

func TestWhatIsNoMessageIsExplained(t *testing.T) {
	for line, want := range map[string]string{
		`{"hello":{}}`: "transfer_id", `{}`: "exactly one", `nonsense`: "not a message", `{"report":{"number":1,"kind":"sent"}}`: "kind",
		`{"report":{"number":0,"kind":"started"}}`: "number", `{"report":{"number":1,"kind":"failed","code":"NO"}}`: "code",
		`{"orders":{"segments":[{"begin_us":2,"end_us":2,"rate_bps":1}]}}`: "segments[0]", `{"rate":{"bps":-5}}`: "rate.bps",
	} {
		if _, err := Parse([]byte(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// daemon gives one set of orders and keeps what it is told.
type daemon struct {
	mu       sync.Mutex
	reports  []Report
	deaf     bool // takes reports, and dies before it says so
	received chan struct{}
}

func (d *daemon) About() About { return About{Host: "dtn-a"} }

func (d *daemon) Serve(line *Line, hello Hello, _ int) {
	if hello.Transfer == "tr_none" {
		_ = line.Send(Message{Refused: &Refusal{"unknown_transfer", "there is none"}}, -1)
		return
	}
	_ = line.Send(Message{Time: &Time{Monotonic: Monotonic(), Broker: 1_000_000_000_000, Guard: 7}}, -1)
	_ = line.Send(Message{Orders: &Orders{Transfer: hello.Transfer, Volume: 5}}, -1)
	for {
		m, fd, err := line.Receive()
		var malformed *Malformed
		if errors.As(err, &malformed) {
			continue
		}
		if err != nil {
			return
		}
		if fd >= 0 {
			_ = unix.Close(fd)
			d.received <- struct{}{}
		}
		if m.Report == nil {
			continue
		}
		d.mu.Lock()
		d.reports = append(d.reports, *m.Report)
		deaf := d.deaf
		d.deaf = false
		d.mu.Unlock()
		if deaf {
			return
		}
		_ = line.Send(Message{Taken: &Taken{m.Report.Number}}, -1)
	}
}

func serve(t *testing.T, path string, d *daemon) *Server {
	t.Helper()
	server, err := Listen(path, "", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(d)
	t.Cleanup(server.Close)
	return server
}

func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what + ": not within 10 s")
		}
	}
}

func TestOrdersTimeAndReportsThroughARestart(t *testing.T) {
	// Longer than the name of a socket may be.
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 20), strings.Repeat("folder", 10))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := Path(dir)
	d := &daemon{received: make(chan struct{}, 1), deaf: true}
	first := serve(t, path, d)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", info, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := NewClient(path, "tr_1")
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	until(t, "orders", func() bool { return c.Orders() != nil })
	if off := c.Now() - 1_000_000_000_000; off < 0 || off > 5_000_000 || c.Guard() != 7 {
		t.Errorf("broker time is off by %d µs, guard %d", off, c.Guard())
	}
	c.Report(Report{Kind: "started"}) // the daemon dies with it
	until(t, "the report is sent again and taken", func() bool { return c.Untaken() == 0 })
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	until(t, "connected", c.Connected)
	if err := c.Attach(1, "", int(file.Fd())); err != nil {
		t.Fatal(err)
	}
	<-d.received
	first.Close()
	until(t, "the daemon is missed", func() bool { return !c.Connected() })
	c.Report(Report{Kind: "finished", Bytes: 5})
	if c.Untaken() != 1 || c.Orders() == nil {
		t.Error("what is known is forgotten without a daemon")
	}
	serve(t, path, d)
	until(t, "the report is taken after the restart", func() bool { return c.Untaken() == 0 })
	d.mu.Lock()
	defer d.mu.Unlock()
	last := d.reports[len(d.reports)-1]
	if last.Kind != "finished" || last.Number != 2 {
		t.Errorf("reports: %+v", d.reports)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestRefusalsSayWhatToDo(t *testing.T) {
	dir := t.TempDir()
	path := Path(dir)
	if err := NewClient(path, "tr_1").Run(t.Context()); err == nil || !strings.Contains(err.Error(), "bwb-agent run") {
		t.Error(err)
	}
	serve(t, path, &daemon{})
	if err := NewClient(path, "tr_none").Run(t.Context()); err == nil || !strings.Contains(err.Error(), "there is none") {
		t.Error(err)
	}
	about, err := Ask(path)
	if err != nil || about.Host != "dtn-a" || about.Version != Version {
		t.Error(about, err)
	}
	for said, want := range map[string]string{
		"nonsense\n": "malformed", `{"progress":{"bytes":1}}` + "\n": "want hello", `{"hello":{"version":99,"transfer_id":"t"}}` + "\n": "version 99",
	} {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write([]byte(said))
		m, _, err := NewLine(conn.(*net.UnixConn)).Receive()
		if err != nil || m.Refused == nil || !strings.Contains(m.Refused.Error(), want) {
			t.Errorf("%q: %+v, %v", said, m, err)
		}
		_ = conn.Close()
	}
}

// A client that connects and says nothing is dropped, and its place is free for a command.
func TestASilentLineIsLetGo(t *testing.T) {
	path := Path(t.TempDir())
	server, err := Listen(path, "", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	server.patience = 20 * time.Millisecond
	go server.Serve(&daemon{received: make(chan struct{}, 1)})
	t.Cleanup(server.Close)
	silent, err := Dial(path)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for err == nil { // a refusal, then the end
		_, _, err = silent.Receive()
	}
	until(t, "its place is free", func() bool { return server.speaking() == 0 })
}

func (s *Server) speaking() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.lines)
}
