// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"bandwidthbroker/agents/internal/brokerapi"
	"bandwidthbroker/agents/internal/mover"
	"bandwidthbroker/agents/internal/schedule"
)

func order(id string, change func(*mover.Orders)) mover.Orders {
	o := mover.Orders{Transfer: id, Send: true, Path: "x", Volume: 10, Key: "k", Revision: 1, Segments: []schedule.Segment{{Begin: 1, End: 2, RateBps: 3}}}
	if change != nil {
		change(&o)
	}
	return o
}

func TestDiff(t *testing.T) {
	running := map[string]mover.Orders{}
	for _, id := range []string{"same", "replanned", "paused", "moved", "gone", "held", "fallback", "newpath"} {
		running[id] = order(id, nil)
	}
	wanted := []mover.Orders{
		order("same", nil),
		order("replanned", func(o *mover.Orders) { o.Revision = 2; o.Segments = nil }),
		order("paused", func(o *mover.Orders) { o.Paused = true }),
		order("moved", func(o *mover.Orders) { o.Peer.Address = "elsewhere:1" }),
		order("fallback", func(o *mover.Orders) { o.Fallback = 9 }),
		order("newpath", func(o *mover.Orders) { o.Path = "y" }),
		order("new", nil),
	}
	got := fmt.Sprint(Diff(running, wanted, map[string]error{"held": errors.New("nonsense")}))
	want := "[stop gone stop newpath update fallback update moved update paused update replanned start new start newpath]"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Carrying out the difference leaves none, whatever ran and whatever is wanted.
func TestTwiceIsANoOp(t *testing.T) {
	draw := rapid.Custom(func(t *rapid.T) mover.Orders {
		return order(rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "id"), func(o *mover.Orders) {
			o.Revision = rapid.Int64Range(1, 2).Draw(t, "revision")
			o.Paused = rapid.Bool().Draw(t, "paused")
			o.Path = rapid.SampledFrom([]string{"x", "y"}).Draw(t, "path")
		})
	})
	unique := rapid.SliceOfNDistinct(draw, 0, 4, func(o mover.Orders) string { return o.Transfer })
	rapid.Check(t, func(t *rapid.T) {
		running := map[string]mover.Orders{}
		for _, o := range unique.Draw(t, "running") {
			running[o.Transfer] = o
		}
		wanted := unique.Draw(t, "wanted")
		for _, op := range Diff(running, wanted, nil) {
			if op.Verb == Stop {
				delete(running, op.Orders.Transfer)
			} else {
				running[op.Orders.Transfer] = op.Orders
			}
		}
		if left := Diff(running, wanted, nil); len(left) != 0 || len(running) != len(wanted) {
			t.Fatalf("left to do: %v", left)
		}
	})
}

func TestOrdersFromTheDocument(t *testing.T) {
	path, finger := "d/x", "ff"
	begin := time.Date(2026, 1, 1, 0, 0, 0, 1000, time.UTC)
	doc := brokerapi.Assignments{FallbackRateBps: 7, Assignments: []brokerapi.Assignment{
		{TransferID: "tr_1", Role: brokerapi.Receive, Mode: brokerapi.Managed, DestinationPath: &path, Key: "6b",
			VolumeBytes: 5, PlanRevision: 2, Peer: brokerapi.Peer{Host: "h", DataAddress: "h:1", TLSFingerprint: &finger},
			Segments: []brokerapi.AssignedSegment{{Begin: begin, End: begin.Add(time.Second), RateBps: 8}}},
		{TransferID: "tr_2", Role: brokerapi.Receive, Mode: brokerapi.Wrapped, SourcePath: &path},
		{TransferID: "tr_3", Role: brokerapi.Send, Mode: brokerapi.Observed, Peer: brokerapi.Peer{DataAddress: "[2001:db8::7]:7411"},
			Match: &brokerapi.FlowMatchOut{Protocol: "udp", SourcePorts: new("9-10")}},
		{TransferID: "tr_4", Role: brokerapi.Receive, Mode: brokerapi.Observed, Match: &brokerapi.FlowMatchOut{Protocol: "udp"}},
	}}
	want := mover.Orders{Transfer: "tr_1", Path: path, Volume: 5, Key: "k", Peer: mover.Peer{Host: "h", Address: "h:1", Fingerprint: "ff"},
		Revision: 2, Fallback: 7, Segments: []schedule.Segment{{Begin: begin.UnixMicro(), End: begin.UnixMicro() + 1_000_000, RateBps: 8}}}
	got := Wanted(doc, -1)
	if len(got) != 2 || !got[0].Equal(want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if seen := (mover.Match{Protocol: "udp", Address: "2001:db8::7", SourcePorts: "9-10"}); got[1].Match != seen || !got[1].Observed() || got[0].Observed() {
		t.Errorf("observed: %+v", got[1])
	}
	if own := Wanted(doc, 0); own[0].Fallback != 0 {
		t.Errorf("the agent's own fallback of 0 became %d", own[0].Fallback)
	}
}
