// SPDX-License-Identifier: Apache-2.0

package datachannel

import "encoding/binary"

// Digest is the SHA-256 of a whole file.
type Digest [digestLen]byte

// End follows the last byte: what the file must have become. Its MAC covers both nonces, so it belongs to this
// connection alone.
type End struct {
	Volume uint64
	Digest Digest
	MAC    MAC
}

// Append adds the message to b.
func (m End) Append(b []byte) []byte {
	b = appendHeader(b, KindEnd, 8+digestLen+macLen)
	b = binary.BigEndian.AppendUint64(b, m.Volume)
	b = append(b, m.Digest[:]...)
	return append(b, m.MAC[:]...)
}

// ParseEnd reads the body.
func ParseEnd(b []byte) (End, error) {
	var m End
	if len(b) != 8+digestLen+macLen {
		return m, wrongLength("END", b)
	}
	m.Volume = binary.BigEndian.Uint64(b)
	copy(m.Digest[:], b[8:])
	copy(m.MAC[:], b[8+digestLen:])
	return m, nil
}
