// SPDX-License-Identifier: Apache-2.0

package agentstate

import (
	"errors"
	"os"

	"bandwidthbroker/agents/internal/atomicfile"
)

// Journal is how far the receiver's copy of one file is safe on disk. It is written after each sync of the data, so it
// may lag behind the disk but never runs ahead of it.
type Journal struct {
	Partial     string `json:"partial"`     // relative to the receiver's folder
	Destination string `json:"destination"` // likewise
	Volume      int64  `json:"volume"`
	Safe        int64  `json:"safe"`
	// Digest is set once the content is complete and verified, just before the file gets its final name: a restart
	// that finds the name taken and the partial file gone can tell its own work from somebody else's.
	Digest string `json:"digest,omitempty"`
}

func (f *Folder) journalPath(transfer string) string { return f.Path("receive", transfer+".json") }

// Journal of a transfer; a journal that cannot be read counts as none, which costs a new start and nothing else.
func (f *Folder) Journal(transfer string) (j Journal, found bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if j, found = f.unwritten[transfer]; found {
		return j, true
	}
	found, err := atomicfile.ReadJSON(f.journalPath(transfer), &j)
	return j, found && err == nil
}

// SaveJournal replaces the journal of a transfer. While data flows, losing the newest one to a power loss is harmless;
// the one that carries the digest must survive it. One that the disk does not take is kept in memory, for SaveJournals.
func (f *Folder) SaveJournal(transfer string, j Journal) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.writeJournal(transfer, j)
	if err != nil {
		f.unwritten[transfer] = j
	} else {
		delete(f.unwritten, transfer)
	}
	return err
}

// SaveJournals writes what could not be written before; done says that nothing is left to write.
func (f *Folder) SaveJournals() (done bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for transfer, j := range f.unwritten {
		if f.writeJournal(transfer, j) == nil {
			delete(f.unwritten, transfer)
		}
	}
	return len(f.unwritten) == 0
}

func (f *Folder) writeJournal(transfer string, j Journal) error {
	return atomicfile.WriteJSON(f.journalPath(transfer), j, 0o600, atomicfile.Durability(j.Digest != ""))
}

// DropJournal forgets a transfer's journal.
func (f *Folder) DropJournal(transfer string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.unwritten, transfer)
	err := os.Remove(f.journalPath(transfer))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// Journals lists the transfers with a journal.
func (f *Folder) Journals() ([]string, error) { return names(f.Path("receive"), ".json") }
