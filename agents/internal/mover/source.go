// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"bandwidthbroker/agents/internal/datachannel"
	"bandwidthbroker/agents/internal/failure"
)

// errStopped ends a pipeline whose connection is gone.
var errStopped = errors.New("stopped")

// source reads and hashes a file ahead of the connection, in a goroutine of its own, so that reading, hashing and
// sending overlap. Its buffers already hold the prefix of a DATA frame.
type source struct {
	file   *os.File
	before fs.FileInfo // size and modification time when the transfer began
	chunks chan []byte // DATA frames in order; closed at the end or on failure
	free   chan []byte
	stop   chan struct{}
	ended  chan struct{}

	// Set before chunks is closed.
	digest datachannel.Digest
	err    error
}

// readAhead starts to read at an offset.
func readAhead(file *os.File, before fs.FileInfo, offset int64, m *marks) *source {
	s := &source{
		file: file, before: before,
		chunks: make(chan []byte, buffers), free: make(chan []byte, buffers),
		stop: make(chan struct{}), ended: make(chan struct{}),
	}
	size := min(chunkSize, max(before.Size(), 4<<10)) // also to hash what lies before the offset with
	for range buffers {
		s.free <- make([]byte, datachannel.DataPrefix+size)
	}
	go func() {
		defer close(s.ended)
		defer close(s.chunks)
		s.err = s.run(offset, m)
	}()
	return s
}

func (s *source) run(offset int64, m *marks) error {
	buf := <-s.free
	h, err := m.hashUpTo(s.file, offset, buf, s.stop)
	if err != nil {
		return s.readFailure(err)
	}
	s.free <- buf
	for volume := s.before.Size(); offset < volume; {
		select {
		case buf = <-s.free:
		case <-s.stop:
			return errStopped
		}
		buf = buf[:cap(buf)]
		n := int(min(int64(len(buf)-datachannel.DataPrefix), volume-offset))
		payload := buf[datachannel.DataPrefix:][:n]
		if _, err := s.file.ReadAt(payload, offset); err != nil {
			return s.readFailure(err)
		}
		m.hash(h, payload)
		datachannel.PutData(buf, uint64(offset), n)
		offset += int64(n)
		if offset%markEvery == 0 {
			m.keep(offset, h)
		}
		s.chunks <- buf[:datachannel.DataPrefix+n] // has room for every buffer
	}
	h.Sum(s.digest[:0])
	return s.unchanged()
}

func (s *source) readFailure(err error) error {
	if errors.Is(err, errStopped) {
		return err
	}
	if changed := s.unchanged(); changed != nil {
		return changed
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return failure.New(failure.FileChanged, "the file ends early")
	}
	return failure.New(failure.FileUnreadable, "%v", err)
}

// unchanged compares the file with what it was when the transfer began.
func (s *source) unchanged() error {
	now, err := s.file.Stat()
	if err != nil {
		return failure.New(failure.FileUnreadable, "%v", err)
	}
	switch was := s.before; {
	case now.Size() < was.Size():
		return failure.New(failure.FileChanged, "the file shrank from %d to %d bytes while it was sent", was.Size(), now.Size())
	case now.Size() > was.Size():
		return failure.New(failure.FileChanged, "the file grew from %d to %d bytes while it was sent", was.Size(), now.Size())
	case !now.ModTime().Equal(was.ModTime()):
		return failure.New(failure.FileChanged, "the file was modified at %s while it was sent", now.ModTime().UTC().Format("15:04:05.000000"))
	}
	return nil
}

// close ends the goroutine and waits for it.
func (s *source) close() {
	close(s.stop)
	<-s.ended
}
