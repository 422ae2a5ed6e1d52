// SPDX-License-Identifier: Apache-2.0

// Package fakebroker is a broker for tests: it hands out the assignments it is given and keeps the reports it gets. It
// can die, come back on the same port, and misbehave. It books nothing.
package fakebroker

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"bandwidthbroker/agents/internal/brokerapi"
)

// Received is a report with the host it came from; what was left out is zero.
type Received struct {
	Host, TransferID               string
	Sequence                       int64
	At                             time.Time
	Kind                           brokerapi.AgentReportKind
	Bytes, RateBps, AppliedRateBps int64
	Checksum, Code, Detail         string
}

func received(host string, r brokerapi.AgentReport) Received {
	return Received{
		Host: host, TransferID: r.TransferID, Sequence: r.Sequence, At: r.At, Kind: r.Kind,
		Bytes: value(r.Bytes), RateBps: value(r.RateBps), AppliedRateBps: value(r.AppliedRateBps),
		Checksum: value(r.Checksum), Code: value(r.Code), Detail: value(r.Detail),
	}
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// Broker is the fake.
type Broker struct {
	address string

	mu       sync.Mutex
	changed  *sync.Cond
	server   *http.Server
	hosts    map[string]*host
	reports  []Received
	copies   int // reports that came a second time
	calls    map[string]int
	answer   func(w http.ResponseWriter, r *http.Request) bool
	onReport func(Received)
	ahead    time.Duration // of this host's clock
	lose     int           // answers to reports
}

type host struct {
	token, agentToken string
	enrolled          brokerapi.EnrolBody
	last              brokerapi.ReportsBody
	doc               brokerapi.Assignments
	taken             map[string]bool
}

// Start opens a broker on a free port.
func Start() (*Broker, error) {
	b := &Broker{hosts: map[string]*host{}, calls: map[string]int{}}
	b.changed = sync.NewCond(&b.mu)
	return b, b.listen("127.0.0.1:0")
}

func (b *Broker) listen(address string) error {
	socket, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	b.address = socket.Addr().String()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/agents/enrol", b.enrol)
	mux.HandleFunc("GET /v1/agents/{host}/assignments", b.assignments)
	mux.HandleFunc("GET /v1/agents/{host}/stream", b.stream)
	mux.HandleFunc("POST /v1/agents/{host}/reports", b.report)
	server := &http.Server{Handler: b.misbehave(mux), ReadHeaderTimeout: 5 * time.Second}
	b.mu.Lock()
	b.server = server
	b.mu.Unlock()
	go func() { _ = server.Serve(socket) }()
	return nil
}

// URL of the broker; the same after it came back.
func (b *Broker) URL() string { return "http://" + b.address }

// Die ends the broker and every connection to it.
func (b *Broker) Die() {
	b.mu.Lock()
	server := b.server
	b.mu.Unlock()
	_ = server.Close()
}

// ComeBack starts it again on the same port with what it knew.
func (b *Broker) ComeBack() error { return b.listen(b.address) }

// Answer puts f before every call; f returns true when it has dealt with the call itself.
func (b *Broker) Answer(f func(w http.ResponseWriter, r *http.Request) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answer = f
}

// OnReport is called for each new report, with nothing locked.
func (b *Broker) OnReport(f func(Received)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.onReport = f
}

func (b *Broker) misbehave(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		f := b.answer
		b.calls[r.Method+" "+r.URL.Path]++
		b.mu.Unlock()
		if f == nil || !f(w, r) {
			next.ServeHTTP(w, r)
		}
	})
}

// Invite makes a one-time token for a host.
func (b *Broker) Invite(name string) (token string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	token = "bwe_" + secret()
	b.hosts[name] = &host{token: token, taken: map[string]bool{}, doc: brokerapi.Assignments{Host: name, FallbackRateBps: 1_000_000}}
	return token
}

// Assign replaces a host's assignments under a new revision and wakes its stream.
func (b *Broker) Assign(name string, list ...brokerapi.Assignment) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.hosts[name]
	h.doc.Revision++
	h.doc.Assignments = slices.Clone(list)
	b.changed.Broadcast()
}

// StepClock moves the broker's clock, which is this host's at first.
func (b *Broker) StepClock(by time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ahead += by
}

// LoseAnswers lets the next n answers to reports get lost: the reports are taken, the agents do not learn of it.
func (b *Broker) LoseAnswers(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lose = n
}

// Fallback sets the rate of all hosts.
func (b *Broker) Fallback(bps int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, h := range b.hosts {
		h.doc.FallbackRateBps = bps
	}
}

// Reports are all reports so far, in the order in which they were taken.
func (b *Broker) Reports() []Received {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.reports)
}

// Copies counts reports that came again after they were taken, and Calls the calls of a method and path.
func (b *Broker) Copies() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.copies
}

// Calls counts the calls of "METHOD /path".
func (b *Broker) Calls(methodAndPath string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls[methodAndPath]
}

// Enrolled is what a host said when it enrolled, Last what it said last.
func (b *Broker) Enrolled(name string) brokerapi.EnrolBody {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.hosts[name].enrolled
}

