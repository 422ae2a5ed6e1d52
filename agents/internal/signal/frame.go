// SPDX-License-Identifier: Apache-2.0

// Package signal is how the sender of one transfer tells the sender of the next that the link is free: the direct
// signalling of RR-6205, section 2.2, as a handshake of datagrams whose first two thirds are done ahead of time, and a
// lease that keeps the two from sending at once whatever is lost on the way. It is pure: frames are bytes in and bytes out;
// the two sides, Predecessor and Successor, are state machines that get time and randomness as arguments and return what
// to send. Times are microseconds of the host's own monotonic clock: a lease must not end because somebody set a clock.
package signal

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// Kind is what a datagram says.
type Kind uint8

// Types of datagrams. The predecessor's sender says HOLD and GO, the successor's HELD and STARTED.
const (
	Hold    Kind = 1 // I still use the link
	Held    Kind = 2 // I wait for you
	Go      Kind = 3 // the link is free
	Started Kind = 4 // I do not wait for you (any more)
)

func (k Kind) String() string {
	switch k {
	case Hold:
		return "HOLD"
	case Held:
		return "HELD"
	case Go:
		return "GO"
	case Started:
		return "STARTED"
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// fromPredecessor is the direction; it goes into the MAC, so that nothing can be sent back to whom it came from.
func (k Kind) fromPredecessor() bool { return k == Hold || k == Go }

// Cause is why a predecessor says GO.
type Cause uint8

// Causes of a GO; 0 in every other frame.
const (
	Done      Cause = 1 // every byte is acknowledged by the receiver's kernel
	Failed    Cause = 2
	Cancelled Cause = 3
	Paused    Cause = 4
	Overrun   Cause = 5 // not done, but at its fallback rate from now on
)

func (c Cause) String() string {
	switch c {
	case Done:
		return "done"
	case Failed:
		return "failed"
	case Cancelled:
		return "cancelled"
	case Paused:
		return "paused"
	case Overrun:
		return "overrun"
	}
	return "none"
}

// Nonce is a number that one run of one side has drawn and no other could know.
type Nonce [16]byte

// Key is shared by the two senders of a pair, by nobody else.
type Key [32]byte

// MAC is an HMAC-SHA256.
type MAC [sha256.Size]byte

// Pair names the two transfers.
type Pair struct {
	Predecessor, Successor string
}

// Frame is one datagram.
type Frame struct {
	Kind  Kind
	Cause Cause // of a GO
	Pair
	Number           uint32 // counts what a predecessor sends in one run, from 1; answers repeat it
	Remaining        uint32 // µs until the predecessor expects to be done, in a HOLD
	PredecessorNonce Nonce
	SuccessorNonce   Nonce // all zero in a HOLD while the predecessor has not heard it
}

const (
	magic   = "BWBS"
	version = 1
	// fixed is everything before the transfer ids.
	fixed = 4 + 1 + 1 + 1 + 1 + 4 + 4 + 16 + 16 + 1 + 1
	maxID = 128
	// MaxFrame is the longest datagram.
	MaxFrame = fixed + 2*maxID + sha256.Size
)

// Append writes the frame and its MAC. The ids must have 1 to 128 bytes.
func (f Frame) Append(to []byte, key Key) []byte {
	begin := len(to)
	to = append(to, magic...)
	to = append(to, version, byte(f.Kind), byte(f.Cause), 0)
	to = binary.BigEndian.AppendUint32(to, f.Number)
	to = binary.BigEndian.AppendUint32(to, f.Remaining)
	to = append(to, f.PredecessorNonce[:]...)
	to = append(to, f.SuccessorNonce[:]...)
	to = append(to, byte(len(f.Predecessor)), byte(len(f.Successor)))
	to = append(to, f.Predecessor...)
	to = append(to, f.Successor...)
	mac := sign(key, f.Kind, to[begin:])
	return append(to, mac[:]...)
}

func sign(key Key, kind Kind, signed []byte) (mac MAC) {
	h := hmac.New(sha256.New, key[:])
	h.Write([]byte("bwb start signal\x00"))
	if kind.fromPredecessor() {
		h.Write([]byte("predecessor\x00"))
	} else {
		h.Write([]byte("successor\x00"))
	}
	h.Write(signed)
	h.Sum(mac[:0])
	return mac
}

// Sealed is a frame that was read and not believed yet.
type Sealed struct {
	frame  Frame
	signed []byte
	mac    MAC
}

// Pair is whom the frame claims to be about; it serves to find the key.
func (s Sealed) Pair() Pair { return s.frame.Pair }

// FromPredecessor is who claims to have sent it.
func (s Sealed) FromPredecessor() bool { return s.frame.Kind.fromPredecessor() }

// Open returns the frame if its sender holds the key. The comparison takes the same time whatever differs.
func (s Sealed) Open(key Key) (Frame, bool) {
	want := sign(key, s.frame.Kind, s.signed)
	if !hmac.Equal(s.mac[:], want[:]) {
		return Frame{}, false
	}
	return s.frame, true
}

var errFrame = errors.New("no start signal")

// Parse reads one datagram. There is exactly one way to write a frame; anything else is an error. The answer refers to
// the datagram's memory.
func Parse(datagram []byte) (Sealed, error) {
	if len(datagram) < fixed+sha256.Size || string(datagram[:4]) != magic {
		return Sealed{}, errFrame
	}
	if datagram[4] != version {
		return Sealed{}, fmt.Errorf("%w: version %d, this agent speaks %d", errFrame, datagram[4], version)
	}
	b := datagram
	f := Frame{
		Kind: Kind(b[5]), Cause: Cause(b[6]),
		Number: binary.BigEndian.Uint32(b[8:]), Remaining: binary.BigEndian.Uint32(b[12:]),
		PredecessorNonce: Nonce(b[16:32]), SuccessorNonce: Nonce(b[32:48]),
	}
	before, after := int(b[48]), int(b[49])
	end := fixed + before + after
	switch {
	case f.Kind < Hold || f.Kind > Started:
		return Sealed{}, fmt.Errorf("%w: type %d", errFrame, b[5])
	case f.Cause > Overrun || (f.Cause != 0) != (f.Kind == Go):
		return Sealed{}, fmt.Errorf("%w: cause %d in a %s", errFrame, b[6], f.Kind)
	case b[7] != 0:
		return Sealed{}, fmt.Errorf("%w: reserved byte %d", errFrame, b[7])
	case f.Remaining != 0 && f.Kind != Hold:
		return Sealed{}, fmt.Errorf("%w: remaining time in a %s", errFrame, f.Kind)
	case before == 0 || before > maxID || after == 0 || after > maxID || len(b) != end+sha256.Size:
		return Sealed{}, fmt.Errorf("%w: %d bytes for ids of %d and %d", errFrame, len(b), before, after)
	}
	f.Predecessor, f.Successor = string(b[fixed:fixed+before]), string(b[fixed+before:end])
	return Sealed{frame: f, signed: b[:end], mac: MAC(b[end:])}, nil
}
