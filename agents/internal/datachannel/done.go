// SPDX-License-Identifier: Apache-2.0

package datachannel

// Done says that the file is in place under its final name, with this digest.
type Done struct {
	Digest Digest
}

// Append adds the message to b.
func (m Done) Append(b []byte) []byte {
	return append(appendHeader(b, KindDone, digestLen), m.Digest[:]...)
}

// ParseDone reads the body.
func ParseDone(b []byte) (Done, error) {
	var m Done
	if len(b) != digestLen {
		return m, wrongLength("DONE", b)
	}
	copy(m.Digest[:], b)
	return m, nil
}
