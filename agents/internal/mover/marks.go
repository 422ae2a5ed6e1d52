// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"crypto/sha256"
	"encoding"
	"hash"
	"io"
	"sync"
)

// marks remember the state of a running SHA-256 at some offsets of a file, so that a connection which broke need not
// hash the whole prefix again. They live in memory only: after a restart the prefix is read from disk.
type marks struct {
	off   bool // of a transfer that is not verified: nothing is hashed, and both ends agree on the digest of nothing
	mu    sync.Mutex
	at    []int64
	state [][]byte
}

const (
	// markEvery is how much may have to be hashed again (about 50 ms); maxMarks bounds them to half a megabyte, by
	// dropping every other one of a very large file.
	markEvery = 64 << 20
	maxMarks  = 4096
)

// hash goes on with what follows in the file.
func (m *marks) hash(h hash.Hash, p []byte) {
	if !m.off {
		h.Write(p)
	}
}

// keep remembers the state of h, which has hashed exactly the first offset bytes.
func (m *marks) keep(offset int64, h hash.Hash) {
	if m.off {
		return
	}
	state, err := h.(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.at); n > 0 && m.at[n-1] >= offset {
		return
	}
	m.at, m.state = append(m.at, offset), append(m.state, state)
	if len(m.at) > maxMarks {
		for i := range maxMarks / 2 {
			m.at[i], m.state[i] = m.at[2*i+1], m.state[2*i+1]
		}
		m.at, m.state = m.at[:maxMarks/2], m.state[:maxMarks/2]
	}
}

// before is a hash that goes on from the last mark at or before an offset.
func (m *marks) before(offset int64) (hash.Hash, int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := sha256.New()
	for i := len(m.at) - 1; i >= 0; i-- {
		if m.at[i] <= offset && h.(encoding.BinaryUnmarshaler).UnmarshalBinary(m.state[i]) == nil {
			return h, m.at[i]
		}
	}
	return sha256.New(), 0
}

// hashUpTo is the hash of the first offset bytes of a file, read from disk from the nearest mark on. stop ends it early.
func (m *marks) hashUpTo(file io.ReaderAt, offset int64, buf []byte, stop <-chan struct{}) (hash.Hash, error) {
	if m.off {
		return sha256.New(), nil
	}
	h, at := m.before(offset)
	for at < offset {
		select {
		case <-stop:
			return nil, errStopped
		default:
		}
		n, err := file.ReadAt(buf[:min(int64(len(buf)), offset-at)], at)
		h.Write(buf[:n])
		at += int64(n)
		if at < offset && err != nil {
			return nil, err
		}
		if at%markEvery == 0 {
			m.keep(at, h)
		}
	}
	return h, nil
}
