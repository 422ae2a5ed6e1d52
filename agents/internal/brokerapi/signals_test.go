// SPDX-License-Identifier: Apache-2.0

package brokerapi

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestSignalsThatMakeNoSense(t *testing.T) {
	secret := strings.Repeat("ab", 32)
	base := func() Assignment {
		path := "x"
		peer := SignalPeer{TransferID: "tr_0", Host: "h", DataAddress: "h:1", Key: secret}
		early := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		return Assignment{
			TransferID: "tr_1", Role: Send, Mode: Managed, SourcePath: &path, Key: secret,
			StartAfter: &StartAfter{Predecessor: peer, Kind: StartAfterKindDirect, EarlyFrom: &early, TimeoutUs: 200_000, OnTimeout: Start},
			EndSignals: []EndSignal{{Successor: peer, Kind: EndSignalKindDirect, TimeoutUs: 200_000, OnOverrun: Delay}},
		}
	}
	for what, spoil := range map[string]func(*Assignment){
		"":           func(*Assignment) {},
		"kind":       func(a *Assignment) { a.StartAfter.Kind = "smoke" },
		"on_timeout": func(a *Assignment) { a.StartAfter.OnTimeout = "panic" },
		"early_from": func(a *Assignment) { *a.StartAfter.EarlyFrom = time.Time{} },
		"timeout_us": func(a *Assignment) { a.StartAfter.TimeoutUs = 0 },
		"key":        func(a *Assignment) { a.EndSignals[0].Successor.Key = secret[1:] },
		"plain name": func(a *Assignment) { a.EndSignals[0].Successor.TransferID = "../x" },
		"on_overrun": func(a *Assignment) { a.EndSignals[0].OnOverrun = "explode" },
		"end_signals": func(a *Assignment) {
			a.EndSignals = make([]EndSignal, maxSuccessors+1)
		},
	} {
		a := base()
		spoil(&a)
		raw, err := json.Marshal(Assignments{Host: "h", Assignments: []Assignment{a}})
		if err != nil {
			t.Fatal(err)
		}
		doc, refused, err := ParseAssignments(raw)
		if err != nil {
			t.Fatal(err)
		}
		switch why := refused["tr_1"]; {
		case what == "" && (why != nil || len(doc.Assignments) != 1):
			t.Errorf("a good one is refused: %v", why)
		case what != "" && (why == nil || !strings.Contains(why.Error(), what)):
			t.Errorf("%s: refused with %v", what, why)
		case why != nil && strings.Contains(why.Error(), secret[1:]):
			t.Errorf("%s: the refusal quotes a key", what)
		}
	}
}
