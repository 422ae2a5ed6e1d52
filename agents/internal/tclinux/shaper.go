// SPDX-License-Identifier: Apache-2.0

// Package tclinux holds packets to rates by Linux traffic control: one class of the HTB qdisc for each owner (a transfer),
// filled by u32 filters or by sockets that name it in SO_PRIORITY. Wishes are compared with what the kernel has; only the
// difference is carried out, new before old. Packets of no class pass as if nothing were there, and no qdisc that somebody
// else configured is touched.
package tclinux

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
)

// Shaper keeps the kernel's classes as its owners want them. It is safe for concurrent use.
//
//	shaper, err := tclinux.Open(system)              // system, err := tclinux.OpenKernel()
//	err = shaper.Want("tr_1", tclinux.Class{...})     // new, or another rate, or other matches; refused: why it cannot be
//	done, err := shaper.Sync()                        // the kernel is brought up to date
//	id, held := shaper.ID("tr_1")                     // for SO_PRIORITY
//	reading, err := shaper.Read("tr_1")               // rate as the kernel has it, bytes and packets sent
//	shaper.Drop("tr_1"); shaper.Sync(); shaper.Close() // Close removes everything
type Shaper struct {
	system System

	mu     sync.Mutex
	wanted map[string]Class
	at     map[string]place // where the class of each owner is, or will be
	before map[string]sent  // what left by classes that an owner had before
	left   left             // by an earlier process, spared until Sweep
	closed bool
}

// place is a class in the kernel.
type place struct {
	device string
	minor  uint16
}

type sent struct{ bytes, packets, drops uint64 }

// Reading is what the kernel says of an owner's class.
type Reading struct {
	Device  string `json:"device"`
	ID      uint32 `json:"id"`
	RateBps int64  `json:"rate_bps"`
	Bytes   uint64 `json:"bytes"`   // sent, headers included, since the first class of the owner was made
	Packets uint64 `json:"packets"` // segments as on the wire
	Drops   uint64 `json:"drops"`
	Backlog uint64 `json:"backlog_bytes"`
}

// ErrClosed is answered after Close.
var ErrClosed = errors.New("the shaper is closed")

// Open makes this process the one that shapes here. What an earlier process left stays until Sweep; whoever wants a class
// with the same filters before that gets it, counters included.
func Open(system System) (*Shaper, error) {
	if err := system.Lock(); err != nil {
		return nil, err
	}
	have, err := look(system)
	if err != nil {
		return nil, err
	}
	return &Shaper{system: system, wanted: map[string]Class{}, at: map[string]place{}, before: map[string]sent{}, left: leftIn(have)}, nil
}

// Want sets what an owner wants from the next Sync on. It is refused when it makes no sense, when there is no way to the
// remote host, and when the device has a qdisc that somebody else configured (ForeignQdisc).
func (s *Shaper) Want(owner string, class Class) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if err := class.check(); err != nil {
		return err
	}
	if had, known := s.wanted[owner]; known && had.samePackets(class) {
		// Another rate: the hot path. What is in the way, Sync finds.
		s.wanted[owner] = class
		return nil
	}
	ways := ways{}
	device, err := s.deviceOf(class, ways)
	if err != nil {
		return err
	}
	roots, err := s.system.Roots()
	if err != nil {
		return err
	}
	root := rootOf(roots, device)
	if err := usable(root); err != nil && !(class.FQ && pacesByFQ(root)) {
		return err
	}
	if err := s.alone(owner, class, device, ways); err != nil {
		return err
	}
	s.wanted[owner] = class
	return nil
}

// maxClasses keeps far below the 65,535 numbers of one qdisc.
const maxClasses = 4096

// alone refuses packets that are in another class already (HTB would put them into either, and both counts were wrong), and
// a second root qdisc.
func (s *Shaper) alone(owner string, class Class, device string, ways ways) error {
	if _, known := s.wanted[owner]; !known && len(s.wanted) >= maxClasses {
		return fmt.Errorf("there are %d classes already", maxClasses)
	}
	mine := filters(class.Matches, 0)
	for other, has := range s.wanted {
		if other == owner {
			continue
		}
		shared := slices.ContainsFunc(filters(has.Matches, 0), func(f Filter) bool { return slices.ContainsFunc(mine, f.overlaps) })
		if !shared && has.FQ == class.FQ {
			continue
		}
		switch on, err := s.deviceOf(has, ways); {
		case err != nil || on != device:
		case shared:
			return fmt.Errorf("some of the packets are matched by %s already", other)
		default:
			return fmt.Errorf("device %s cannot have fq and classes of htb at once: %s uses the other", device, other)
		}
	}
	return nil
}

// Drop gives up what an owner wanted; the next Sync removes it.
func (s *Shaper) Drop(owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.wanted, owner)
	delete(s.before, owner)
}

// ID is the number of an owner's class after Sync, for SO_PRIORITY.
func (s *Shaper) ID(owner string) (uint32, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, found := s.at[owner]
	return classID(p.minor), found
}

// Read is an owner's class as the kernel has it now.
func (s *Shaper) Read(owner string) (Reading, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, found := s.at[owner]
	if !found || s.closed {
		return Reading{}, fmt.Errorf("%s has no class", owner)
	}
	classes, err := s.system.Classes(p.device)
	if err != nil {
		return Reading{}, err
	}
	for _, c := range classes {
		if c.Minor == p.minor {
			b := s.before[owner]
			return Reading{
				p.device, classID(p.minor), c.Shape.RateBps, b.bytes + c.Bytes, b.packets + c.Packets, b.drops + c.Drops, c.Backlog,
			}, nil
		}
	}
	return Reading{}, fmt.Errorf("the class of %s is gone from %s: somebody removed it", owner, p.device)
}

// Readings are those of all owners, in order of their names; what cannot be read is left out.
func (s *Shaper) Readings() map[string]Reading {
	s.mu.Lock()
	owners := make([]string, 0, len(s.at))
	for owner := range s.at {
		owners = append(owners, owner)
	}
	s.mu.Unlock()
	slices.SortFunc(owners, strings.Compare)
	read := map[string]Reading{}
	for _, owner := range owners {
		if r, err := s.Read(owner); err == nil {
			read[owner] = r
		}
	}
	return read
}

// Close removes everything of ours from the kernel and lets another process shape.
func (s *Shaper) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	clear(s.wanted)
	s.left = left{}
	_, err := s.sync()
	s.closed = true
	return errors.Join(err, s.system.Close())
}

// ways remembers devices for the time of one call: many owners have one remote host.
type ways map[netip.Addr]string

func (s *Shaper) deviceOf(c Class, known ways) (string, error) {
	if c.Device != "" {
		_, err := s.system.Link(c.Device)
		return c.Device, err
	}
	if device, found := known[c.Remote]; found {
		return device, nil
	}
	device, err := s.system.Route(c.Remote)
	if err != nil {
		return "", fmt.Errorf("no way to %s: %w", c.Remote, err)
	}
	known[c.Remote] = device
	return device, nil
}
