// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"errors"
	"fmt"

	"bandwidthbroker/agents/internal/failure"
	"bandwidthbroker/agents/internal/mechanism"
	"bandwidthbroker/agents/internal/pacing"
	"bandwidthbroker/agents/internal/schedule"
)

// Mechanisms is what the host has to hold a transfer's connection to its rate (mechanism.Host).
type Mechanisms interface {
	// Candidates are the mechanisms to try, the best first.
	Candidates(asked mechanism.Name) ([]mechanism.Name, error)
	// Own makes the limiter for this process's own sockets.
	Own(name mechanism.Name, transfer string) (pacing.Limiter, error)
	// LookaheadUs is how far ahead of the booking a sender may write that a mechanism holds.
	LookaheadUs(name mechanism.Name) int64
}

// holdBy has the connection held by what the orders ask for. Another mechanism than before takes over before the old one lets
// go, so that the connection is never without.
func (t *transmission) holdBy(asked mechanism.Name) error {
	if t.limiter != nil && asked == t.asked {
		return nil
	}
	names, err := t.mechanisms.Candidates(asked)
	if err != nil {
		return unavailable(err)
	}
	var refusals []error
	for _, name := range names {
		if t.limiter != nil && t.holder == name {
			t.asked = asked
			return nil
		}
		made, err := t.begin(name)
		if err == nil {
			t.letGo()
			t.limiter, t.holder, t.asked = made, name, asked
			t.log.Debug("mechanism", "name", name)
			return nil
		}
		refusals = append(refusals, err)
	}
	return unavailable(errors.Join(refusals...))
}

// begin lets one more mechanism hold the connection.
func (t *transmission) begin(name mechanism.Name) (pacing.Limiter, error) {
	made, err := t.mechanisms.Own(name, t.orders.Transfer)
	if err != nil {
		return nil, err
	}
	if rate := t.firstRate(); rate > 0 {
		_, err = made.SetRate(rate)
	}
	if err == nil {
		err = made.Attach(t.link.tcp)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), made.Close())
	}
	return made, nil
}

// firstRate is what a mechanism begins with: while nothing may be sent, the rate of the first byte. A kernel that has been told of a
// lower one takes up a higher one only with the next acknowledgement, and sends the first packets by the lower: 11 ms for each at 1 Mbit/s.
func (t *transmission) firstRate() int64 {
	if t.rate > 0 {
		return t.rate
	}
	plan := schedule.New(t.orders.Segments)
	if plan.Empty() {
		return 0
	}
	return plan.RateAt(plan.Begin())
}

// letGo lets the connection go and undoes what was done for it on the host.
func (t *transmission) letGo() {
	if t.limiter == nil {
		return
	}
	t.limiter.Detach(t.link.tcp)
	if err := t.limiter.Close(); err != nil {
		t.log.Warn("mechanism not undone", "name", t.holder, "error", err)
	}
	t.limiter = nil
}

// unavailable ends the transfer, unless it is the connection that is at fault: then another may do.
func unavailable(err error) error {
	var lacks *mechanism.Unavailable
	if errors.As(err, &lacks) {
		return failure.New(failure.MechanismUnavailable, "%v", err)
	}
	return err
}

// jumbo is the payload of a frame of 9000 bytes. Segments of the loopback are longer, and need not be sent whole.
const jumbo int64 = 8_948

// style is how far the account may run ahead so that it is the mechanism that shapes.
func (t *transmission) style() pacing.Style {
	s := pacing.Style{Lookahead: t.mechanisms.LookaheadUs(t.holder), Packet: pacing.Ethernet}
	if info, err := t.link.tcp.Info(); err == nil && info.Snd_mss > 0 {
		s.Packet = min(int64(info.Snd_mss), jumbo)
	}
	return s
}
