// SPDX-License-Identifier: Apache-2.0

package spool

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"bandwidthbroker/agents/internal/brokerapi"
)

func report(transfer string, sequence int64, kind brokerapi.AgentReportKind) brokerapi.AgentReport {
	return brokerapi.AgentReport{TransferID: transfer, Sequence: sequence, Kind: kind}
}

func list(s *Spool) (text string) {
	for _, r := range s.Next(100) {
		text += fmt.Sprintf("%s/%d:%s ", r.TransferID, r.Sequence, r.Kind)
	}
	return text
}

func open(t *testing.T, dir string) *Spool {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestProgressIsCoalescedAndChangesAreNot(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	for _, r := range []brokerapi.AgentReport{
		report("a", 1, brokerapi.Started), report("a", 2, brokerapi.Progress), report("b", 1, brokerapi.Progress),
		report("a", 3, brokerapi.Progress), report("a", 4, brokerapi.Shortfall), report("a", 5, brokerapi.Progress),
		report("b", 2, brokerapi.Failed),
	} {
		if err := s.Put(r); err != nil {
			t.Fatal(err)
		}
	}
	const want = "a/1:started b/1:progress a/4:shortfall a/5:progress b/2:failed "
	if got := list(s); got != want {
		t.Errorf("%s", got)
	}
	again := open(t, dir) // after kill -9
	if got := list(again); got != want {
		t.Errorf("after a restart: %s", got)
	}
	again.Drop("a", 1)
	again.Drop("b", 1)
	if err := again.Put(report("b", 3, brokerapi.Progress)); err != nil {
		t.Fatal(err)
	}
	if got := list(open(t, dir)); got != "a/4:shortfall a/5:progress b/2:failed b/3:progress " {
		t.Errorf("after deliveries: %s", got)
	}
	if files, _ := os.ReadDir(dir); len(files) != 4 {
		t.Errorf("%d files for 4 reports", len(files))
	}
}

func TestWeeksWithoutABrokerAreBounded(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	for n := range int64(500) {
		if err := s.Put(report("a", n+1, brokerapi.Progress)); err != nil {
			t.Fatal(err)
		}
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 || s.Len() != 1 {
		t.Errorf("%d files, %d reports", len(files), s.Len())
	}
}

// The folder vanishes and comes back: to a write, a full disk is no different.
func TestADiskThatTakesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	s := open(t, dir)
	_ = s.Put(report("a", 1, brokerapi.Started))
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	for n := range int64(3) {
		_ = s.Put(report("a", 2+n, brokerapi.Progress))
	}
	_ = s.Put(report("a", 5, brokerapi.Failed))
	const want = "a/1:started a/4:progress a/5:failed "
	if got := list(s); got != want {
		t.Errorf("without a disk: %s", got)
	}
	if left := s.Save(); left != 2 {
		t.Errorf("%d in memory alone", left)
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	if left := s.Save(); left != 0 {
		t.Errorf("%d still in memory alone", left)
	}
	if got := list(open(t, dir)); got != want {
		t.Errorf("after a restart: %s", got)
	}
	s.Drop("a", 5)
	if got := list(open(t, dir)); got != "a/1:started a/4:progress " {
		t.Errorf("after a delivery: %s", got)
	}
}

func TestABrokenFileIsSetAside(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	_ = s.Put(report("a", 1, brokerapi.Started))
	if err := os.WriteFile(filepath.Join(dir, "0000000000000002.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	again := open(t, dir)
	if got := list(again); got != "a/1:started " {
		t.Errorf("%s", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "0000000000000002.json.bad")); err != nil {
		t.Error(err)
	}
}
