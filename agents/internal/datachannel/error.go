// SPDX-License-Identifier: Apache-2.0

package datachannel

import (
	"strings"
	"unicode"
)

// ERROR codes that are no failures: the sender comes again.
const (
	// UnknownTransfer: the receiver has not heard of the transfer yet.
	UnknownTransfer = "unknown_transfer"
	// ChecksumWanted: the next time END shall carry the digest of the file, although the transfer is not verified.
	ChecksumWanted = "checksum_wanted"
)

// Error ends the connection with a reason. It is an error value on the side that reads it.
type Error struct {
	Code, Detail string
}

func (m Error) Error() string {
	if m.Detail == "" {
		return "peer says " + m.Code
	}
	return "peer says " + m.Code + ": " + m.Detail
}

// Append adds the message to b; what is too long for the frame is cut.
func (m Error) Append(b []byte) []byte {
	code, detail := m.Code[:min(len(m.Code), 255)], m.Detail[:min(len(m.Detail), maxDetail)]
	b = appendHeader(b, KindError, 1+len(code)+len(detail))
	b = append(b, byte(len(code)))
	b = append(b, code...)
	return append(b, detail...)
}

// ParseError reads the body. The text comes from another host and goes into logs: control characters are dropped.
func ParseError(b []byte) (Error, error) {
	if len(b) < 1 || len(b) < 1+int(b[0]) || len(b) > MaxControl {
		return Error{}, wrongLength("ERROR", b)
	}
	cut := 1 + int(b[0])
	code, detail := b[1:cut], b[cut:]
	return Error{printable(code), printable(detail)}, nil
}

func printable(b []byte) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(string(b), ""))
}
