// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"bandwidthbroker/agents/internal/brokerapi"
	"bandwidthbroker/agents/internal/brokerclient"
)

const (
	// brokerFirst is how long a started agent waits for the broker before it acts on what it was told before.
	brokerFirst = 2 * time.Second
	retryFirst  = 500 * time.Millisecond
	retryMost   = 30 * time.Second
	// retryUnauthorized: the token was revoked, or the broker lost it. A person must act; hammering does not help.
	retryUnauthorized = time.Minute
)

// backoff spaces attempts at a broker that does not answer.
type backoff struct{ last time.Duration }

func (b *backoff) reset() { b.last = 0 }

// after says how long to wait after an error: what the broker asked for, else longer each time, never in step with
// other agents.
func (b *backoff) after(err error) time.Duration {
	if brokerclient.StatusOf(err) == http.StatusUnauthorized {
		return retryUnauthorized/2 + rand.N(retryUnauthorized)
	}
	b.last = min(max(2*b.last, retryFirst), retryMost)
	return max(b.last/2+rand.N(b.last), brokerclient.RetryAfterOf(err))
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// sleep waits, is woken early, or is told to end.
func sleep(ctx context.Context, d time.Duration, early <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-early:
	case <-ctx.Done():
		return false
	}
	return true
}

// converge fetches the desired state at start, after every push and now and then, and applies it. fresh is closed once
// the first answer, or the saved one in its place, is applied.
func (a *Agent) converge(ctx context.Context, fresh chan<- struct{}) {
	var etag string
	var retry backoff
	err := func() error {
		first, cancel := context.WithTimeout(ctx, brokerFirst)
		defer cancel()
		return a.fetch(first, &etag)
	}()
	if err != nil {
		a.log.Warn("broker not reached, going on with the saved assignments", "error", err)
		a.applySaved()
	}
	close(fresh)
	for {
		wait, early := a.cfg.Poll, a.fetchNow
		if err != nil {
			a.complain("assignments", err)
			wait, early = retry.after(err), nil
		} else {
			retry.reset()
		}
		if !sleep(ctx, wait, early) {
			return
		}
		err = a.fetch(ctx, &etag)
		if ctx.Err() != nil {
			return
		}
	}
}

func (a *Agent) fetch(ctx context.Context, etag *string) error {
	raw, tag, exchange, err := a.client.Assignments(ctx, a.credentials.Host, *etag)
	if err != nil || raw == nil {
		return err
	}
	doc, refused, err := brokerapi.ParseAssignments(raw)
	if err != nil {
		return err
	}
	a.observe(exchange, doc.ServerTime, doc.ServerTookUs)
	// Saved before it is applied: a restart must not find transfers running by something newer than it knows.
	if err := a.state.SaveAssignments(raw); err != nil {
		a.log.Error("assignments not saved: a restart without the broker would use older ones", "error", err)
		tag = "" // ask for the same ones again, to save them when that can be done
	}
	a.apply(doc, refused)
	*etag = tag
	return nil
}

func (a *Agent) applySaved() {
	raw, err := a.state.Assignments()
	if err != nil || raw == nil {
		return
	}
	doc, refused, err := brokerapi.ParseAssignments(raw)
	if err != nil {
		a.log.Error("saved assignments cannot be read", "error", err)
		return
	}
	a.apply(doc, refused)
}

// listen keeps the stream of wake-ups open. Everything works without it, only later.
func (a *Agent) listen(ctx context.Context) {
	var retry backoff
	for {
		err := a.client.Stream(ctx, a.credentials.Host, func() {
			retry.reset()
			poke(a.fetchNow)
		}, a.heard)
		if ctx.Err() != nil {
			return
		}
		a.log.Debug("stream ended", "error", err)
		if !sleep(ctx, retry.after(err), nil) {
			return
		}
	}
}

// heard compares a revision with the one applied.
func (a *Agent) heard(revision int64) {
	a.mu.Lock()
	news := revision != a.revision
	a.mu.Unlock()
	if news {
		poke(a.fetchNow)
	}
}

// complain logs a failed call; a refused token is said loudly.
func (a *Agent) complain(what string, err error) {
	if brokerclient.StatusOf(err) == http.StatusUnauthorized {
		a.log.Error("THE BROKER REFUSES THIS AGENT'S TOKEN: booked transfers go on, nothing new arrives; enrol again with a new token",
			"call", what, "host", a.credentials.Host, "error", err)
		return
	}
	a.log.Warn("broker call failed", "call", what, "error", err)
}
