// SPDX-License-Identifier: Apache-2.0

package datachannel

import "fmt"

const (
	magic   = "BWBD"
	version = 1
)

// Nonce makes every handshake different, so that nothing overheard can be played again.
type Nonce [nonceLen]byte

// Hello opens the connection: which transfer the sender wants to bring.
type Hello struct {
	Nonce    Nonce
	Transfer string
}

// Append adds the message to b.
func (m Hello) Append(b []byte) []byte {
	b = appendHeader(b, KindHello, len(magic)+1+nonceLen+len(m.Transfer))
	b = append(b, magic...)
	b = append(b, version)
	b = append(b, m.Nonce[:]...)
	return append(b, m.Transfer...)
}

// ParseHello reads the body.
func ParseHello(b []byte) (Hello, error) {
	fixed := len(magic) + 1 + nonceLen
	if len(b) <= fixed || len(b) > fixed+MaxTransferID {
		return Hello{}, wrongLength("HELLO", b)
	}
	if string(b[:len(magic)]) != magic {
		return Hello{}, fmt.Errorf("HELLO without the magic %q", magic)
	}
	if v := b[len(magic)]; v != version {
		return Hello{}, fmt.Errorf("HELLO of version %d, this agent speaks %d", v, version)
	}
	m := Hello{Transfer: string(b[fixed:])}
	copy(m.Nonce[:], b[len(magic)+1:])
	return m, nil
}
