// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"bytes"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"bandwidthbroker/agents/internal/agentstate"
	"bandwidthbroker/agents/internal/brokerapi"
	"bandwidthbroker/agents/internal/datachannel"
	"bandwidthbroker/agents/internal/failure"
	"bandwidthbroker/agents/internal/schedule"
	"bandwidthbroker/agents/internal/served"
)

// outbox keeps a transfer's events in memory.
type outbox struct {
	mu        sync.Mutex
	events    []string
	checksums []string // of the same
	wake      chan struct{}
}

func newOutbox() *outbox { return &outbox{wake: make(chan struct{}, 100)} }

func (b *outbox) Report(kind brokerapi.AgentReportKind, f Facts) error {
	b.mu.Lock()
	b.events = append(b.events, strings.TrimSpace(string(kind)+" "+f.Code))
	b.checksums = append(b.checksums, f.Checksum)
	b.mu.Unlock()
	b.wake <- struct{}{}
	return nil
}
func (b *outbox) StartOnce() bool                     { return true }
func (b *outbox) ShortfallOnce(int64) bool            { return true }
func (b *outbox) End(brokerapi.AgentReportKind) error { return nil }

func (b *outbox) wait(t *testing.T, event string) {
	t.Helper()
	alarm := time.After(10 * time.Second)
	for {
		b.mu.Lock()
		for _, e := range b.events {
			if e == event {
				b.mu.Unlock()
				return
			}
		}
		events := strings.Join(b.events, ", ")
		b.mu.Unlock()
		select {
		case <-b.wake:
		case <-alarm:
			t.Fatalf("waited for %q, there were: %s", event, events)
		}
	}
}

type wallClock struct{}

func (wallClock) Now() int64   { return time.Now().UnixMicro() }
func (wallClock) Guard() int64 { return 1000 }

// pair is a sender's and a receiver's side in this process.
type pair struct {
	t                  *testing.T
	serve, receive     string
	state              *agentstate.Folder
	listener           *Listener
	orders             Orders
	sent, received     *outbox
	serving, receiving *served.Folder
	log                *slog.Logger // of both sides
}

