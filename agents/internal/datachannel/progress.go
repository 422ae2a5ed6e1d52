// SPDX-License-Identifier: Apache-2.0

package datachannel

import "encoding/binary"

// Progress is the receiver's count: bytes received, and the part of them that would survive a crash now. It also tells
// the sender that the receiver lives, while it hashes a long prefix for instance.
type Progress struct {
	Received, Safe uint64
}

// Append adds the message to b.
func (m Progress) Append(b []byte) []byte {
	b = appendHeader(b, KindProgress, 16)
	b = binary.BigEndian.AppendUint64(b, m.Received)
	return binary.BigEndian.AppendUint64(b, m.Safe)
}

// ParseProgress reads the body.
func ParseProgress(b []byte) (Progress, error) {
	if len(b) != 16 {
		return Progress{}, wrongLength("PROGRESS", b)
	}
	return Progress{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}, nil
}
