// SPDX-License-Identifier: Apache-2.0

package agentstate

import (
	"errors"
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
			n, err := m.NextSequence()
			if err != nil || n <= last || (last == 0 && n != 1) {
				t.Fatalf("run %d: %d after %d, %v", run, n, last, err)
			}
			last = n
		}
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
