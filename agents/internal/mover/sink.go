// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"hash"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"bandwidthbroker/agents/internal/served"
)

const (
	// syncBytes and syncEvery bound what a crash costs: whatever comes first.
	syncBytes = 64 << 20
	syncEvery = time.Second
)

// piece is payload on its way to the disk.
type piece struct {
	buf    []byte
	n      int
	offset int64
}

// sink hashes and writes in one goroutine and syncs in another, so that the network does not wait for the disk.
type sink struct {
	in     *served.Incoming
	pieces chan piece
	free   chan []byte
	stop   chan struct{}
	ended  chan struct{}
	failed chan struct{} // closed when err is set while pieces may still come
	onSafe func(offset int64)
	safe   atomic.Int64

	// Set before ended is closed.
	hash hash.Hash
	err  error
}

// startSink continues a partial file at an offset.
func startSink(in *served.Incoming, offset int64, m *marks, onSafe func(int64)) *sink {
	s := &sink{
		in: in, pieces: make(chan piece, buffers), free: make(chan []byte, buffers),
		stop: make(chan struct{}), ended: make(chan struct{}), failed: make(chan struct{}), onSafe: onSafe,
	}
	s.safe.Store(offset)
	for range buffers - 1 {
		s.free <- make([]byte, chunkSize)
	}
	own := make([]byte, chunkSize) // to hash the prefix with; free afterwards
	go func() {
		defer close(s.ended)
		if s.err = s.run(own, offset, m); s.err != nil {
			close(s.failed)
		}
	}()
	return s
}

func (s *sink) run(buf []byte, offset int64, m *marks) (err error) {
	h, err := m.hashUpTo(s.in.File, offset, buf, s.stop)
	if err != nil {
		return err
	}
	s.hash = h
	s.free <- buf

	syncs := make(chan int64, 1)
	synced := make(chan error, 1)
	go func() { synced <- s.syncer(syncs) }()
	defer func() {
		close(syncs)
		if failed := <-synced; err == nil {
			err = failed
		}
	}()
	lastSync, lastAt := offset, time.Now()
	for p := range s.pieces {
		m.hash(h, p.buf[:p.n])
		if _, err = s.in.File.WriteAt(p.buf[:p.n], p.offset); err != nil {
			return err
		}
		offset = p.offset + int64(p.n)
		s.free <- p.buf
		if offset-lastSync >= syncBytes || time.Since(lastAt) >= syncEvery {
			select {
			case syncs <- offset:
				m.keep(offset, h)
				lastSync, lastAt = offset, time.Now()
			default: // the disk is still busy with the last one
			}
		}
	}
	if offset != lastSync {
		m.keep(offset, h)
		syncs <- offset
	}
	return nil
}

// syncer makes written data safe, and says so afterwards.
func (s *sink) syncer(offsets <-chan int64) error {
	for offset := range offsets {
		if err := unix.Fdatasync(int(s.in.File.Fd())); err != nil {
			for range offsets { // let the writer finish; nothing is called safe any more
			}
			return err
		}
		s.safe.Store(offset)
		s.onSafe(offset)
	}
	return nil
}

// close takes no more pieces, writes and syncs what came, and waits.
func (s *sink) close() error {
	close(s.pieces)
	<-s.ended
	return s.err
}
