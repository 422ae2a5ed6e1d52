// SPDX-License-Identifier: Apache-2.0

package agentstate

import (
	"errors"
	"os"
	"testing"
)

func TestNoNumberIsUsedTwice(t *testing.T) {
	f, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var last int64
	for run := range 5 { // each ends as by kill -9
		m, err := f.Memory("tr_1")
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			n := m.NextSequence()
			if n <= last || (last == 0 && n != 1) {
				t.Fatalf("run %d: %d after %d", run, n, last)
			}
			last = n
		}
	}
}

// The folder of the file vanishes and comes back: to a write, a full disk is no different.
func TestNumbersWithoutADisk(t *testing.T) {
	dir := t.TempDir()
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	used := map[int64]bool{}
	count := func(m *Memory, times int) (last int64) {
		for range times {
			n := m.NextSequence()
			if used[n] || n <= last {
				t.Fatalf("%d after %d, used before: %v", n, last, used[n])
			}
			used[n], last = true, n
		}
		return last
	}
	m, _ := f.Memory("tr_1")
	count(m, 10)
	away, there := dir+"/transfers.away", dir+"/transfers"
	if err := os.Rename(there, away); err != nil {
		t.Fatal(err)
	}
	m.next = m.kept.Reserved
	count(m, 10)
	if !m.StartOnce() || m.StartOnce() {
		t.Error("a full disk swallowed the start, or let it be told twice")
	}
	if m.End("sent") == nil || m.Save() {
		t.Error("nobody noticed that the disk took nothing")
	}
	blind, _ := f.Memory("tr_1") // crashed, and still no disk
	count(blind, 10)
	if err := os.Rename(away, there); err != nil {
		t.Fatal(err)
	}
	again, _ := f.Memory("tr_1") // crashed, and the disk is back
	count(again, 100)
	count(m, 10) // or not crashed
	if !m.Save() {
		t.Error("there is a disk again")
	}
	if kept, _ := f.Memory("tr_1"); !kept.kept.Started || kept.Outcome() != "sent" {
		t.Error("what was not written down then is not written down now")
	}
}

func TestAJournalWithoutADisk(t *testing.T) {
	dir := t.TempDir()
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	_ = f.SaveJournal("tr_1", Journal{Safe: 1})
	away, there := dir+"/receive.away", dir+"/receive"
	if err := os.Rename(there, away); err != nil {
		t.Fatal(err)
	}
	if f.SaveJournal("tr_1", Journal{Safe: 2}) == nil || f.SaveJournal("tr_2", Journal{Safe: 3}) == nil || f.SaveJournals() {
		t.Error("nobody noticed that the disk took nothing")
	}
	if j, _ := f.Journal("tr_1"); j.Safe != 2 {
		t.Errorf("%+v", j)
	}
	_ = f.DropJournal("tr_2")
	if err := os.Rename(away, there); err != nil {
		t.Fatal(err)
	}
	if !f.SaveJournals() {
		t.Error("there is a disk again")
	}
	again, _ := Open(dir)
	if j, _ := again.Journal("tr_1"); j.Safe != 2 {
		t.Errorf("after a restart: %+v", j)
	}
	if _, found := again.Journal("tr_2"); found {
		t.Error("what was dropped came back")
	}
}

func TestOnceMeansOnce(t *testing.T) {
	f, _ := Open(t.TempDir())
	m, _ := f.Memory("tr_1")
	if !m.StartOnce() || m.StartOnce() || !m.ShortfallOnce(0) || m.ShortfallOnce(0) || !m.ShortfallOnce(3) || m.ShortfallOnce(2) {
		t.Error("something happened twice, or not at all")
	}
	if err := m.End("sent"); err != nil {
		t.Fatal(err)
	}
	again, _ := f.Memory("tr_1")
	if again.StartOnce() || again.ShortfallOnce(3) || !again.ShortfallOnce(4) || again.Outcome() != "sent" {
		t.Error("a restart forgot")
	}
	if err := f.Forget("tr_1"); err != nil {
		t.Fatal(err)
	}
	if fresh, _ := f.Memory("tr_1"); fresh.Outcome() != "" || !fresh.StartOnce() {
		t.Error("what was forgotten is remembered")
	}
}

func TestTheFolderHasOneAgent(t *testing.T) {
	dir := t.TempDir()
	one, _ := Open(dir)
	two, _ := Open(dir)
	if err := one.Lock(); err != nil {
		t.Fatal(err)
	}
	if err := two.Lock(); !errors.Is(err, ErrLocked) {
		t.Errorf("second lock: %v", err)
	}
	one.Unlock()
	if err := two.Lock(); err != nil {
		t.Errorf("after the first is gone: %v", err)
	}
}
