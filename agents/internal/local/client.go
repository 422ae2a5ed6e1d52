// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// reconnect is how often exec tries to find a daemon that went away.
const reconnect = 300 * time.Millisecond

// Client is exec's side: it keeps the conversation alive through restarts of the daemon, and knows the newest orders and
// broker time when there is none.
type Client struct {
	path     string
	transfer string
	news     chan struct{} // there is something new to look at

	offset atomic.Int64 // broker time minus the monotonic clock, µs
	guard  atomic.Int64

	mu       sync.Mutex
	line     *Line // nil while the daemon is away
	began    bool
	joined   int // how often a daemon was found
	orders   *Orders
	over     *Refusal
	held     *Rate
	pending  []Report // not yet taken
	next     int64
	progress *Progress
}

// NewClient prepares a conversation about a transfer; Run has it.
func NewClient(path, transfer string) *Client {
	return &Client{path: path, transfer: transfer, news: make(chan struct{}, 1)}
}

// Run talks with the daemon until the context ends. The first attempt must succeed: without orders there is nothing to do.
func (c *Client) Run(ctx context.Context) error {
	for first := true; ; first = false {
		line, err := Dial(c.path)
		if err == nil {
			err = c.converse(ctx, line)
		}
		if ctx.Err() != nil {
			return nil
		}
		var refusal *Refusal
		if errors.As(err, &refusal) || (first && c.Orders() == nil) {
			return explained(err, c.path)
		}
		select {
		case <-time.After(reconnect):
		case <-ctx.Done():
			return nil
		}
	}
}

// explained says what to do about a daemon that cannot be reached.
func explained(err error, path string) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no agent runs on this state folder (%w): start `bwb-agent run`, or give --state-dir", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s is closed to this user (%w): the agent must run as the same user, or with --local-group", path, err)
	}
	return err
}

func (c *Client) converse(ctx context.Context, line *Line) error {
	defer line.Close()
	stop := context.AfterFunc(ctx, line.Close)
	defer stop()
	c.mu.Lock()
	hello := Hello{Version: Version, Transfer: c.transfer, Began: c.began}
	c.mu.Unlock()
	if err := line.Send(Message{Hello: &hello}, -1); err != nil {
		return err
	}
	defer func() {
		c.mu.Lock()
		c.line = nil
		c.mu.Unlock()
		c.tell()
	}()
	for {
		m, _, err := line.Receive()
		var malformed *Malformed
		if errors.As(err, &malformed) {
			continue
		}
		if err != nil {
			return err
		}
		if m.Refused != nil {
			return m.Refused
		}
		c.take(m, line)
	}
}

func (c *Client) take(m Message, line *Line) {
	c.mu.Lock()
	var again []Report
	switch {
	case m.Time != nil:
		c.offset.Store(m.Time.Broker - m.Time.Monotonic)
		c.guard.Store(max(0, m.Time.Guard))
	case m.Orders != nil:
		if c.line == nil {
			c.line, again = line, append(again, c.pending...)
			c.joined++
			c.held = nil
		}
		c.orders = m.Orders
	case m.Over != nil:
		c.over = m.Over
	case m.Rate != nil:
		c.held = m.Rate
	case m.Taken != nil:
		for i, r := range c.pending {
			if r.Number == m.Taken.Number {
				c.pending = append(c.pending[:i:i], c.pending[i+1:]...)
				break
			}
		}
	}
	progress := c.progress
	c.mu.Unlock()
	for _, r := range again {
		_ = line.Send(Message{Report: &r}, -1)
	}
	if m.Orders != nil && progress != nil {
		_ = line.Send(Message{Progress: progress}, -1)
	}
	if m.Rate == nil || m.Rate.Error != "" {
		c.tell() // the answer to every rate is no news
	}
}

func (c *Client) tell() {
	select {
	case c.news <- struct{}{}:
	default:
	}
}

// News says that orders, the daemon's answers or its presence may have changed.
func (c *Client) News() <-chan struct{} { return c.news }

// Orders are the newest, nil before the first.
func (c *Client) Orders() *Orders {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.orders
}

// Over says why the transfer is no longer wanted; nil while it is.
func (c *Client) Over() *Refusal {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over
}

// Connected says that the daemon is there.
func (c *Client) Connected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.line != nil
}

// Joined counts the daemons that were found so far: a new one knows nothing of what was attached.
func (c *Client) Joined() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.joined
}

// Now is broker time in µs. It implements share's clock over the host's monotonic one.
func (c *Client) Now() int64 { return Monotonic() + c.offset.Load() }

// Guard is the error of the clock in µs.
func (c *Client) Guard() int64 { return c.guard.Load() }

// Began says that the command runs, so that a daemon that is started anew expects it to go on.
func (c *Client) Began() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.began = true
}

// Progress tells how far the command is. What the daemon does not hear now, it hears when it is back.
func (c *Client) Progress(p Progress) {
	c.mu.Lock()
	c.progress = &p
	line := c.line
	c.mu.Unlock()
	if line != nil {
		_ = line.Send(Message{Progress: &p}, -1)
	}
}

// Report hands an event over; it is sent again until the daemon has it on disk.
func (c *Client) Report(r Report) {
	c.mu.Lock()
	c.next++
	r.Number = c.next
	c.pending = append(c.pending, r)
	line := c.line
	c.mu.Unlock()
	if line != nil {
		_ = line.Send(Message{Report: &r}, -1)
	}
}

// Untaken is how many reports the daemon has not confirmed.
func (c *Client) Untaken() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pending)
}

var errAway = errors.New("the agent's daemon is away")

// Attach hands the daemon a duplicate of a socket, to be held with a privilege that we lack.
func (c *Client) Attach(inode uint64, to string, fd int) error {
	return c.send(Message{Attach: &Attach{inode, to}}, fd)
}

// Detach has the daemon give it up.
func (c *Client) Detach(inode uint64) error {
	return c.send(Message{Detach: &Attach{Socket: inode}}, -1)
}

// Rate has the daemon hold all attached sockets to a rate. The answer comes later: see Held.
func (c *Client) Rate(bps int64) error { return c.send(Message{Rate: &Rate{Bps: bps}}, -1) }

// Held is what the daemon answered last about the rate.
func (c *Client) Held() (Rate, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil {
		return Rate{}, false
	}
	return *c.held, true
}

func (c *Client) send(m Message, fd int) error {
	c.mu.Lock()
	line := c.line
	c.mu.Unlock()
	if line == nil {
		return errAway
	}
	return line.Send(m, fd)
}

// Ask finds out who the agent on a socket is.
func Ask(path string) (About, error) {
	line, err := Dial(path)
	if err != nil {
		return About{}, explained(err, path)
	}
	defer line.Close()
	if err := line.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return About{}, err
	}
	if err := line.Send(Message{About: &About{Version: Version}}, -1); err != nil {
		return About{}, err
	}
	m, _, err := line.Receive()
	switch {
	case err != nil:
		return About{}, err
	case m.About == nil:
		return About{}, errors.New("the agent did not say who it is")
	}
	return *m.About, nil
}