func newPair(t *testing.T, size int) *pair {
	t.Helper()
	p := &pair{t: t, serve: t.TempDir(), receive: t.TempDir(), sent: newOutbox(), received: newOutbox(), log: slog.New(slog.DiscardHandler)}
	var err error
	if p.state, err = agentstate.Open(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if p.serving, err = served.Open(p.serve); err != nil {
		t.Fatal(err)
	}
	if p.receiving, err = served.Open(p.receive); err != nil {
		t.Fatal(err)
	}
	content := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(content)
	if err := os.WriteFile(filepath.Join(p.serve, "x"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	if p.listener, err = Listen("127.0.0.1:0", nil, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.listener.Close)
	now := time.Now().UnixMicro()
	p.orders = Orders{
		Transfer: "tr_1", Path: "x", Volume: int64(size), Key: strings.Repeat("k", 32), Peer: Peer{Address: p.listener.Address()}, Revision: 1,
		Segments: []schedule.Segment{{Begin: now, End: now + 60_000_000, RateBps: 1_000_000_000}},
	}
	return p
}

func (p *pair) receiver() *Receiver {
	r := StartReceiver(ReceiverOptions{Folder: p.receiving, State: p.state, Outbox: p.received, Log: p.log}, p.orders, "")
	p.listener.Expect("tr_1", r)
	p.t.Cleanup(func() { r.Stop(false) })
	return r
}

func (p *pair) sender() *Sender {
	o := p.orders
	o.Send = true
	s := StartSender(SenderOptions{Clock: wallClock{}, Folder: p.serving, Outbox: p.sent, Log: p.log, PeerTimeout: 5 * time.Second}, o)
	p.t.Cleanup(func() { s.Stop(false) })
	return s
}

func (p *pair) same() {
	p.t.Helper()
	want, _ := os.ReadFile(filepath.Join(p.serve, "x"))
	got, err := os.ReadFile(filepath.Join(p.receive, "x"))
	if err != nil || !bytes.Equal(got, want) {
		p.t.Errorf("the file differs: %d bytes of %d, %v", len(got), len(want), err)
	}
}

// dial opens a data channel up to RESUME, by hand.
func (p *pair) dial() (*channel, datachannel.Nonce, datachannel.Nonce, int64) {
	p.t.Helper()
	c, hello, challenge, offset, err := p.tryDial()
	if err != nil {
		p.t.Fatal(err)
	}
	return c, hello, challenge, offset
}

func (p *pair) tryDial() (c *channel, hello, challenge datachannel.Nonce, offset int64, err error) {
	p.t.Helper()
	conn, err := net.Dial("tcp", p.listener.Address())
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	c = newChannel(conn)
	hello, challenge, offset, err = c.offer(&p.orders)
	return c, hello, challenge, offset, err
}

func TestEmptyAndOddSizes(t *testing.T) {
	for _, size := range []int{0, 1, chunkSize, chunkSize + 1, 3*chunkSize - 1} {
		p := newPair(t, size)
		p.receiver()
		p.sender()
		p.sent.wait(t, "sent")
		p.received.wait(t, "finished")
		p.same()
	}
}

// Nothing is hashed, nobody is told of a checksum, and a restart after the rename recognises its own work all the same.
func TestWithoutVerification(t *testing.T) {
	p := newPair(t, 3*chunkSize-1)
	p.orders.Unchecked = true
	p.receiver()
	p.sender()
	p.sent.wait(t, "sent")
	p.received.wait(t, "finished")
	p.same()
	for _, told := range append(p.sent.checksums, p.received.checksums...) {
		if told != "" {
			t.Errorf("a checksum of a file that nobody hashed: %s", told)
		}
	}
	again := newOutbox()
	r := StartReceiver(ReceiverOptions{Folder: p.receiving, State: p.state, Outbox: again, Log: slog.New(slog.DiscardHandler)}, p.orders, "")
	defer r.Stop(false)
	again.wait(t, "finished")
}

// The receiver is told twice by a sender that missed DONE, and tells it again; also after a restart.
func TestALostDoneIsToldAgain(t *testing.T) {
	p := newPair(t, 1000)
	p.receiver()
	content, _ := os.ReadFile(filepath.Join(p.serve, "x"))
	c, hello, challenge, _ := p.dial()
	frame := make([]byte, datachannel.DataPrefix+1000)
	datachannel.PutData(frame, 0, 1000)
	copy(frame[datachannel.DataPrefix:], content)
	if _, err := c.conn.Write(frame); err != nil {
		t.Fatal(err)
	}
	digest := sha(content)
	key := datachannel.Key(p.orders.Key)
	end := datachannel.End{Volume: 1000, Digest: digest, MAC: datachannel.EndMAC(key, hello, challenge, 1000, digest)}
	if err := c.write(end); err != nil {
		t.Fatal(err)
	}
	p.received.wait(t, "finished")
	_ = c.conn.Close() // before DONE was read

	r := StartReceiver(ReceiverOptions{Folder: p.receiving, State: p.state, Outbox: newOutbox(), Log: slog.New(slog.DiscardHandler)}, p.orders, brokerapi.Finished)
	p.listener.Expect("tr_1", r)
	p.sender()
	p.sent.wait(t, "sent")
	p.same()
}

// Killed between the final rename and the report: the restart recognises its own work.
func TestARestartAfterTheRename(t *testing.T) {
	p := newPair(t, 1000)
	content, _ := os.ReadFile(filepath.Join(p.serve, "x"))
	if err := os.WriteFile(filepath.Join(p.receive, "x"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	j := journal(&p.orders, 1000)
	j.Digest = checksum(sha(content))
	if err := p.state.SaveJournal("tr_1", j); err != nil {
		t.Fatal(err)
	}
	p.receiver()
	p.received.wait(t, "finished")
	p.sender()
	p.sent.wait(t, "sent")
}

func TestANewConnectionReplacesTheOld(t *testing.T) {
	p := newPair(t, 5_000_000)
	p.receiver()
	old, _, _, _ := p.dial() // a sender that hangs
	p.sender()
	p.sent.wait(t, "sent")
	p.same()
	for {
		if _, err := old.read(datachannel.KindProgress); err != nil {
			if err == io.EOF || strings.Contains(err.Error(), "reset") {
				return
			}
			t.Fatalf("the old connection: %v", err)
		}
	}
}

func TestWrongContentIsNotKept(t *testing.T) {
	p := newPair(t, 1000)
	p.receiver()
	c, hello, challenge, _ := p.dial()
	frame := make([]byte, datachannel.DataPrefix+1000)
	datachannel.PutData(frame, 0, 1000)
	_, _ = c.conn.Write(frame)
	digest := datachannel.Digest{1}
	_ = c.write(datachannel.End{Volume: 1000, Digest: digest, MAC: datachannel.EndMAC(datachannel.Key(p.orders.Key), hello, challenge, 1000, digest)})
	p.received.wait(t, "failed "+failure.ChecksumMismatch)
	if entries, _ := os.ReadDir(p.receive); len(entries) != 0 {
		t.Errorf("kept: %v", entries)
	}
}

func TestWhatIsOutOfOrderEndsTheConnection(t *testing.T) {
	p := newPair(t, 1000)
	p.receiver()
	forged := datachannel.End{Volume: 1000}
	gap := make([]byte, datachannel.DataPrefix+10)
	datachannel.PutData(gap, 5, 10)
	beyond := make([]byte, datachannel.DataPrefix+1001)
	datachannel.PutData(beyond, 0, 1001)
	for name, b := range map[string][]byte{
		"a gap": gap, "too much": beyond, "an early END": forged.Append(nil), "nonsense": {99, 0, 0, 0, 1, 0},
	} {
		c, _, _, _ := p.dial()
		_, _ = c.conn.Write(b)
		if _, err := c.read(datachannel.KindDone); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	p.sender() // and the transfer goes on all the same
	p.sent.wait(t, "sent")
	p.same()
}

func TestStrangersLearnNothing(t *testing.T) {
	p := newPair(t, 1000)
	p.receiver()
	say := func(b []byte) string {
		conn, err := net.Dial("tcp", p.listener.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = conn.Write(b)
		_ = conn.(*net.TCPConn).CloseWrite()
		_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		answer, _ := io.ReadAll(conn)
		return string(answer)
	}
	if got := say([]byte("GET / HTTP/1.1\r\n\r\n")); got != "" {
		t.Errorf("HTTP was answered: %q", got)
	}
	unknown := datachannel.Hello{Transfer: "tr_2"}.Append(nil)
	if got := say(unknown); got != string(datachannel.Error{Code: "unknown_transfer"}.Append(nil)) {
		t.Errorf("unknown transfer: %q", got)
	}
	guess := datachannel.Proof{Volume: 1000}.Append(datachannel.Hello{Transfer: "tr_1"}.Append(nil))
	got := say(guess)
	if challenge := datachannel.HeaderLen + 64; len(got) < challenge || got[challenge:] != string(datachannel.Error{Code: "authentication"}.Append(nil)) {
		t.Errorf("a wrong proof: %q", got)
	}
	if entries, _ := os.ReadDir(p.receive); len(entries) != 0 {
		t.Errorf("written for a stranger: %v", entries)
	}
}

func TestAStopKeepsWhatIsNeededToGoOn(t *testing.T) {
	p := newPair(t, 8_000_000)
	p.orders.Segments[0].RateBps = 40_000_000
	r, s := p.receiver(), p.sender()
	for r.Progress().Bytes < 1_000_000 {
		time.Sleep(time.Millisecond)
	}
	r.Stop(false)
	s.Stop(false)
	j, found := p.state.Journal("tr_1")
	if !found || j.Safe < 1_000_000 {
		t.Fatalf("journal %+v", j)
	}
	p.orders.Segments[0].RateBps = 1_000_000_000
	p.receiver()
	p.sender()
	p.sent.wait(t, "sent")
	p.same()
}

func TestMarksGoOnWhereTheyWere(t *testing.T) {
	content := make([]byte, 1000)
	_, _ = rand.NewChaCha8([32]byte{2}).Read(content)
	var m marks
	for at := range 10 {
		h, from := m.before(int64(at) * 100)
		if from != int64(at)*100 {
			t.Fatalf("mark at %d, want %d", from, at*100)
		}
		h.Write(content[at*100:][:100])
		m.keep(int64(at+1)*100, h)
	}
	h, err := m.hashUpTo(bytes.NewReader(content), 950, make([]byte, 64), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := datachannel.Digest(h.Sum(nil)); got != sha(content[:950]) {
		t.Error("the hash of a prefix is wrong")
	}
	for i := int64(1); i < 3*maxMarks; i++ {
		m.keep(1000+i, h)
	}
	if len(m.at) > maxMarks {
		t.Errorf("%d marks", len(m.at))
	}
}

// A disk that fills up midway: the writer stops taking, and says why.
func TestADiskThatFillsUpMidway(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("SKIPPED, a disk that fills up was not tried: %v", err)
	}
	defer full.Close()
	s := startSink(&served.Incoming{File: full}, 0, &marks{}, func(int64) { t.Error("something is called safe") })
	s.pieces <- piece{<-s.free, 100, 0}
	<-s.failed
	if got := served.WriteFailure("x", s.close()); got.Code != failure.DiskFull {
		t.Errorf("%v", got)
	}
}
