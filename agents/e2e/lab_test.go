// SPDX-License-Identifier: Apache-2.0

// Package e2e plays whole transfers with real agent processes, a fake broker and a real disk.
package e2e

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"bandwidthbroker/agents/internal/brokerapi"
	"bandwidthbroker/agents/internal/fakebroker"
	"bandwidthbroker/agents/internal/fitness"
)

var (
	agentBinary string
	machine     = fitness.Begin() // what is late is judged by what it could do
)

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "6") // these tests wait for booked time, not for a processor
	dir, err := os.MkdirTemp("", "bwb-agent-e2e")
	if err != nil {
		panic(err)
	}
	agentBinary = filepath.Join(dir, "bwb-agent")
	build := exec.Command("go", "build", "-trimpath", "-o", agentBinary, "../cmd/bwb-agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build of the agent failed:", err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// lab is a broker and the agents of one test.
type lab struct {
	t      *testing.T
	broker *fakebroker.Broker
}

func newLab(t *testing.T) *lab {
	t.Helper()
	t.Parallel()
	return newQuietLab(t)
}

// newQuietLab is for tests that measure: they run alone, before the parallel ones.
func newQuietLab(t *testing.T) *lab {
	t.Helper()
	broker, err := fakebroker.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Die)
	return &lab{t, broker}
}

// host is one agent process with its folders.
type host struct {
	lab                   *lab
	name                  string
	state, serve, receive string
	address               string
	flags                 []string
	without               []string // what runs the agent with less privilege; empty: nothing

	mu  sync.Mutex
	log bytes.Buffer
	cmd *exec.Cmd
}

func (h *host) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.log.Write(p)
}

func (h *host) logged() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.log.String()
}

// agent enrols and runs an agent.
func (l *lab) agent(name string, flags ...string) *host {
	l.t.Helper()
	return l.agentAt(name, freeAddress(l.t), flags...)
}

// agentAt does so on an address of the test's choice.
func (l *lab) agentAt(name, address string, flags ...string) *host {
	l.t.Helper()
	dir := l.t.TempDir()
	h := &host{
		lab: l, name: name, state: filepath.Join(dir, "state"), serve: filepath.Join(dir, "serve"),
		receive: filepath.Join(dir, "receive"), address: address, flags: flags,
	}
	for _, d := range []string{h.serve, h.receive} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			l.t.Fatal(err)
		}
	}
	h.start("BWB_ENROLMENT_TOKEN=" + l.broker.Invite(name))
	l.t.Cleanup(func() {
		h.kill(syscall.SIGKILL)
		if l.t.Failed() {
			l.t.Logf("log of %s:\n%s", name, h.logged())
		}
	})
	return h
}

func (h *host) start(env ...string) {
	h.lab.t.Helper()
	args := append([]string{"run", "--broker", h.lab.broker.URL(), "--state-dir", h.state, "--serve", h.serve, "--receive", h.receive,
		"--listen", h.address, "--log-level", "debug"}, h.flags...)
	command := append(append(slices.Clone(h.without), agentBinary), args...)
	h.cmd = exec.Command(command[0], command[1:]...)
	h.cmd.Env = append(os.Environ(), env...)
	h.cmd.Stderr = h
	if err := h.cmd.Start(); err != nil {
		h.lab.t.Fatal(err)
	}
}

// kill ends the process and waits for it.
func (h *host) kill(sig syscall.Signal) {
	if h.cmd != nil {
		_ = h.cmd.Process.Signal(sig)
		_ = h.cmd.Wait()
		h.cmd = nil
	}
}

// ports are handed out once each, and from below those that the kernel takes for outgoing connections: an agent that is killed
// and started again shall find its own still free.
var ports atomic.Int32

const firstPort, lastPort = 20_000, 32_000

func freeAddress(t *testing.T) string {
	t.Helper()
	ports.CompareAndSwap(0, firstPort+mathrand.Int32N((lastPort-firstPort)/2)) // other runs may be there as well
	for port := ports.Add(1); port < lastPort; port = ports.Add(1) {
		address := fmt.Sprintf("127.0.0.1:%d", port)
		if l, err := net.Listen("tcp", address); err == nil {
			_ = l.Close()
			return address
		}
	}
	t.Fatalf("no free port below %d", lastPort)
	return ""
}

// file makes a file of random content in a host's served folder.
func (h *host) file(name string, size int64) {
	h.lab.t.Helper()
	path := filepath.Join(h.serve, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.lab.t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		h.lab.t.Fatal(err)
	}
	defer f.Close()
	var seed [32]byte
	_, _ = rand.Read(seed[:])
	if _, err := io.CopyN(f, mathrand.NewChaCha8(seed), size); err != nil {
		h.lab.t.Fatal(err)
	}
	// Otherwise the kernel writes it out while the transfer is measured.
	if err := f.Sync(); err != nil {
		h.lab.t.Fatal(err)
	}
}

