// SPDX-License-Identifier: Apache-2.0

package datachannel

import "encoding/binary"

// Resume says where to go on: every byte below the offset is safely on the receiver's disk.
type Resume struct {
	Offset uint64
}

// Append adds the message to b.
func (m Resume) Append(b []byte) []byte {
	return binary.BigEndian.AppendUint64(appendHeader(b, KindResume, 8), m.Offset)
}

// ParseResume reads the body.
func ParseResume(b []byte) (Resume, error) {
	if len(b) != 8 {
		return Resume{}, wrongLength("RESUME", b)
	}
	return Resume{binary.BigEndian.Uint64(b)}, nil
}
