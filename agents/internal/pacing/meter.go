// SPDX-License-Identifier: Apache-2.0

package pacing

// Sampling is how a Meter takes its samples.
type Sampling struct {
	// Window is how long bytes are counted before they make a rate, in µs.
	Window int64
	// MinWindows must have passed before anything is said.
	MinWindows int
	// Drift: a held rate that changes by more than 1/Drift begins a new measurement; 0: any change does.
	Drift int64
	// Restart: a look at which nothing was sent begins a new measurement too.
	Restart bool
	// Best says the highest rate of all windows, otherwise that of the newest.
	Best bool
}

// The meter has one law and two ways to take samples, because pauses mean different things.
var (
	// WriterSampling is for a sender that always has something to send: a pause is the machine's or the network's. The best
	// window counts, not the mean: a sender that once reached what was booked and then stood still for a moment can reach it
	// again, and would stay at the mean if that were booked. One window in which the machine stood still says nothing.
	WriterSampling = Sampling{Window: 250_000, MinWindows: 3, Best: true}
	// CommandSampling is for a command of a user: it may think, or begin a connection, and neither says what it can send. Only
	// what it sends without a pause counts, and its newest rate, because what it does changes.
	CommandSampling = Sampling{Window: 1_000_000, MinWindows: 1, Drift: 20, Restart: true}
)

// Meter measures the rate that a sender reaches while it is held to one rate: the broker books no more for what is left.
type Meter struct {
	sampling Sampling
	heldBps  int64 // by which it was held when the measurement began
	since    int64 // µs: begin of the window
	start    int64 // bytes sent until then
	newest   int64 // bytes sent until the last look
	windows  int
	bps      int64
}

// NewMeter makes a meter that has seen nothing.
func NewMeter(sampling Sampling) *Meter { return &Meter{sampling: sampling} }

// See takes a look at the bytes sent so far, by a sender that is held to a rate from now on.
func (m *Meter) See(now, sent, heldBps int64) {
	paused := m.sampling.Restart && sent == m.newest
	m.newest = sent
	if paused || m.changed(heldBps) {
		*m = Meter{sampling: m.sampling, heldBps: heldBps, since: now, start: sent, newest: sent}
		return
	}
	span := now - m.since
	if span < m.sampling.Window {
		return
	}
	rate := (sent - m.start) * 8_000_000 / span
	if m.sampling.Best {
		rate = max(rate, m.bps)
	}
	m.bps, m.since, m.start = rate, now, sent
	m.windows++
}

func (m *Meter) changed(heldBps int64) bool {
	drift := int64(0)
	if m.sampling.Drift > 0 {
		drift = m.heldBps / m.sampling.Drift
	}
	return heldBps < m.heldBps-drift || heldBps > m.heldBps+drift
}

// RateBps is what was reached, in bit/s; 0 until that can be said.
func (m *Meter) RateBps() int64 {
	if m.windows < m.sampling.MinWindows {
		return 0
	}
	return m.bps
}
