// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"bandwidthbroker/agents/internal/datachannel"
	"bandwidthbroker/agents/internal/failure"
	"bandwidthbroker/agents/internal/served"
)

// comparisons bounds how many files are read at a time only to be compared: the disk and the processors are for what is on its way.
var comparisons = make(chan struct{}, 2)

// compare ends a transfer whose destination is there already and is not to be overwritten. A file of the right size and content is what
// was asked for: this agent, or another, brought it before, and nobody remembers. To the sender it looks like a resumption at the end,
// so that it says the digest and sends nothing else. Both ends hash at the same time.
func (s *session) compare(o *Orders, there *served.Existing) error {
	r := s.r
	if o.Unchecked && o.Volume > 0 && !r.asked {
		// It would say the digest of nothing. One that does not know the word tries again, says just that, and is refused.
		r.asked = true
		return s.write(datachannel.Error{Code: datachannel.ChecksumWanted, Detail: "the destination exists, and is to be compared"})
	}
	if err := s.write(datachannel.Resume{Offset: uint64(o.Volume)}); err != nil {
		return err
	}
	if err := s.write(datachannel.Progress{}); err != nil { // none of it counts before it is compared
		return err
	}
	r.log.Info("the destination exists, comparing", "path", o.Path, "bytes", o.Volume)
	go s.tell()
	type hashed struct {
		digest datachannel.Digest
		err    error
	}
	own := make(chan hashed, 1)
	go func() {
		digest, err := hashWhole(there.File, o.Volume, s.quit)
		own <- hashed{digest, err}
	}()
	end, err := s.awaitEnd(o)
	if err != nil {
		s.end() // and the hashing with it
		<-own
		return err
	}
	mine := <-own
	switch {
	case errors.Is(mine.err, errStopped):
		return mine.err
	case mine.err != nil:
		return served.WriteFailure(o.Path, mine.err)
	case mine.digest != end.Digest:
		return failure.New(failure.DestinationExists, "%s exists with the same size and another content, and the transfer does not say overwrite", o.Path)
	}
	return s.accept(o, there, mine.digest)
}

// accept takes what is there for what was to be brought.
func (s *session) accept(o *Orders, there *served.Existing, digest datachannel.Digest) error {
	if fail := there.Settle(); fail != nil {
		return fail
	}
	r := s.r
	r.log.Info("the destination has the right content already", "path", o.Path)
	r.gauges.bytes.Store(o.Volume)
	r.gauges.safe.Store(o.Volume)
	r.done = &digest
	r.finish(digest)
	return s.write(datachannel.Done{Digest: digest})
}

// yield looks whether a name that was taken while the transfer ran was taken by the same content: two transfers of one file are both done.
func (s *session) yield(o *Orders, in *served.Incoming, digest datachannel.Digest) (*served.Existing, bool) {
	there, found := s.r.folder.Existing(o.Path, o.Volume)
	if !found {
		return nil, false
	}
	want := digest
	var err error
	if o.Unchecked { // what came was not hashed
		want, err = hashWhole(in.File, o.Volume, s.quit)
	}
	var got datachannel.Digest
	if err == nil {
		got, err = hashWhole(there.File, o.Volume, s.quit)
	}
	if err != nil || got != want {
		there.Close()
		return nil, false
	}
	return there, true
}

// hashWhole reads a file of so many bytes, when it is its turn, unless stop comes first.
func hashWhole(file *os.File, volume int64, stop <-chan struct{}) (d datachannel.Digest, err error) {
	select {
	case comparisons <- struct{}{}:
		defer func() { <-comparisons }()
	case <-stop:
		return d, errStopped
	}
	h := sha256.New()
	buf := make([]byte, chunkSize)
	for at := int64(0); at < volume; {
		select {
		case <-stop:
			return d, errStopped
		default:
		}
		n, err := file.ReadAt(buf[:min(int64(len(buf)), volume-at)], at)
		h.Write(buf[:n])
		at += int64(n)
		if at < volume && err != nil {
			if errors.Is(err, io.EOF) {
				err = fmt.Errorf("it shrank to %d bytes while it was compared", at)
			}
			return d, err
		}
	}
	h.Sum(d[:0])
	return d, nil
}
