// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"bandwidthbroker/agents/internal/datachannel"
	"bandwidthbroker/agents/internal/failure"
	"bandwidthbroker/agents/internal/tcpsock"
)

// readerBuffer is what a channel takes from the kernel at a time where it does not know how much will come.
const readerBuffer = 16 << 10

// errForged ends a handshake with a peer that does not hold the key.
var errForged = errors.New("the peer does not hold the transfer's key")

// channel is a data channel: messages over a connection, read by one goroutine, written by any.
type channel struct {
	conn    net.Conn
	reader  *bufio.Reader
	scratch [datachannel.MaxControl]byte
	writing sync.Mutex
}

func newChannel(conn net.Conn) *channel {
	return &channel{conn: conn, reader: bufio.NewReaderSize(conn, readerBuffer)}
}

type message interface{ Append([]byte) []byte }

// write sends a control message; a peer that does not take it for so long is as good as gone.
func (c *channel) write(m message) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	_ = c.conn.SetWriteDeadline(time.Now().Add(peerSilence))
	_, err := c.conn.Write(m.Append(nil))
	return err
}

// read waits for a control message of one kind; an ERROR in its place is the error.
func (c *channel) read(want datachannel.Kind) ([]byte, error) {
	kind, body, err := datachannel.ReadControl(c.reader, c.scratch[:])
	if err != nil {
		return nil, err
	}
	if kind == datachannel.KindError {
		return nil, peerError(body)
	}
	if kind != want {
		return nil, fmt.Errorf("message type %d where %d was due", kind, want)
	}
	return body, nil
}

// peerError turns the peer's ERROR into one of ours. Codes that name a lasting condition end the transfer; others, known
// or not, are worth another try.
func peerError(body []byte) error {
	m, err := datachannel.ParseError(body)
	if err != nil {
		return err
	}
	switch m.Code {
	case failure.DestinationExists, failure.DiskFull, failure.WriteFailed, failure.PathRefused, failure.ChecksumMismatch,
		failure.FileSize:
		return failure.New(m.Code, "receiver: %s", m.Detail)
	case failure.Authentication:
		return errForged
	}
	return m
}

// offer is the sender's side of the handshake. It returns the nonces, which END needs again.
func (c *channel) offer(o *Orders) (hello, challenge datachannel.Nonce, offset int64, err error) {
	hello = datachannel.NewNonce()
	if err = c.write(datachannel.Hello{Nonce: hello, Transfer: o.Transfer}); err != nil {
		return
	}
	body, err := c.read(datachannel.KindChallenge)
	if err != nil {
		return
	}
	answer, err := datachannel.ParseChallenge(body)
	if err != nil {
		return
	}
	key := datachannel.Key(o.Key)
	challenge = answer.Nonce
	if !answer.MAC.Equal(datachannel.ReceiverMAC(key, hello, challenge, o.Transfer)) {
		err = errForged
		return
	}
	proof := datachannel.Proof{MAC: datachannel.SenderMAC(key, hello, challenge, o.Transfer), Volume: uint64(o.Volume)}
	if err = c.write(proof); err != nil {
		return
	}
	if body, err = c.read(datachannel.KindResume); err != nil {
		return
	}
	resume, err := datachannel.ParseResume(body)
	if err == nil && resume.Offset > uint64(o.Volume) {
		err = fmt.Errorf("RESUME at %d of %d bytes", resume.Offset, o.Volume)
	}
	return hello, challenge, int64(resume.Offset), err
}

// answer is the receiver's side up to the sender's proof.
func (c *channel) answer(hello datachannel.Hello, o *Orders) (challenge datachannel.Nonce, err error) {
	key := datachannel.Key(o.Key)
	challenge = datachannel.NewNonce()
	mac := datachannel.ReceiverMAC(key, hello.Nonce, challenge, o.Transfer)
	if err = c.write(datachannel.Challenge{Nonce: challenge, MAC: mac}); err != nil {
		return
	}
	body, err := c.read(datachannel.KindProof)
	if err != nil {
		return
	}
	c.acknowledge() // RESUME, which would carry it, comes after the journal is on disk
	proof, err := datachannel.ParseProof(body)
	if err != nil {
		return
	}
	if !proof.MAC.Equal(datachannel.SenderMAC(key, hello.Nonce, challenge, o.Transfer)) {
		return challenge, errForged
	}
	if proof.Volume != uint64(o.Volume) {
		return challenge, failure.New(failure.FileSize, "the sender brings %d bytes, booked are %d", proof.Volume, o.Volume)
	}
	return challenge, nil
}

// acknowledge says at once what has arrived, where the kernel would wait up to 40 ms for something to send it with. A sender's kernel takes
// that for the round trip and paces by it: on a path of 0.1 ms its first 16 KB then took 11 ms. And of END, its successor waits for it.
func (c *channel) acknowledge() {
	conn := c.conn
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	if plain, ok := conn.(*net.TCPConn); ok {
		_ = tcpsock.AcknowledgeAtOnce(plain)
	}
}
