// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"
	"time"

	"bandwidthbroker/agents/internal/agentstate"
	"bandwidthbroker/agents/internal/brokerapi"
	"bandwidthbroker/agents/internal/mover"
)

// outbox is where one transfer's events go: numbered, dated in broker time, kept in the spool. It is the mover's Outbox.
type outbox struct {
	*agentstate.Memory
	agent    *Agent
	transfer string
	progress func() mover.Progress

	// Of the last progress report; used by the reporting loop alone.
	bytes   int64
	applied int64
	since   time.Time
	rate    int64
}

// Report keeps an event and has it delivered soon.
func (o *outbox) Report(kind brokerapi.AgentReportKind, f mover.Facts) error {
	if err := o.put(kind, f); err != nil {
		return err
	}
	poke(o.agent.deliverNow)
	return nil
}

func (o *outbox) put(kind brokerapi.AgentReportKind, f mover.Facts) error {
	return o.agent.spool.Put(brokerapi.AgentReport{
		TransferID: o.transfer, Sequence: o.NextSequence(), At: time.UnixMicro(o.agent.clock.Now()).UTC(), Kind: kind,
		Bytes: &f.Bytes, RateBps: &f.RateBps, AppliedRateBps: &f.AppliedBps,
		Checksum: optional(f.Checksum), Code: optional(f.Code), Detail: optional(clip(f.Detail)),
	})
}

// tick makes a progress report if something changed since the last one, and says whether it did.
func (o *outbox) tick(now time.Time) bool {
	if o.progress == nil {
		return false
	}
	p := o.progress()
	if p.Bytes == o.bytes && p.AppliedBps == o.applied {
		o.since, o.rate = now, 0
		return false
	}
	if span := now.Sub(o.since).Seconds(); span > 0 && p.Bytes > o.bytes {
		o.rate = int64(float64(p.Bytes-o.bytes) * 8 / span)
	}
	o.bytes, o.applied, o.since = p.Bytes, p.AppliedBps, now
	if err := o.put(brokerapi.Progress, mover.Facts{Bytes: p.Bytes, RateBps: o.rate, AppliedBps: p.AppliedBps}); err != nil {
		o.agent.log.Error("progress not kept", "transfer", o.transfer, "error", err)
	}
	return true
}

// clip keeps a detail within what the broker takes, and whole characters.
func clip(s string) string {
	const most = 500
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
