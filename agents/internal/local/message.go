// SPDX-License-Identifier: Apache-2.0

// Package local is what `bwb-agent exec` and the agent's daemon say to each other on a unix socket in the state folder:
// JSON, one object a line. exec supervises a command as the user who called it; the daemon knows the orders and broker
// time, keeps reports, and does what needs a privilege.
package local

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
)

// Version of the protocol. Both sides refuse another one with a message that names both.
const Version = 1

// longest is the most that a line may have: a schedule of 100,000 segments fits.
const longest = 16 << 20

// Message is one line. Exactly one of the fields is set.
type Message struct {
	// From exec.
	Hello    *Hello    `json:"hello,omitempty"`
	About    *About    `json:"about,omitempty"` // from exec: a question; from the daemon: the answer
	Progress *Progress `json:"progress,omitempty"`
	Report   *Report   `json:"report,omitempty"`
	Attach   *Attach   `json:"attach,omitempty"` // the socket comes with the line (SCM_RIGHTS)
	Detach   *Attach   `json:"detach,omitempty"`
	Rate     *Rate     `json:"rate,omitempty"` // from exec: hold to it; from the daemon: what the kernel holds to

	// From the daemon.
	Orders  *Orders  `json:"orders,omitempty"`
	Time    *Time    `json:"time,omitempty"`
	Taken   *Taken   `json:"taken,omitempty"`
	Refused *Refusal `json:"refused,omitempty"`
	Over    *Refusal `json:"over,omitempty"` // the transfer is no longer wanted: cancelled, or ended by the broker
}

// Hello opens the conversation about a transfer. Began says that the command runs already: exec comes back.
type Hello struct {
	Version  int    `json:"version"`
	Transfer string `json:"transfer_id"`
	Began    bool   `json:"began"`
}

// About is who the agent is.
type About struct {
	Version int    `json:"version"`
	Agent   string `json:"agent_version,omitempty"`
	Host    string `json:"host,omitempty"`
	Node    string `json:"node,omitempty"`
	Broker  string `json:"broker,omitempty"`
}

// Orders are what the broker wants: the schedule on broker time (µs, bit/s of payload).
type Orders struct {
	Transfer  string    `json:"transfer_id"`
	Revision  int64     `json:"plan_revision"`
	Volume    int64     `json:"volume_bytes"`
	Segments  []Segment `json:"segments"`
	Fallback  int64     `json:"fallback_rate_bps"`
	Paused    bool      `json:"paused"`
	Mechanism string    `json:"mechanism"` // the daemon has chosen where the broker left it open
	Remote    bool      `json:"remote"`    // the daemon holds the rate: sockets and rates are handed over
	Wait      bool      `json:"wait"`      // the signal to start has not come
	After     string    `json:"after"`     // the transfer whose end that signal says; "": none
	Peer      string    `json:"peer"`
}

// Segment books a rate over [begin, end).
type Segment struct {
	Begin   int64 `json:"begin_us"`
	End     int64 `json:"end_us"`
	RateBps int64 `json:"rate_bps"`
}

// Time is broker time at an instant of the monotonic clock, which all processes of a host share.
type Time struct {
	Monotonic int64 `json:"monotonic_us"`
	Broker    int64 `json:"broker_us"`
	Guard     int64 `json:"guard_us"` // by how much schedules are narrowed at each step: the error of the clock
}

// Progress is how far the command is; the newest counts.
type Progress struct {
	Bytes      int64 `json:"bytes"`
	AppliedBps int64 `json:"applied_rate_bps"`
	Sockets    int   `json:"sockets"`
}

// Report is an event for the broker. Number counts up from 1; the daemon answers Taken when it is safely on disk.
type Report struct {
	Number     int64  `json:"number"`
	Kind       string `json:"kind"` // started, shortfall, finished, failed
	Revision   int64  `json:"plan_revision"`
	Bytes      int64  `json:"bytes"`
	RateBps    int64  `json:"rate_bps"`
	AppliedBps int64  `json:"applied_rate_bps"`
	Code       string `json:"code,omitempty"`
	Detail     string `json:"detail,omitempty"`
}

// Taken says that a report is kept.
type Taken struct {
	Number int64 `json:"number"`
}

// Attach names a socket that the daemon holds for exec.
type Attach struct {
	Socket uint64 `json:"socket"`       // its inode
	To     string `json:"to,omitempty"` // ADDRESS:PORT, which the kernel does not know before the connection is made
}

// Rate is the rate of all attached sockets together; Error says that the mechanism does not hold, and exec must.
type Rate struct {
	Bps   int64  `json:"bps"`
	Error string `json:"error,omitempty"`
}

// Refusal says why something is not done, or not any more.
type Refusal struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

func (r *Refusal) Error() string { return r.Code + ": " + r.Detail }

var errShape = errors.New("want exactly one of the known messages")

// Parse reads one line and checks what a stranger could have got wrong.
func Parse(line []byte) (Message, error) {
	var m Message
	decoder := json.NewDecoder(bytes.NewReader(line))
	if err := decoder.Decode(&m); err != nil {
		return Message{}, fmt.Errorf("not a message: %w", err)
	}
	if m.set() != 1 {
		return Message{}, errShape
	}
	switch {
	case m.Hello != nil && m.Hello.Transfer == "":
		return Message{}, errors.New("hello.transfer_id is missing")
	case m.Report != nil:
		return m, m.Report.check()
	case m.Progress != nil && (m.Progress.Bytes < 0 || m.Progress.AppliedBps < 0):
		return Message{}, errors.New("progress is negative")
	case m.Rate != nil && m.Rate.Bps < 0:
		return Message{}, errors.New("rate.bps is negative")
	case m.Orders != nil:
		return m, m.Orders.check()
	}
	return m, nil
}

func (m Message) set() int {
	n := 0
	for _, there := range []bool{
		m.Hello != nil, m.About != nil, m.Progress != nil, m.Report != nil, m.Attach != nil, m.Detach != nil, m.Rate != nil,
		m.Orders != nil, m.Time != nil, m.Taken != nil, m.Refused != nil, m.Over != nil,
	} {
		if there {
			n++
		}
	}
	return n
}

var code = regexp.MustCompile(`^[a-z_]{0,64}$`)

func (r *Report) check() error {
	switch {
	case r.Number < 1:
		return errors.New("report.number must be above 0")
	case r.Bytes < 0 || r.RateBps < 0 || r.AppliedBps < 0:
		return errors.New("report has a negative figure")
	case r.Kind != "started" && r.Kind != "shortfall" && r.Kind != "finished" && r.Kind != "failed":
		return fmt.Errorf("report.kind %q is none that a command has", r.Kind)
	case !code.MatchString(r.Code):
		return fmt.Errorf("report.code %q: want small letters and _", r.Code)
	}
	return nil
}

func (o *Orders) check() error {
	for i, s := range o.Segments {
		if s.Begin >= s.End || s.RateBps < 0 {
			return fmt.Errorf("orders.segments[%d]: [%d, %d) at %d bit/s", i, s.Begin, s.End, s.RateBps)
		}
	}
	return nil
}
