// SPDX-License-Identifier: Apache-2.0

package datachannel

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
)

// MAC proves that its maker holds the transfer's key.
type MAC [macLen]byte

// Key is shared by the two agents of one transfer and by nobody else; the broker hands it out.
type Key []byte

// NewNonce draws a nonce from the system's source.
func NewNonce() Nonce {
	var n Nonce
	_, _ = rand.Read(n[:]) // never fails since Go 1.24: the program ends instead
	return n
}

// ReceiverMAC goes into CHALLENGE.
func ReceiverMAC(k Key, hello, challenge Nonce, transfer string) MAC {
	return k.sign([]byte("receiver"), hello[:], challenge[:], []byte(transfer))
}

// SenderMAC goes into PROOF.
func SenderMAC(k Key, hello, challenge Nonce, transfer string) MAC {
	return k.sign([]byte("sender"), hello[:], challenge[:], []byte(transfer))
}

// EndMAC goes into END.
func EndMAC(k Key, hello, challenge Nonce, volume uint64, digest Digest) MAC {
	return k.sign([]byte("end"), hello[:], challenge[:], binary.BigEndian.AppendUint64(nil, volume), digest[:])
}

// Equal compares without telling by its time where the difference is.
func (m MAC) Equal(other MAC) bool { return hmac.Equal(m[:], other[:]) }

func (k Key) sign(parts ...[]byte) MAC {
	h := hmac.New(sha256.New, k)
	for _, p := range parts {
		h.Write(p)
	}
	var m MAC
	h.Sum(m[:0])
	return m
}
