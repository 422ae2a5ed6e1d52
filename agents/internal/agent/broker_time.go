// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"time"

	"bandwidthbroker/agents/internal/brokerapi"
	"bandwidthbroker/agents/internal/brokerclient"
	"bandwidthbroker/agents/internal/clock"
)

const (
	// goodClock is an error small enough not to ask again for the clock's sake.
	goodClock = 2 * time.Millisecond
	// quickCalls at quickEvery, so that within a second the clock is as good as the path allows, or a doubt is settled.
	quickCalls = 8
	quickEvery = 100 * time.Millisecond
)

// observe sets the clock by an exchange with the broker, and says so when that shows a step.
func (a *Agent) observe(ex brokerclient.Exchange, server time.Time, tookMicros int64) {
	if server.IsZero() {
		return
	}
	if by := a.clock.Observe(ex.Sent, ex.Received, server, time.Duration(tookMicros)*time.Microsecond); by != 0 {
		a.log.Warn("the broker's clock was stepped: transfers follow it", "by", by)
	}
}

// watchWall notes steps of the host's own clock. Transfers do not follow them; the offset that is remembered for the next
// start does.
func (a *Agent) watchWall() {
	if by := a.clock.WallStepped(); by != 0 {
		a.log.Warn("this host's clock was stepped: transfers do not follow it", "by", by)
		a.saveClock()
	}
}

func (a *Agent) saveClock() {
	if err := a.state.SaveClock(a.clock.Read().Offset); err != nil {
		a.log.Warn("clock not saved", "error", err)
	}
}

// quick decides when to call the broker for the clock's sake alone. It belongs to the reporting loop.
type quick struct {
	left    int
	doubted bool
	// What the broker knows: a report tells of the clock as it was before that very call made it better.
	toldSteps int
	toldError time.Duration
}

// wanted says that a call soon may make the clock better, or that there is a step to tell of.
func (q *quick) wanted(r clock.Reading) bool {
	if r.Doubted && !q.doubted {
		q.left = quickCalls
	}
	q.doubted = r.Doubted
	return r.Steps != q.toldSteps || q.left > 0 && (r.Doubted || max(r.Error, q.toldError) > goodClock)
}

func (q *quick) called(r clock.Reading) {
	q.left = max(0, q.left-1)
	q.toldSteps, q.toldError = r.Steps, r.Error
}

// aboutClock is the clock as reports tell it.
func (a *Agent) aboutClock() *brokerapi.AgentClock {
	r := a.clock.Read()
	steps := int64(r.Steps)
	said := &brokerapi.AgentClock{
		OffsetUs: r.Offset.Microseconds(), ErrorUs: r.Error.Microseconds(),
		AdjtimexErrorUs: &r.Host.ErrorMicros, Synchronised: &r.Host.Synchronised, Steps: &steps,
	}
	if r.Steps > 0 {
		by := r.LastStep.Microseconds()
		said.LastStepUs = &by
	}
	return said
}
