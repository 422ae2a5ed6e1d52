// SPDX-License-Identifier: Apache-2.0

package agentstate

import (
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"bandwidthbroker/agents/internal/atomicfile"
	"bandwidthbroker/agents/internal/brokerapi"
)

// sequenceBlock is how many sequence numbers are reserved on disk at a time: after a crash counting goes on behind the
// block, so no number is ever used twice and most reports cost no write.
const sequenceBlock = 64

// Memory is what the agent remembers of its own part in one transfer.
type Memory struct {
	mu   sync.Mutex
	path string
	next int64
	// behind: the file does not have what is kept here, because the disk took nothing.
	behind bool
	kept   struct {
		Reserved          int64                     `json:"sequence_reserved"`
		Started           bool                      `json:"started"`
		Outcome           brokerapi.AgentReportKind `json:"outcome,omitempty"`
		ShortfallRevision int64                     `json:"shortfall_revision"`
		Counted           Counted                   `json:"counted,omitzero"`
	}
}

// Memory opens what is remembered of a transfer, nothing at first.
func (f *Folder) Memory(transfer string) (*Memory, error) {
	m := &Memory{path: f.Path("transfers", transfer+".json")}
	m.kept.ShortfallRevision = -1
	if _, err := atomicfile.ReadJSON(m.path, &m.kept); err != nil {
		return nil, err
	}
	m.next = m.kept.Reserved
	return m, nil
}

// Remembered lists the transfers with a memory.
func (f *Folder) Remembered() ([]string, error) { return names(f.Path("transfers"), ".json") }

// Forget drops the memory of a transfer that the broker no longer lists.
func (f *Folder) Forget(transfer string) error {
	err := os.Remove(f.Path("transfers", transfer+".json"))
	if os.IsNotExist(err) {
		return nil
	}
	return err
}

func (m *Memory) save() error {
	err := atomicfile.WriteJSON(m.path, m.kept, 0o600, atomicfile.PowerLoss)
	m.behind = err != nil
	return err
}

// Save writes what could not be written before; done says that nothing is left to write.
func (m *Memory) Save() (done bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.behind || m.save() == nil
}

// NextSequence is a report number that was never used before. Where a block cannot be reserved (a full disk), it is the
// time of day in microseconds: above all that were counted, and never the same again after a crash either.
func (m *Memory) NextSequence() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.next >= m.kept.Reserved {
		before := m.kept.Reserved
		m.kept.Reserved = m.next + sequenceBlock
		if m.save() != nil {
			m.kept.Reserved = before
			m.next = max(m.next, time.Now().UnixMicro())
		}
	}
	m.next++
	return m.next
}

// StartOnce is true the first time ever, restarts included. Where that cannot be written down it may come true again
// after a restart: a report that comes twice does less harm than one that never comes.
func (m *Memory) StartOnce() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept.Started {
		return false
	}
	m.kept.Started = true
	m.try()
	return true
}

// Began says that the first byte has left, in this run or an earlier one.
func (m *Memory) Began() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kept.Started
}

// Started says that StartOnce was true before.
func (m *Memory) Started() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kept.Started
}

// ShortfallOnce is true the first time for a plan revision; see StartOnce.
func (m *Memory) ShortfallOnce(revision int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept.ShortfallRevision >= revision {
		return false
	}
	m.kept.ShortfallRevision = revision
	m.try()
	return true
}

func (m *Memory) try() {
	if err := m.save(); err != nil {
		slog.Warn("not remembered on disk", "file", m.path, "error", err)
	}
}

// Counted is what was counted of an observed transfer: Payload in all, when the class said Bytes and Packets.
type Counted struct {
	Payload int64  `json:"payload"`
	Bytes   uint64 `json:"bytes"`
	Packets uint64 `json:"packets"`
}

// Counted is what was remembered last.
func (m *Memory) Counted() Counted {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kept.Counted
}

// Count remembers what was counted.
func (m *Memory) Count(c Counted) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept.Counted != c {
		m.kept.Counted = c
		m.try()
	}
}

// End records how the transfer ended here: a restart does not begin it again.
func (m *Memory) End(outcome brokerapi.AgentReportKind) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept.Outcome = outcome
	return m.save()
}

// Outcome is how the transfer ended here, empty while it has not.
func (m *Memory) Outcome() brokerapi.AgentReportKind {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kept.Outcome
}

func names(dir, suffix string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), suffix); ok && !strings.HasPrefix(name, ".") {
			found = append(found, name)
		}
	}
	return found, nil
}
