// SPDX-License-Identifier: Apache-2.0

package emulate

import "bandwidthbroker/agents/internal/gateway"

const (
	tick = 10_000_000 // ns of one row of the trace
	// open ticks are those that a packet may still be counted in: one that is delivered late belongs to the tick it was due in.
	open = 8
)

// row is what one flow did in one tick, in wire bytes.
type row struct{ offered, forwarded, dropped int64 }

// ticks sums up what flows do, tick by tick, and hands ticks that are over to the trace. Without one it does nothing.
type ticks struct {
	write  func(*window)
	first  int64 // the oldest open tick
	opened [open]window
}

// window is one tick.
type window struct {
	number    int64
	queueMax  int64
	unreadMax int64 // ns that a packet may have waited for us to read it
	touched   []int // numbers of the flows that have a row
	rows      []row // by number of flow
}

func (t *ticks) at(ns int64) *window {
	number := max(ns/tick, t.first)
	for number >= t.first+open {
		t.close()
	}
	w := &t.opened[number%open]
	w.number = number
	return w
}

func (t *ticks) close() {
	w := &t.opened[t.first%open]
	if len(w.touched) > 0 {
		t.write(w)
		for _, flow := range w.touched {
			w.rows[flow] = row{}
		}
		w.touched, w.queueMax, w.unreadMax = w.touched[:0], 0, 0
	}
	t.first++
}

// flush hands over all that is open.
func (t *ticks) flush() {
	if t.write == nil {
		return
	}
	for range open {
		t.close()
	}
}

func (w *window) row(flow int) *row {
	if flow >= len(w.rows) {
		w.rows = append(w.rows, make([]row, max(64, flow+1-len(w.rows)))...)
	}
	r := &w.rows[flow]
	if *r == (row{}) {
		w.touched = append(w.touched, flow)
	}
	return r
}

// offered counts a packet when it was read, which may be so much later than it came.
func (t *ticks) offered(now int64, flow int, size, unread int64) {
	if t.write != nil {
		w := t.at(now)
		w.row(flow).offered += size
		w.unreadMax = max(w.unreadMax, unread)
	}
}

func (t *ticks) dropped(now int64, flow int, size int64) {
	if t.write != nil {
		t.at(now).row(flow).dropped += size
	}
}

func (t *ticks) queued(now, size int64) {
	if t.write != nil {
		w := t.at(now)
		w.queueMax = max(w.queueMax, size)
	}
}

// ended counts a packet when it was due, which is exact, rather than when it was delivered.
func (t *ticks) ended(p gateway.Packet, size int64) {
	if t.write == nil {
		return
	}
	r := t.at(p.Due).row(p.Flow)
	if p.Fate == gateway.Forwarded {
		r.forwarded += size
	} else {
		r.dropped += size
	}
}
