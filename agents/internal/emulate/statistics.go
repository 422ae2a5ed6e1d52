// SPDX-License-Identifier: Apache-2.0

package emulate

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"bandwidthbroker/agents/internal/gateway"
)

// Statistics are of the whole run. Bytes are wire bytes: IP plus FramingBytes for each packet.
type Statistics struct {
	Seed         uint64                         `json:"seed"`
	FramingBytes int64                          `json:"framing_bytes"`
	ElapsedUs    int64                          `json:"elapsed_us"`
	Realtime     bool                           `json:"realtime"`
	Directions   map[string]DirectionStatistics `json:"directions"`
	TraceError   string                         `json:"trace_error,omitempty"`
}

// DirectionStatistics are the counts of one direction of the link. Lateness is what the emulator itself adds to the delay, Unread
// how long packets may have waited before it read them, RunQueueUs how long its thread was ready but not scheduled. If
// these are large beside the delay, the measurement is worth nothing.
type DirectionStatistics struct {
	CapacityBps   int64             `json:"capacity_bps"`
	DelayUs       int64             `json:"delay_us"`
	BufferBytes   int64             `json:"buffer_bytes"`
	Loss          float64           `json:"loss"`
	Cut           bool              `json:"cut"`
	Offered       Amount            `json:"offered"`
	Forwarded     Amount            `json:"forwarded"`
	Dropped       map[string]Amount `json:"dropped"`
	QueueBytes    int64             `json:"queue_bytes"`
	QueueMaxBytes int64             `json:"queue_max_bytes"`
	OnTheLink     int               `json:"on_the_link_packets"`
	Overrun       int64             `json:"overrun_packets"`
	Refused       int64             `json:"refused_packets"`
	Refusal       string            `json:"refusal,omitempty"`
	Lateness      Spread            `json:"lateness_us"`
	Unread        Spread            `json:"unread_us"`
	RunQueueUs    int64             `json:"run_queue_us"`
	ProcessorUs   int64             `json:"processor_us"`
}

// Spread of a duration, in µs.
type Spread struct {
	Count int64   `json:"count"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p999"`
	Max   float64 `json:"max"`
}

func spread(l *gateway.Lateness) Spread {
	us := func(ns int64) float64 { return float64(ns) / 1000 }
	return Spread{l.Count(), us(l.Mean()), us(l.Percentile(500)), us(l.Percentile(990)), us(l.Percentile(999)), us(l.Max())}
}

// Statistics now.
func (e *Emulator) Statistics() Statistics {
	s := Statistics{
		Seed: e.options.Seed, FramingBytes: e.options.Framing, ElapsedUs: int64(e.directions[0].now()) / 1000,
		Realtime:   e.realtime,
		Directions: map[string]DirectionStatistics{},
	}
	for _, d := range e.directions {
		s.Directions[d.name] = d.statistics()
	}
	if e.trace != nil {
		if err := e.trace.error(); err != nil {
			s.TraceError = err.Error()
		}
	}
	return s
}

func (d *direction) statistics() DirectionStatistics {
	overrun, _ := d.from.Overrun() // a device that is gone has stopped everything else, too
	d.mu.Lock()
	defer d.mu.Unlock()
	processor, runQueue := d.processor, d.runQueue
	if thread := d.thread.Load(); thread != 0 {
		processor, runQueue = scheduled(thread)
	}
	set := d.link.Settings()
	s := DirectionStatistics{
		CapacityBps: set.CapacityBps, DelayUs: set.Delay / 1000, BufferBytes: set.Buffer, Loss: float64(set.Loss) / gateway.Billion,
		Cut: d.link.IsCut(), Offered: d.count.Offered, Forwarded: *d.count.of(gateway.Forwarded),
		Dropped: map[string]Amount{
			"overflow": *d.count.of(gateway.Overflow), "lost": *d.count.of(gateway.Lost),
			"cut": *d.count.of(gateway.Cut), "ordered": *d.count.of(gateway.Ordered),
		},
		QueueBytes: d.link.Queued(d.now()), QueueMaxBytes: d.count.QueueMax, OnTheLink: d.link.Held(), Overrun: overrun,
		Refused: d.count.Refused, Lateness: spread(&d.late), Unread: spread(&d.look), RunQueueUs: runQueue, ProcessorUs: processor,
	}
	if d.count.refusal != nil {
		s.Refusal = d.count.refusal.Error()
	}
	return s
}

// scheduled is how long a thread of ours ran, and how long it waited for a processor, in µs; 0 where the kernel does not say.
func scheduled(thread int64) (ran, waited int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/schedstat", thread))
	if fields := strings.Fields(string(text)); err == nil && len(fields) >= 2 {
		ran, _ = strconv.ParseInt(fields[0], 10, 64)
		waited, _ = strconv.ParseInt(fields[1], 10, 64)
	}
	return ran / 1000, waited / 1000
}
