// SPDX-License-Identifier: Apache-2.0

package datachannel

// Challenge is the receiver's proof that it holds the key, and its own nonce.
type Challenge struct {
	Nonce Nonce
	MAC   MAC
}

// Append adds the message to b.
func (m Challenge) Append(b []byte) []byte {
	b = appendHeader(b, KindChallenge, nonceLen+macLen)
	b = append(b, m.Nonce[:]...)
	return append(b, m.MAC[:]...)
}

// ParseChallenge reads the body.
func ParseChallenge(b []byte) (Challenge, error) {
	var m Challenge
	if len(b) != nonceLen+macLen {
		return m, wrongLength("CHALLENGE", b)
	}
	copy(m.Nonce[:], b)
	copy(m.MAC[:], b[nonceLen:])
	return m, nil
}
