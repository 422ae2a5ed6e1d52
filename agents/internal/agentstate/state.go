// SPDX-License-Identifier: Apache-2.0

// Package agentstate is everything an agent remembers across restarts, in one folder of mode 0700: who it is, what it
// was told last, and how far it is with each transfer. One agent holds the folder at a time.
package agentstate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"bandwidthbroker/agents/internal/atomicfile"
)

// Folder is an agent's state on disk.
type Folder struct {
	dir  string
	lock *os.File

	mu        sync.Mutex
	unwritten map[string]Journal // by transfer; the disk took them not
}

// ErrLocked says that another agent runs on the folder.
var ErrLocked = errors.New("another bwb-agent uses this state folder")

// Open makes the folder if need be.
func Open(dir string) (*Folder, error) {
	if dir == "" {
		return nil, errors.New("no state folder given (--state-dir)")
	}
	for _, d := range []string{dir, filepath.Join(dir, "transfers"), filepath.Join(dir, "receive"), filepath.Join(dir, "spool")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	// It holds a token and keys: an existing folder that others may read is closed to them.
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, err
	}
	return &Folder{dir: dir, unwritten: map[string]Journal{}}, nil
}

// Path of a name inside the folder.
func (f *Folder) Path(name ...string) string {
	return filepath.Join(append([]string{f.dir}, name...)...)
}

// Lock takes the folder until the process ends, however it ends.
func (f *Folder) Lock() error {
	file, err := os.OpenFile(f.Path("lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return fmt.Errorf("%s: %w", f.dir, ErrLocked)
		}
		return err
	}
	f.lock = file
	return nil
}

// Unlock gives the folder back.
func (f *Folder) Unlock() {
	if f.lock != nil {
		_ = f.lock.Close()
		f.lock = nil
	}
}

// Credentials are the agent's identity at one broker.
type Credentials struct {
	Broker     string    `json:"broker"`
	CAFile     string    `json:"ca_file,omitempty"`
	Host       string    `json:"host"`
	Node       string    `json:"node"`
	AgentToken string    `json:"agent_token"`
	EnrolledAt time.Time `json:"enrolled_at"`
	Listen     string    `json:"listen,omitempty"`
	Advertise  string    `json:"advertise,omitempty"`
	TLS        bool      `json:"tls,omitempty"`
}

// Credentials reads the identity; found is false before enrolment.
func (f *Folder) Credentials() (c Credentials, found bool, err error) {
	found, err = atomicfile.ReadJSON(f.Path("credentials.json"), &c)
	return c, found, err
}

// SaveCredentials keeps the identity, readable by the agent's user alone.
func (f *Folder) SaveCredentials(c Credentials) error {
	return atomicfile.WriteJSON(f.Path("credentials.json"), c, 0o600, atomicfile.PowerLoss)
}

// SaveAssignments keeps the desired state as the broker sent it.
func (f *Folder) SaveAssignments(raw []byte) error {
	return atomicfile.Write(f.Path("assignments.json"), raw, 0o600, atomicfile.PowerLoss)
}

// Assignments is the desired state as last saved, nil when there is none.
func (f *Folder) Assignments() ([]byte, error) {
	raw, err := os.ReadFile(f.Path("assignments.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return raw, err
}

type savedClock struct {
	OffsetMicros int64 `json:"offset_us"`
}

// SaveClock keeps the offset to broker time for a restart without a broker.
func (f *Folder) SaveClock(offset time.Duration) error {
	return atomicfile.WriteJSON(f.Path("clock.json"), savedClock{offset.Microseconds()}, 0o600, atomicfile.Crash)
}

// Clock is the offset of the last run; 0 when it is not known.
func (f *Folder) Clock() time.Duration {
	var c savedClock
	if _, err := atomicfile.ReadJSON(f.Path("clock.json"), &c); err != nil {
		return 0
	}
	return time.Duration(c.OffsetMicros) * time.Microsecond
}
