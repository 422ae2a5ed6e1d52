// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// maxLines bounds how many may speak at once: a command each.
const maxLines = 1024

// firstWord is how long a new client may take to say what it wants: silent lines must not fill the places of commands.
const firstWord = 10 * time.Second

// Daemon is what answers on the socket; package agent is it.
type Daemon interface {
	// About says who the agent is.
	About() About
	// Serve has one conversation that began with hello, until the line breaks or the transfer is over. The line is closed
	// by the caller.
	Serve(line *Line, hello Hello, pid int)
}

// Server listens on the socket.
type Server struct {
	listener *net.UnixListener
	log      *slog.Logger
	mu       sync.Mutex
	lines    map[*Line]bool
	closed   bool
	serving  sync.WaitGroup
	patience time.Duration // firstWord; tests have less
}

// Listen makes the socket, for the agent's own user; with a group, for its members as well. An old one is replaced: the
// state folder is locked by the caller, so no other agent answers on it.
func Listen(path, group string, log *slog.Logger) (*Server, error) {
	gid := -1
	if group != "" {
		found, err := user.LookupGroup(group)
		if err != nil {
			return nil, err
		}
		if gid, err = strconv.Atoi(found.Gid); err != nil {
			return nil, err
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	// The socket is made under another name, and renamed once its permissions are right.
	hidden := filepath.Join(filepath.Dir(path), fmt.Sprintf(".sock%d", os.Getpid()))
	_ = os.Remove(hidden)
	address, done, err := short(hidden)
	if err != nil {
		return nil, err
	}
	defer done()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: address, Net: "unix"})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false)
	if err := open(hidden, path, gid); err != nil {
		_ = listener.Close()
		_ = os.Remove(hidden)
		return nil, err
	}
	return &Server{listener: listener, log: log, lines: map[*Line]bool{}, patience: firstWord}, nil
}

func open(hidden, path string, gid int) error {
	mode := fs.FileMode(0o600)
	if gid >= 0 {
		mode = 0o660
		if err := os.Chown(hidden, -1, gid); err != nil {
			return err
		}
		// The folder may be passed through by the group; names are not listed, and the files in it are closed to it.
		if err := os.Chown(filepath.Dir(path), -1, gid); err != nil {
			return err
		}
		if err := os.Chmod(filepath.Dir(path), 0o710); err != nil {
			return err
		}
	}
	if err := os.Chmod(hidden, mode); err != nil {
		return err
	}
	return os.Rename(hidden, path)
}

// Serve answers until Close.
func (s *Server) Serve(d Daemon) {
	for {
		conn, err := s.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.log.Warn("local socket", "error", err)
			continue
		}
		line := NewLine(conn)
		if !s.add(line) {
			s.log.Warn("too many conversations on the local socket, refused one", "limit", maxLines)
			line.Close()
			continue
		}
		s.serving.Go(func() {
			defer s.drop(line)
			s.first(d, line)
		})
	}
}

func (s *Server) first(d Daemon, line *Line) {
	pid, uid, err := line.Peer()
	if err != nil {
		return
	}
	_ = line.conn.SetReadDeadline(time.Now().Add(s.patience))
	m, _, err := line.Receive()
	_ = line.conn.SetReadDeadline(time.Time{})
	switch {
	case err != nil:
		_ = line.Send(Message{Refused: &Refusal{"malformed", err.Error()}}, -1)
	case m.About != nil:
		about := d.About()
		about.Version = Version
		_ = line.Send(Message{About: &about}, -1)
	case m.Hello == nil:
		_ = line.Send(Message{Refused: &Refusal{"malformed", "want hello or about first"}}, -1)
	case m.Hello.Version != Version:
		detail := fmt.Sprintf("exec speaks version %d and the agent %d: use one bwb-agent for both, and restart the agent after an update", m.Hello.Version, Version)
		_ = line.Send(Message{Refused: &Refusal{"version", detail}}, -1)
	default:
		s.log.Info("a command is supervised", "transfer", m.Hello.Transfer, "pid", pid, "uid", uid, "began", m.Hello.Began)
		d.Serve(line, *m.Hello, pid)
	}
}

func (s *Server) add(line *Line) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.lines) >= maxLines {
		return false
	}
	s.lines[line] = true
	return true
}

func (s *Server) drop(line *Line) {
	line.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.lines, line)
}

// Close ends all conversations; the commands go on by what they know.
func (s *Server) Close() {
	_ = s.listener.Close()
	s.mu.Lock()
	s.closed = true
	for line := range s.lines {
		_ = line.conn.Close()
	}
	s.mu.Unlock()
	s.serving.Wait()
}
