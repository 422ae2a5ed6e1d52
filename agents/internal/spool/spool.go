// SPDX-License-Identifier: Apache-2.0

// Package spool keeps reports on disk until the broker has taken them: one file each, named by a number that only grows,
// so that a restart delivers them in the order in which they happened. Progress is coalesced to the newest of each
// transfer, which bounds the spool; changes of state are never dropped, not even when the disk is full.
package spool

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"bandwidthbroker/agents/internal/atomicfile"
	"bandwidthbroker/agents/internal/brokerapi"
)

type entry struct {
	name   string
	report brokerapi.AgentReport
	onDisk bool
}

// Spool is safe for concurrent use.
type Spool struct {
	dir     string
	mu      sync.Mutex
	order   int64
	pending []entry // in order
}

// Open reads what an earlier run left. A file that cannot be read is set aside with a log line, not silently lost.
func Open(dir string) (*Spool, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	files, err := os.ReadDir(dir) // sorted by name, which is by order
	if err != nil {
		return nil, err
	}
	s := &Spool{dir: dir}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".json") || strings.HasPrefix(f.Name(), ".") {
			continue
		}
		e := entry{name: f.Name(), onDisk: true}
		path := filepath.Join(dir, e.name)
		order, err := strconv.ParseInt(strings.TrimSuffix(e.name, ".json"), 10, 64)
		if err == nil {
			_, err = atomicfile.ReadJSON(path, &e.report)
		}
		if err == nil && e.report.TransferID == "" {
			err = errors.New("no transfer_id")
		}
		if err != nil {
			slog.Error("report on disk cannot be read, set aside", "file", path, "error", err)
			_ = os.Rename(path, path+".bad")
			continue
		}
		s.order = order
		s.pending = append(s.pending, e)
	}
	return s, nil
}

// Put adds a report. When it returns, a change of state survives a power loss, and progress a crash of the agent; unless
// the disk takes nothing: then the report waits in memory, to be delivered from there or written by Save.
func (s *Spool) Put(r brokerapi.AgentReport) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order++
	e := entry{name: fmt.Sprintf("%016d.json", s.order), report: r}
	if err := s.write(&e); err != nil {
		slog.Error("REPORT NOT ON DISK: it waits in memory and is lost if the agent ends before the broker has it",
			"transfer", r.TransferID, "kind", r.Kind, "error", err)
	}
	if r.Kind == brokerapi.Progress {
		s.remove(func(old brokerapi.AgentReport) bool {
			return old.Kind == brokerapi.Progress && old.TransferID == r.TransferID
		})
	}
	s.pending = append(s.pending, e)
	return nil
}

// Save writes what could not be written before, and returns how many reports still are in memory alone.
func (s *Spool) Save() (left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.pending {
		e := &s.pending[i]
		switch {
		case e.onDisk:
		case left > 0 || s.write(e) != nil: // one failure is enough to know
			left++
		default:
			slog.Info("report on disk after all", "transfer", e.report.TransferID, "kind", e.report.Kind)
		}
	}
	return left
}

func (s *Spool) write(e *entry) error {
	data, err := json.Marshal(e.report)
	if err != nil {
		return err
	}
	err = atomicfile.Write(filepath.Join(s.dir, e.name), data, 0o600, atomicfile.Durability(e.report.Kind != brokerapi.Progress))
	e.onDisk = err == nil
	return err
}

// Next is up to n of the oldest pending reports.
func (s *Spool) Next(n int) []brokerapi.AgentReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := make([]brokerapi.AgentReport, 0, min(n, len(s.pending)))
	for _, e := range s.pending[:min(n, len(s.pending))] {
		next = append(next, e.report)
	}
	return next
}

// Drop forgets a report that the broker has taken or does not want.
func (s *Spool) Drop(transfer string, sequence int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(func(r brokerapi.AgentReport) bool { return r.TransferID == transfer && r.Sequence == sequence })
}

// Len is how many reports wait.
func (s *Spool) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pending)
}

// Holds says whether a report of a transfer waits.
func (s *Spool) Holds(transfer string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.pending, func(e entry) bool { return e.report.TransferID == transfer })
}

// Changes says whether a change of state waits: it should leave at once.
func (s *Spool) Changes() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.pending, func(e entry) bool { return e.report.Kind != brokerapi.Progress })
}

func (s *Spool) remove(which func(brokerapi.AgentReport) bool) {
	s.pending = slices.DeleteFunc(s.pending, func(e entry) bool {
		if !which(e.report) {
			return false
		}
		if err := os.Remove(filepath.Join(s.dir, e.name)); err != nil && !os.IsNotExist(err) {
			slog.Warn("report on disk cannot be removed", "file", e.name, "error", err)
		}
		return true
	})
}
