// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"encoding/hex"

	"bandwidthbroker/agents/internal/brokerapi"
	"bandwidthbroker/agents/internal/datachannel"
	"bandwidthbroker/agents/internal/failure"
	"bandwidthbroker/agents/internal/signal"
)

func (s *Sender) finish(digest datachannel.Digest) {
	if s.gate.Pass(s.clock.Now()).Open {
		s.tail.Release(0, signal.Done)
	} else {
		s.tail.Leave() // the file was there already; the link may still be its predecessor's
	}
	s.gauges.bytes.Store(s.currentOrders().Volume)
	o := s.currentOrders()
	s.log.Info("sent", "bytes", o.Volume, "checksum", o.checksum(digest))
	s.report(brokerapi.Sent, Facts{Bytes: o.Volume, Checksum: o.checksum(digest)})
	s.over(brokerapi.Sent)
}

func (s *Sender) fail(f *failure.Failure) {
	s.release(signal.Failed)
	s.log.Error("transfer failed", "code", f.Code, "detail", f.Detail)
	s.report(brokerapi.Failed, Facts{Bytes: s.gauges.safe.Load(), Code: f.Code, Detail: f.Detail})
	s.over(brokerapi.Failed)
}

func (s *Sender) over(outcome brokerapi.AgentReportKind) {
	if err := s.outbox.End(outcome); err != nil {
		s.log.Error("outcome not saved: a restart will try again", "error", err)
	}
}

func (s *Sender) report(kind brokerapi.AgentReportKind, f Facts) {
	if err := s.outbox.Report(kind, f); err != nil {
		s.log.Error("report not kept", "kind", kind, "error", err)
	}
}

// checksum is what the broker hears of a digest: nothing where nothing was hashed.
func (o *Orders) checksum(d datachannel.Digest) string {
	if o.Unchecked {
		return ""
	}
	return checksum(d)
}

func checksum(d datachannel.Digest) string { return "sha256:" + hex.EncodeToString(d[:]) }
