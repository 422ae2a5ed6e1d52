// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	// maxStrangers bounds the connections that have not proved anything yet; each costs a goroutine and 20 KB for at
	// most handshakeTimeout.
	maxStrangers = 256
	// maxOfOne is how many of them one address may have: more than a host has transfers that begin in the same round trip or two.
	maxOfOne = 64
	// crowdedEvery spaces the lines in the log about addresses that hold too many.
	crowdedEvery = 30 * time.Second
)

// strangers are the connections that have not proved anything yet. They have a room of their own, so that they take nothing from those
// that have, and the address that fills it pays: the oldest connection of the address that has the most gives way to a new one. An agent proves
// itself within two round trips, so one that came from another address, or just now, is not it.
type strangers struct {
	log *slog.Logger

	mu     sync.Mutex
	oldest []*stranger // in the order in which they came
	of     map[netip.Prefix]int
	toldAt time.Time
	closed int // since then
}

type stranger struct {
	conn net.Conn
	from netip.Prefix
}

func newStrangers(log *slog.Logger) *strangers {
	return &strangers{log: log, of: map[netip.Prefix]int{}}
}

// greet takes a connection in; the one that gives way to it, if one must, is closed.
func (s *strangers) greet(conn net.Conn) *stranger {
	s.mu.Lock()
	defer s.mu.Unlock()
	who := &stranger{conn, origin(conn.RemoteAddr())}
	s.oldest = append(s.oldest, who)
	s.of[who.from]++
	switch {
	case s.of[who.from] > maxOfOne:
		s.evict(who.from)
	case len(s.oldest) > maxStrangers:
		s.evict(s.greediest())
	}
	return who
}

// leave takes a connection out, once it has proved itself or is over. False: it had to give way before.
func (s *strangers) leave(who *stranger) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.Index(s.oldest, who)
	if at < 0 {
		return false
	}
	s.drop(at)
	return true
}

// evict closes the oldest connection of an address. s.mu is held.
func (s *strangers) evict(from netip.Prefix) {
	at := slices.IndexFunc(s.oldest, func(o *stranger) bool { return o.from == from })
	held := s.of[from]
	_ = s.oldest[at].conn.Close()
	s.drop(at)
	s.closed++
	if now := time.Now(); now.Sub(s.toldAt) >= crowdedEvery {
		s.log.Warn("connections to the data port prove nothing and crowd it: the oldest of this address are closed",
			"address", from, "open", held, "limit", maxOfOne, "closed_since_last_said", s.closed,
			"do", "find out what runs there, or let the firewall admit transfer hosts alone")
		s.toldAt, s.closed = now, 0
	}
}

// greediest is the address that has the most; of several, the one whose oldest is the oldest. s.mu is held.
func (s *strangers) greediest() (most netip.Prefix) {
	for _, o := range s.oldest {
		if s.of[o.from] > s.of[most] {
			most = o.from
		}
	}
	return most
}

// drop forgets one. s.mu is held.
func (s *strangers) drop(at int) {
	from := s.oldest[at].from
	s.oldest = slices.Delete(s.oldest, at, at+1)
	if s.of[from]--; s.of[from] == 0 {
		delete(s.of, from)
	}
}

// origin is what counts as one address: of IPv6 a subnet, all of which one host may call its own.
func origin(from net.Addr) netip.Prefix {
	parsed, err := netip.ParseAddrPort(from.String())
	if err != nil {
		return netip.Prefix{}
	}
	address := parsed.Addr().Unmap().WithZone("")
	bits := address.BitLen()
	if address.Is6() {
		bits = 64
	}
	prefix, _ := address.Prefix(bits)
	return prefix
}
