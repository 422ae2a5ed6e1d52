// SPDX-License-Identifier: Apache-2.0

package datachannel

import "encoding/binary"

// Proof is the sender's proof that it holds the key, and the volume it is about to bring.
type Proof struct {
	MAC    MAC
	Volume uint64
}

// Append adds the message to b.
func (m Proof) Append(b []byte) []byte {
	b = appendHeader(b, KindProof, macLen+8)
	b = append(b, m.MAC[:]...)
	return binary.BigEndian.AppendUint64(b, m.Volume)
}

// ParseProof reads the body.
func ParseProof(b []byte) (Proof, error) {
	var m Proof
	if len(b) != macLen+8 {
		return m, wrongLength("PROOF", b)
	}
	copy(m.MAC[:], b)
	m.Volume = binary.BigEndian.Uint64(b[macLen:])
	return m, nil
}
