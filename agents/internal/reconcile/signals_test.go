// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"strings"
	"testing"
	"time"

	"bandwidthbroker/agents/internal/brokerapi"
	"bandwidthbroker/agents/internal/mover"
	"bandwidthbroker/agents/internal/schedule"
)

func TestSignalsFromTheDocument(t *testing.T) {
	path, early := "x", time.Date(2026, 1, 1, 0, 0, 0, 1000, time.UTC)
	peer := func(id string) brokerapi.SignalPeer {
		return brokerapi.SignalPeer{TransferID: id, Host: "h", DataAddress: "h:1", Key: "6b"}
	}
	doc := brokerapi.Assignments{Assignments: []brokerapi.Assignment{{
		TransferID: "tr_2", Role: brokerapi.Send, Mode: brokerapi.Managed, SourcePath: &path,
		StartAfter: &brokerapi.StartAfter{
			Predecessor: peer("tr_1"), Kind: "direct", EarlyFrom: &early, TimeoutUs: 200_000, OnTimeout: brokerapi.Cancel, Released: true,
		},
		EndSignals: []brokerapi.EndSignal{{Successor: peer("tr_3"), Kind: "broker", TimeoutUs: 7_000, OnOverrun: brokerapi.Delay}},
	}}}
	got := Wanted(doc, -1)[0]
	want := mover.StartAfter{
		Predecessor: mover.SignalPeer{Transfer: "tr_1", Host: "h", Address: "h:1", Key: "k"}, Kind: mover.OnDirect, EarlyFrom: 1767225600000001,
		Timeout: 200_000, Cancel: true, Released: true,
	}
	if got.StartAfter != want {
		t.Errorf("got %+v, want %+v", got.StartAfter, want)
	}
	after := mover.EndSignal{Successor: mover.SignalPeer{Transfer: "tr_3", Host: "h", Address: "h:1", Key: "k"}, Kind: mover.OnBroker, Timeout: 7_000, Delay: true}
	if len(got.EndSignals) != 1 || got.EndSignals[0] != after {
		t.Errorf("got %+v, want %+v", got.EndSignals, after)
	}
	doc.Assignments[0].StartAfter.EarlyFrom = nil
	if never := Wanted(doc, -1)[0].StartAfter.EarlyFrom; never != schedule.Forever {
		t.Errorf("early_from null became %d", never)
	}
}

// A change of what a transfer starts on, or of whom it tells, is an update; the same again is nothing.
func TestNewSignalsAreAnUpdate(t *testing.T) {
	have := order("a", nil)
	for _, change := range []func(*mover.Orders){
		func(o *mover.Orders) { o.StartAfter.Released = true },
		func(o *mover.Orders) { o.EndSignals = []mover.EndSignal{{Kind: mover.OnDirect}} },
	} {
		want := order("a", change)
		ops := Diff(map[string]mover.Orders{"a": have}, []mover.Orders{want}, nil)
		if len(ops) != 1 || !strings.HasPrefix(ops[0].String(), "update") {
			t.Errorf("%v", ops)
		}
		if again := Diff(map[string]mover.Orders{"a": want}, []mover.Orders{order("a", change)}, nil); len(again) != 0 {
			t.Errorf("%v", again)
		}
	}
}
