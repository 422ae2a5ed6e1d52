// SPDX-License-Identifier: Apache-2.0

package wrap

import (
	"bandwidthbroker/agents/internal/local"
	"bandwidthbroker/agents/internal/pacing"
	"bandwidthbroker/agents/internal/schedule"
)

const (
	checkEvery int64 = 200_000 // µs
	// askAgain is how long a new plan is followed before another one is asked for, askSeldom the longest: a command that
	// thinks for a while would have the broker plan all the time.
	askAgain  int64 = 1_000_000
	askSeldom int64 = 30_000_000
	// edges is how much is booked beyond what is missing when the rest is booked anew.
	edges int64 = 300_000
)

// askForRest tells the broker when what is still booked cannot carry what is missing.
func (s *Supervisor) askForRest(now int64) {
	if now < s.checkAt || s.plan.Empty() || s.orders.Paused {
		return
	}
	s.checkAt = now + checkEvery
	sent := s.sent()
	// A command has its own idea of how much it sends: behind the end of the plan it is short when it wants to send more.
	wants := s.backlog() || (sent < s.orders.Volume && len(s.streams) > 0)
	if !pacing.Shortfall(now, s.plan, s.orders.Volume-sent) && (now < s.plan.End() || !wants) {
		return
	}
	// Where what was booked anew the last time was not used, the next request comes later and later.
	s.patience = min(2*s.patience, askSeldom)
	if sent != s.asked {
		s.patience = askAgain
	}
	s.checkAt, s.asked = schedule.Forever, sent // said once for this plan
	s.Client.Report(local.Report{
		Kind: "shortfall", Revision: s.orders.Revision, Bytes: s.orders.Volume - min(s.orders.Volume, s.wanted(sent)), RateBps: s.meter.RateBps(),
		AppliedBps: s.applied,
	})
}

// wanted is how much the broker shall book anew: what is missing, what waits beyond that, and room for a start and an end. A
// slice that is hardly longer than its guarded edges would carry nothing.
func (s *Supervisor) wanted(sent int64) int64 {
	missing := max(0, s.orders.Volume-sent)
	for _, st := range s.streams {
		missing += st.counts.Sent - st.counts.Acked // may be lost on its way
	}
	return missing + schedule.Volume(s.peak(), edges)
}

// backlog says that the command has handed over bytes that wait for their time.
func (s *Supervisor) backlog() bool {
	for _, st := range s.streams {
		if st.counts.Unsent > 0 {
			return true
		}
	}
	return false
}