// Last is a host's last report request.
func (b *Broker) Last(name string) brokerapi.ReportsBody {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.hosts[name].last
}

// Await waits for a report that matches, past or future.
func (b *Broker) Await(timeout time.Duration, match func(Received) bool) (Received, error) {
	deadline := time.Now().Add(timeout)
	alarm := time.AfterFunc(timeout, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.changed.Broadcast()
	})
	defer alarm.Stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	for next := 0; ; {
		for ; next < len(b.reports); next++ {
			if match(b.reports[next]) {
				return b.reports[next], nil
			}
		}
		if time.Now().After(deadline) {
			return Received{}, fmt.Errorf("no such report in %s; %d others came", timeout, len(b.reports))
		}
		b.changed.Wait()
	}
}

func (b *Broker) enrol(w http.ResponseWriter, r *http.Request) {
	var body brokerapi.EnrolBody
	if !read(w, r, &body) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, h := range b.hosts {
		if h.token != "" && h.token == body.Token {
			h.token, h.agentToken, h.enrolled = "", "bwb_"+secret(), body
			write(w, http.StatusCreated, brokerapi.Enrolment{Host: name, Node: "N" + name, AgentToken: h.agentToken, ServerTime: b.now()})
			return
		}
	}
	problem(w, http.StatusUnauthorized, "unauthorized", "unknown or used enrolment token")
}

// known is the host of a call, if the token is its own; b.mu is held.
func (b *Broker) known(w http.ResponseWriter, r *http.Request) *host {
	h := b.hosts[r.PathValue("host")]
	if h == nil || h.agentToken == "" || r.Header.Get("Authorization") != "Bearer "+h.agentToken {
		problem(w, http.StatusUnauthorized, "unauthorized", "not this agent's token")
		return nil
	}
	return h
}

func (b *Broker) assignments(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.known(w, r)
	if h == nil {
		return
	}
	etag := fmt.Sprintf("%q", fmt.Sprint(h.doc.Revision))
	w.Header().Set("ETag", etag)
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	doc := h.doc
	doc.ServerTime = b.now()
	if doc.Assignments == nil {
		doc.Assignments = []brokerapi.Assignment{}
	}
	write(w, http.StatusOK, doc)
}

func (b *Broker) stream(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	h := b.known(w, r)
	if h == nil {
		b.mu.Unlock()
		return
	}
	gone := r.Context()
	go func() { // wakes the loop below when the client leaves
		<-gone.Done()
		b.mu.Lock()
		b.changed.Broadcast()
		b.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	told := int64(-1)
	for gone.Err() == nil {
		if h.doc.Revision == told {
			b.changed.Wait()
			continue
		}
		told = h.doc.Revision
		b.mu.Unlock()
		_, _ = fmt.Fprintf(w, ": hello\nevent: revision\ndata: {\"revision\": %d}\n\n", told)
		w.(http.Flusher).Flush()
		b.mu.Lock()
	}
	b.mu.Unlock()
}

func (b *Broker) report(w http.ResponseWriter, r *http.Request) {
	var body brokerapi.ReportsBody
	if !read(w, r, &body) {
		return
	}
	b.mu.Lock()
	h := b.known(w, r)
	if h == nil {
		b.mu.Unlock()
		return
	}
	h.last = body
	if body.Agent == nil {
		problem(w, http.StatusUnprocessableEntity, "invalid", "no agent")
		b.mu.Unlock()
		return
	}
	answer := brokerapi.ReportsTaken{Accepted: []brokerapi.TakenReport{}, Ignored: []brokerapi.IgnoredReport{}, Revision: h.doc.Revision}
	var fresh []Received
	for _, one := range value(body.Reports) {
		id := fmt.Sprintf("%s/%d", one.TransferID, one.Sequence)
		if h.taken[id] {
			b.copies++
		} else {
			h.taken[id] = true
			fresh = append(fresh, received(r.PathValue("host"), one))
		}
		answer.Accepted = append(answer.Accepted, brokerapi.TakenReport{TransferID: one.TransferID, Sequence: one.Sequence})
	}
	b.reports = append(b.reports, fresh...)
	b.changed.Broadcast()
	notify := b.onReport
	b.mu.Unlock()
	if notify != nil {
		for _, one := range fresh {
			notify(one)
		}
	}
	b.mu.Lock()
	answer.ServerTime = b.now()
	lose := b.lose > 0
	if lose {
		b.lose--
	}
	b.mu.Unlock()
	if lose {
		panic(http.ErrAbortHandler) // the connection ends without an answer
	}
	write(w, http.StatusOK, answer)
}

// now is the broker's time; b.mu is held.
func (b *Broker) now() time.Time { return time.Now().Add(b.ahead).UTC().Truncate(time.Microsecond) }

func secret() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}

func read(w http.ResponseWriter, r *http.Request, to any) bool {
	if err := json.NewDecoder(r.Body).Decode(to); err != nil {
		problem(w, http.StatusUnprocessableEntity, "invalid", err.Error())
		return false
	}
	return true
}

func write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func problem(w http.ResponseWriter, status int, kind, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"type": "/problems/" + kind, "title": http.StatusText(status), "status": status, "detail": detail})
}
