// SPDX-License-Identifier: Apache-2.0

package brokerapi

import (
	"encoding/hex"
	"fmt"
)

const (
	// minTimeoutUs and maxTimeoutUs are what an agent can keep to: below, a busy host cannot; above, a lost signal would
	// hold a link for longer than anybody watches it.
	minTimeoutUs = 1_000
	maxTimeoutUs = 3_600_000_000
	// maxSuccessors bounds what one transfer tells about its end.
	maxSuccessors = 64
)

// checkSignals names what makes no sense in what a transfer starts on and whom it tells that it has ended.
func (a Assignment) checkSignals() error {
	if s := a.StartAfter; s != nil {
		if !s.Kind.Valid() || !s.OnTimeout.Valid() {
			return fmt.Errorf("start_after: kind %q, on_timeout %q", s.Kind, s.OnTimeout)
		}
		if err := s.Predecessor.check(s.TimeoutUs); err != nil {
			return fmt.Errorf("start_after: %w", err)
		}
		if s.EarlyFrom != nil && !plausible(*s.EarlyFrom) {
			return fmt.Errorf("start_after: early_from %s", s.EarlyFrom)
		}
	}
	if len(a.EndSignals) > maxSuccessors {
		return fmt.Errorf("%d end_signals", len(a.EndSignals))
	}
	for i, e := range a.EndSignals {
		if !e.Kind.Valid() || !e.OnOverrun.Valid() {
			return fmt.Errorf("end_signals %d: kind %q, on_overrun %q", i, e.Kind, e.OnOverrun)
		}
		if err := e.Successor.check(e.TimeoutUs); err != nil {
			return fmt.Errorf("end_signals %d: %w", i, err)
		}
	}
	return nil
}

func (p SignalPeer) check(timeoutUs int64) error {
	if !transferID.MatchString(p.TransferID) {
		return fmt.Errorf("transfer_id %q is not a plain name", p.TransferID)
	}
	if key, err := hex.DecodeString(p.Key); err != nil || len(key) != 32 {
		return fmt.Errorf("key is not 64 hex digits")
	}
	if timeoutUs < minTimeoutUs || timeoutUs > maxTimeoutUs {
		return fmt.Errorf("timeout_us %d", timeoutUs)
	}
	return nil
}
