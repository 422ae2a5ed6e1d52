// SPDX-License-Identifier: Apache-2.0

package datachannel

import "encoding/binary"

const dataOffsetLen = 8

// DataPrefix is how many bytes precede the payload of a DATA frame. Senders reserve them in front of each read buffer,
// so that header and payload leave in one write without a copy.
const DataPrefix = HeaderLen + dataOffsetLen

// PutData writes the prefix of a DATA frame with a payload of n bytes that belongs at offset; b has DataPrefix bytes.
func PutData(b []byte, offset uint64, n int) {
	b[0] = byte(KindData)
	binary.BigEndian.PutUint32(b[1:], uint32(dataOffsetLen+n))
	binary.BigEndian.PutUint64(b[HeaderLen:], offset)
}

// ParseData reads what follows the header of a DATA frame of the given length: the offset and how much payload comes.
func ParseData(b []byte, length uint32) (offset uint64, n int, err error) {
	if len(b) < dataOffsetLen || length <= dataOffsetLen || length > dataOffsetLen+MaxPayload {
		return 0, 0, wrongLength("DATA", b)
	}
	return binary.BigEndian.Uint64(b), int(length - dataOffsetLen), nil
}
