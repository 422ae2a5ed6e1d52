// SPDX-License-Identifier: Apache-2.0

package local

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Line is one end of the conversation. Send may be called from anywhere, Receive from one goroutine.
type Line struct {
	conn  *net.UnixConn
	write sync.Mutex
	read  []byte
	files []int // received, not yet given to a message
}

const (
	// patience bounds a write to the other side, which must not be able to hold us up.
	patience = 5 * time.Second
	maxFiles = 16
)

// NewLine takes over a connection.
func NewLine(conn *net.UnixConn) *Line { return &Line{conn: conn} }

// Dial connects to the daemon's socket.
func Dial(path string) (*Line, error) {
	address, done, err := short(path)
	if err != nil {
		return nil, err
	}
	defer done()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: address, Net: "unix"})
	if err != nil {
		return nil, err
	}
	return NewLine(conn), nil
}

// Send writes one message, with a descriptor if one goes with it (-1: none).
func (l *Line) Send(m Message, fd int) error {
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	var rights []byte
	if fd >= 0 {
		rights = unix.UnixRights(fd)
	}
	l.write.Lock()
	defer l.write.Unlock()
	if err := l.conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	raw = append(raw, '\n')
	n, _, err := l.conn.WriteMsgUnix(raw, rights, nil)
	for err == nil && n < len(raw) {
		var more int
		more, err = l.conn.Write(raw[n:])
		n += more
	}
	return err
}

// Receive waits for the next message. The descriptor is -1 unless one came with an Attach. An error other than a
// *Malformed ends the conversation.
func (l *Line) Receive() (Message, int, error) {
	for {
		if at := bytes.IndexByte(l.read, '\n'); at >= 0 {
			line := l.read[:at]
			m, err := Parse(line)
			l.read = append([]byte(nil), l.read[at+1:]...)
			if err != nil {
				return Message{}, -1, &Malformed{err}
			}
			return m, l.file(m), nil
		}
		if len(l.read) > longest {
			return Message{}, -1, fmt.Errorf("a line of more than %d bytes", longest)
		}
		if err := l.fill(); err != nil {
			return Message{}, -1, err
		}
	}
}

// Malformed is a line that is no message; the conversation can go on.
type Malformed struct{ Err error }

func (m *Malformed) Error() string { return m.Err.Error() }

func (l *Line) file(m Message) int {
	if m.Attach == nil || len(l.files) == 0 {
		return -1
	}
	fd := l.files[0]
	l.files = l.files[1:]
	return fd
}

func (l *Line) fill() error {
	piece := make([]byte, 32<<10)
	rights := make([]byte, unix.CmsgSpace(4*maxFiles))
	n, rightsLength, _, _, err := l.conn.ReadMsgUnix(piece, rights)
	if rightsLength > 0 {
		l.files = append(l.files, descriptors(rights[:rightsLength])...)
	}
	if len(l.files) > maxFiles {
		return errors.New("more descriptors than messages that take one")
	}
	if err == nil && n == 0 {
		err = io.EOF
	}
	l.read = append(l.read, piece[:max(n, 0)]...)
	return err
}

func descriptors(rights []byte) []int {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil
	}
	var found []int
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			continue
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
		}
		found = append(found, fds...)
	}
	return found
}

// Close ends the conversation.
func (l *Line) Close() {
	_ = l.conn.Close()
	for _, fd := range l.files {
		_ = unix.Close(fd)
	}
	l.files = nil
}

// Peer is the process at the other end, as the kernel vouches for it.
func (l *Line) Peer() (pid int, uid uint32, err error) {
	raw, err := l.conn.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var credentials *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		credentials, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return 0, 0, err
	}
	return int(credentials.Pid), credentials.Uid, nil
}
