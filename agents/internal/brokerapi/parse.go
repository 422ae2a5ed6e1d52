// SPDX-License-Identifier: Apache-2.0

// Package brokerapi is the contract with the broker: the bodies, generated from api-spec/openapi.yaml, and the checks
// that the desired state passes before the agent acts on it. The calls are in package brokerclient.
package brokerapi

//go:generate go tool oapi-codegen -config codegen.yaml -o types.gen.go ../../../api-spec/openapi.yaml

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"time"
)

// transferID is what may name a file in the state folder: no separators, no leading dot.
var transferID = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,127}$`)

const (
	maxSegments       = 100_000
	maxRateBps  int64 = 1e15
)

// ParseAssignments reads the desired state and checks every assignment. Assignments that make no sense are left out and
// named in refused: one bad row must not stop the others, and must not end a transfer that runs by an earlier row.
func ParseAssignments(raw []byte) (doc Assignments, refused map[string]error, err error) {
	if err := json.Unmarshal(raw, &doc); err != nil {
		return Assignments{}, nil, fmt.Errorf("assignments: %w", err)
	}
	if doc.Host == "" {
		return Assignments{}, nil, fmt.Errorf("assignments: no host")
	}
	refused = map[string]error{}
	seen := map[string]bool{}
	good := doc.Assignments[:0]
	for _, a := range doc.Assignments {
		err := a.check()
		if err == nil && seen[a.TransferID] {
			err = fmt.Errorf("listed twice")
		}
		if err != nil {
			refused[a.TransferID] = err
			continue
		}
		seen[a.TransferID] = true
		good = append(good, a)
	}
	doc.Assignments = good
	if doc.FallbackRateBps < 0 || doc.FallbackRateBps > maxRateBps {
		doc.FallbackRateBps = 0
	}
	return doc, refused, nil
}

func (a Assignment) check() error {
	if !transferID.MatchString(a.TransferID) {
		return fmt.Errorf("transfer_id %q is not a plain name", a.TransferID)
	}
	switch {
	case a.Mode == Managed && a.Role == Send && a.SourcePath == nil:
		return fmt.Errorf("role send without source_path")
	case a.Mode == Managed && a.Role == Receive && a.DestinationPath == nil:
		return fmt.Errorf("role receive without destination_path")
	case a.Mode == Observed && a.Role == Send && a.Match == nil:
		return fmt.Errorf("mode observed without match")
	case a.Role != Send && a.Role != Receive:
		return fmt.Errorf("role %q", a.Role)
	case a.VolumeBytes < 0:
		return fmt.Errorf("volume_bytes %d", a.VolumeBytes)
	case len(a.Segments) > maxSegments:
		return fmt.Errorf("%d segments", len(a.Segments))
	}
	if key, err := hex.DecodeString(a.Key); err != nil || len(key) != 32 {
		return fmt.Errorf("key is not 64 hex digits") // and is not quoted: it is a secret
	}
	for i, s := range a.Segments {
		if !s.Begin.Before(s.End) || s.RateBps < 0 || s.RateBps > maxRateBps || !plausible(s.Begin) || !plausible(s.End) {
			return fmt.Errorf("segment %d: [%s, %s) at %d bit/s", i, s.Begin.Format(time.RFC3339Nano), s.End.Format(time.RFC3339Nano), s.RateBps)
		}
	}
	return a.checkSignals()
}

// plausible keeps arithmetic on microseconds far from its limits.
func plausible(t time.Time) bool { return t.Year() >= 1970 && t.Year() < 10000 }
