// SPDX-License-Identifier: Apache-2.0

package gateway

// Store keeps the bytes of packets, first in, first out, in one piece of memory: a packet is read into its place and written from
// there, never copied. It grows by doubling when what is on the link does not fit; after that nothing is allocated.
type Store struct {
	memory      []byte
	read, write int
	end         int // where the packets before the wrap end; 0 while they do not wrap
	packets     int
}

// NewStore makes room for so many bytes at first.
func NewStore(size int) *Store { return &Store{memory: make([]byte, max(size, 1))} }

// Room is where the next packet, of at most n bytes, may be read to.
func (s *Store) Room(n int) []byte {
	if s.packets == 0 {
		s.read, s.write, s.end = 0, 0, 0
	}
	for {
		switch {
		case s.end == 0 && len(s.memory)-s.write >= n, s.end > 0 && s.read-s.write >= n:
			return s.memory[s.write : s.write+n]
		case s.end == 0 && s.read >= n && s.write > 0:
			s.end, s.write = s.write, 0
		default:
			s.grow(n)
		}
	}
}

// Keep ends what was read into Room after n bytes.
func (s *Store) Keep(n int) {
	s.write += n
	s.packets++
}

// Front is the oldest packet, of n bytes.
func (s *Store) Front(n int) []byte {
	if s.end > 0 && s.read == s.end {
		s.read, s.end = 0, 0
	}
	return s.memory[s.read : s.read+n]
}

// Release forgets the oldest packet, of n bytes.
func (s *Store) Release(n int) {
	s.Front(n)
	s.read += n
	s.packets--
}

func (s *Store) grow(n int) {
	larger := make([]byte, 2*len(s.memory)+n)
	var kept int
	if s.end > 0 {
		kept = copy(larger, s.memory[s.read:s.end])
		kept += copy(larger[kept:], s.memory[:s.write])
	} else {
		kept = copy(larger, s.memory[s.read:s.write])
	}
	s.memory, s.read, s.write, s.end = larger, 0, kept, 0
}