func digest(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		t.Fatal(err)
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

// job is a transfer as both hosts see it.
type job struct {
	id          string
	from, to    *host
	name        string
	volume      int64
	revision    int64
	segments    []brokerapi.AssignedSegment
	paused      bool
	overwrite   bool
	key         string
	keyTo       string // another key for the receiver: somebody forges
	address     string // where the sender is told to connect; the receiver's own by default
	finger      *string
	destination string
}

var jobs = struct {
	sync.Mutex
	n int
}{}

func (l *lab) job(from, to *host, volume int64, segments ...brokerapi.AssignedSegment) *job {
	jobs.Lock()
	defer jobs.Unlock()
	jobs.n++
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	j := &job{
		id: fmt.Sprintf("tr_%d", jobs.n), from: from, to: to, name: "run7/x.h5", volume: volume, revision: 1,
		segments: segments, key: hex.EncodeToString(key), destination: "incoming/x.h5",
	}
	if from != nil {
		from.file(j.name, volume)
	}
	return j
}

func (j *job) sender() brokerapi.Assignment {
	a := j.base()
	a.Role, a.SourcePath = "send", &j.name
	a.Peer = brokerapi.Peer{Host: j.to.name, DataAddress: first(j.address, j.to.address), TLSFingerprint: j.finger}
	return a
}

func (j *job) receiver() brokerapi.Assignment {
	a := j.base()
	a.Role, a.DestinationPath = "receive", &j.destination
	a.Key = first(j.keyTo, j.key)
	a.Peer = brokerapi.Peer{Host: j.from.name, DataAddress: j.from.address}
	return a
}

func (j *job) base() brokerapi.Assignment {
	return brokerapi.Assignment{
		TransferID: j.id, Mode: "managed", State: "ACTIVE", PlanRevision: j.revision, VolumeBytes: j.volume, Overwrite: j.overwrite,
		Segments: j.segments, Paused: j.paused, Mechanism: new(brokerapi.Pacing), Key: j.key,
	}
}

// assign tells both hosts; receivers first, as a broker would that wants no needless retries.
func (j *job) assign() {
	b := j.to.lab.broker
	b.Assign(j.to.name, j.receiver())
	b.Assign(j.from.name, j.sender())
}

// await waits for a report of the job from one of its hosts.
func (j *job) await(timeout time.Duration, host *host, kind brokerapi.AgentReportKind) fakebroker.Received {
	t := host.lab.t
	t.Helper()
	var failed *fakebroker.Received
	r, err := host.lab.broker.Await(timeout, func(r fakebroker.Received) bool {
		if r.TransferID == j.id && r.Kind == "failed" && kind != "failed" {
			failed = &r
			return true
		}
		return r.TransferID == j.id && r.Host == host.name && r.Kind == kind
	})
	if err != nil {
		machine.Fatalf(t, "%s of %s at %s: %v", kind, j.id, host.name, err)
	}
	if failed != nil {
		t.Fatalf("%s failed at %s: %s: %s", j.id, failed.Host, failed.Code, failed.Detail)
	}
	return r
}

// arrived waits for the end and compares the files.
func (j *job) arrived(timeout time.Duration) {
	t := j.to.lab.t
	t.Helper()
	finished := j.await(timeout, j.to, "finished")
	j.await(5*time.Second, j.from, "sent")
	want := digest(t, filepath.Join(j.from.serve, j.name))
	if got := digest(t, filepath.Join(j.to.receive, j.destination)); got != want {
		t.Errorf("received file has %s, sent was %s", got, want)
	}
	if finished.Checksum != want || finished.Bytes != j.volume {
		t.Errorf("finished report: %+v, want %d bytes and %s", finished, j.volume, want)
	}
	j.noLeftovers()
}

func (j *job) noLeftovers() {
	t := j.to.lab.t
	t.Helper()
	entries, _ := os.ReadDir(filepath.Dir(filepath.Join(j.to.receive, j.destination)))
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".bwb-") {
			t.Errorf("left over: %s", e.Name())
		}
	}
}

// failed waits for a failure with a code.
func (j *job) failed(timeout time.Duration, host *host, code string) fakebroker.Received {
	t := host.lab.t
	t.Helper()
	r := j.await(timeout, host, "failed")
	if r.Code != code {
		t.Errorf("failed with %s (%s), want %s", r.Code, r.Detail, code)
	}
	return r
}

// progressed waits until the receiver has reported so many bytes.
func (j *job) progressed(bytes int64) {
	t := j.to.lab.t
	t.Helper()
	if _, err := j.to.lab.broker.Await(20*time.Second, func(r fakebroker.Received) bool {
		return r.TransferID == j.id && r.Host == j.to.name && r.Bytes >= bytes
	}); err != nil {
		machine.Fatalf(t, "%s has not reported %d bytes of %s: %v", j.to.name, bytes, j.id, err)
	}
}

// steps is a booking that begins after a delay: seconds and Mbit/s in turn.
func steps(after time.Duration, secondsAndMbit ...float64) []brokerapi.AssignedSegment {
	at := time.Now().UTC().Add(after).Truncate(time.Microsecond)
	var made []brokerapi.AssignedSegment
	for i := 0; i < len(secondsAndMbit); i += 2 {
		end := at.Add(time.Duration(secondsAndMbit[i] * float64(time.Second)))
		if rate := int64(secondsAndMbit[i+1] * 1e6); rate > 0 {
			made = append(made, brokerapi.AssignedSegment{Begin: at, End: end, RateBps: rate})
		}
		at = end
	}
	return made
}

func first(choices ...string) string {
	for _, c := range choices {
		if c != "" {
			return c
		}
	}
	return ""
}

func eventually(t *testing.T, what string, timeout time.Duration, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if holds() {
			return
		}
	}
	machine.Fatalf(t, "not within %s: %s", timeout, what)
}
