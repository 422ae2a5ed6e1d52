// SPDX-License-Identifier: Apache-2.0

// Package datachannel is the wire format between a sending and a receiving agent (docs/agent-protocol.md, section 2):
// one file per frame, each with Append and Parse, and the three-way proof that both ends hold the transfer's key.
// It is pure and imports only the standard library; connections are the business of package mover.
package datachannel

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Kind is the first byte of every message.
type Kind uint8

// The messages of version 1.
const (
	KindHello     Kind = 1
	KindChallenge Kind = 2
	KindProof     Kind = 3
	KindResume    Kind = 4
	KindData      Kind = 5
	KindEnd       Kind = 6
	KindProgress  Kind = 7
	KindDone      Kind = 8
	KindError     Kind = 9
)

const (
	// HeaderLen is type u8 and length u32.
	HeaderLen = 5
	// MaxPayload is the most file bytes in one DATA frame (protocol).
	MaxPayload = 1 << 20
	// MaxTransferID bounds what a stranger can make a receiver remember before it has proved anything.
	MaxTransferID = 128
	// maxDetail bounds the text of an ERROR.
	maxDetail = 1024

	nonceLen  = 32
	macLen    = 32
	digestLen = 32
)

// bounds are the smallest and largest body of each kind; a length outside ends the connection before it is read.
var bounds = map[Kind][2]uint32{
	KindHello:     {uint32(len(magic)) + 1 + nonceLen + 1, uint32(len(magic)) + 1 + nonceLen + MaxTransferID},
	KindChallenge: {nonceLen + macLen, nonceLen + macLen},
	KindProof:     {macLen + 8, macLen + 8},
	KindResume:    {8, 8},
	KindData:      {dataOffsetLen + 1, dataOffsetLen + MaxPayload},
	KindEnd:       {8 + digestLen + macLen, 8 + digestLen + macLen},
	KindProgress:  {16, 16},
	KindDone:      {digestLen, digestLen},
	KindError:     {1, 1 + 255 + maxDetail},
}

// MaxControl is the largest body of any message but DATA: a buffer of this size reads them all.
const MaxControl = 1 + 255 + maxDetail

// Header opens every message.
type Header struct {
	Kind   Kind
	Length uint32
}

// ParseHeader reads a header and refuses unknown kinds and lengths that the kind cannot have.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < HeaderLen {
		return Header{}, io.ErrUnexpectedEOF
	}
	h := Header{Kind(b[0]), binary.BigEndian.Uint32(b[1:])}
	limit, known := bounds[h.Kind]
	if !known {
		return Header{}, fmt.Errorf("unknown message type %d", b[0])
	}
	if h.Length < limit[0] || h.Length > limit[1] {
		return Header{}, fmt.Errorf("message type %d has length %d, not within %d..%d", h.Kind, h.Length, limit[0], limit[1])
	}
	return h, nil
}

func appendHeader(b []byte, kind Kind, length int) []byte {
	b = append(b, byte(kind))
	return binary.BigEndian.AppendUint32(b, uint32(length))
}

// ReadHeader reads the next header from a connection.
func ReadHeader(r io.Reader, scratch []byte) (Header, error) {
	if _, err := io.ReadFull(r, scratch[:HeaderLen]); err != nil {
		return Header{}, err
	}
	return ParseHeader(scratch)
}

// ReadControl reads the next message, which must not be DATA, and returns its body in scratch (MaxControl bytes).
func ReadControl(r io.Reader, scratch []byte) (Kind, []byte, error) {
	h, err := ReadHeader(r, scratch)
	if err != nil {
		return 0, nil, err
	}
	if h.Kind == KindData {
		return 0, nil, fmt.Errorf("DATA where a control message was due")
	}
	body := scratch[:h.Length]
	if _, err := io.ReadFull(r, body); err != nil {
		return 0, nil, err
	}
	return h.Kind, body, nil
}

func wrongLength(name string, b []byte) error {
	return fmt.Errorf("%s with a body of %d bytes", name, len(b))
}
