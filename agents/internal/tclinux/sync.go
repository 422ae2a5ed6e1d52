// SPDX-License-Identifier: Apache-2.0

package tclinux

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Sync brings the kernel up to date and returns what it did, in order; nothing to do is no operation. Where one device or
// one owner fails, the others are brought up to date all the same.
func (s *Shaper) Sync() ([]Operation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	return s.sync()
}

func (s *Shaper) sync() ([]Operation, error) {
	have, err := look(s.system)
	if err != nil {
		return nil, err
	}
	devices, failures := s.route(have)
	for device, owners := range devices {
		root := have.on(device).root
		if pacesByFQ(root) && !ours(root) && s.onlyFQ(owners) {
			delete(devices, device) // it does already what they want
		} else if err := usable(root); err != nil {
			failures = append(failures, err)
			delete(devices, device)
		}
	}
	gone := s.settle(devices, have)
	s.left.adopt(s.at)
	done, failed := s.carryOut(difference(s.wants(devices), s.left.hide(have)))
	s.forgetMissing(have, done)
	s.addUp(gone)
	return done, errors.Join(append(failures, failed...)...)
}

// Sweep is Sync, and removes what an earlier process left. It comes when everybody has said what is wanted.
func (s *Shaper) Sweep() ([]Operation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	s.left = left{}
	return s.sync()
}

// kernel is what was found there.
type kernel map[string]*found

type found struct {
	root    Qdisc
	classes []KernelClass
	filters []KernelFilter
	spared  bool // whatever is wanted, the root qdisc stays
}

func (k kernel) on(device string) *found {
	if f := k[device]; f != nil {
		return f
	}
	return &found{root: Qdisc{Device: device}}
}

func (f *found) class(minor uint16) KernelClass {
	for _, c := range f.classes {
		if c.Minor == minor {
			return c
		}
	}
	return KernelClass{}
}

func look(system System) (kernel, error) {
	roots, err := system.Roots()
	if err != nil {
		return nil, err
	}
	have := kernel{}
	for _, root := range roots {
		f := &found{root: root}
		have[root.Device] = f
		if !ours(root) {
			continue
		}
		if f.classes, err = system.Classes(root.Device); err != nil {
			return nil, err
		}
		if f.filters, err = system.Filters(root.Device); err != nil {
			return nil, err
		}
	}
	return have, nil
}

func (s *Shaper) onlyFQ(owners []string) bool {
	return !slices.ContainsFunc(owners, func(owner string) bool { return !s.wanted[owner].FQ })
}

// route finds the device of every owner. One whose way is unknown for the moment stays where it is.
func (s *Shaper) route(have kernel) (devices map[string][]string, failures []error) {
	devices = map[string][]string{}
	ways := ways{}
	for _, owner := range slices.Sorted(maps.Keys(s.wanted)) {
		device, err := s.deviceOf(s.wanted[owner], ways)
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", owner, err))
			p, placed := s.at[owner]
			if !placed || have[p.device] == nil {
				continue
			}
			device = p.device
		}
		devices[device] = append(devices[device], owner)
	}
	return devices, failures
}

// settle gives every owner a class number: the one it has, else that of a class which an earlier process left and whose
// filters are the wanted ones, else the lowest that nothing has. It returns the classes that owners leave for new ones.
func (s *Shaper) settle(devices map[string][]string, have kernel) (gone map[string]KernelClass) {
	gone = map[string]KernelClass{}
	old := s.at
	s.at = map[string]place{}
	for _, device := range slices.Sorted(maps.Keys(devices)) {
		taken := map[uint16]bool{0: true}
		for owner, p := range old {
			// Also of owners that are gone: their class is still there, and is removed after the new one was made.
			if p.device == device {
				taken[p.minor] = true
				switch c := have.on(device).class(p.minor); {
				case !slices.Contains(devices[device], owner):
				case indebted(c, s.wanted[owner]):
					gone[owner] = c
				default:
					s.at[owner] = p
				}
			}
		}
		for _, owner := range devices[device] {
			if _, placed := s.at[owner]; placed || s.wanted[owner].FQ {
				continue
			}
			minor, found := leftOver(have.on(device), s.wanted[owner].Matches, taken)
			if !found {
				minor = free(have.on(device), taken)
			}
			taken[minor] = true
			s.at[owner] = place{device, minor}
		}
	}
	return gone
}

// indebted classes make way for new ones when their rate is raised: what is sent at the higher rate would wait for the
// time that was owed at the lower. Sockets name their class, and stay in it; those of this agent owe little.
func indebted(c KernelClass, want Class) bool {
	return len(want.Matches) > 0 && c.Debt > debtMost && want.RateBps > c.Shape.RateBps
}

// addUp keeps the count of an owner that has a new class.
func (s *Shaper) addUp(gone map[string]KernelClass) {
	for owner, c := range gone {
		if _, placed := s.at[owner]; placed {
			b := s.before[owner]
			s.before[owner] = sent{b.bytes + c.Bytes, b.packets + c.Packets, b.drops + c.Drops}
		}
	}
}

// leftOver finds a class without an owner whose filters are those of the matches. Sockets do not outlive their process, so that
// a class without filters is never one to go on with.
func leftOver(f *found, matches []Match, taken map[uint16]bool) (uint16, bool) {
	if len(matches) == 0 {
		return 0, false
	}
	for _, c := range f.classes {
		if taken[c.Minor] {
			continue
		}
		has := map[Filter]bool{}
		for _, k := range f.filters {
			if k.Minor == c.Minor {
				has[k.Filter] = true
			}
		}
		if maps.Equal(has, set(filters(matches, c.Minor))) {
			return c.Minor, true
		}
	}
	return 0, false
}

func set(filters []Filter) map[Filter]bool {
	made := make(map[Filter]bool, len(filters))
	for _, f := range filters {
		made[f] = true
	}
	return made
}

func free(f *found, taken map[uint16]bool) uint16 {
	used := maps.Clone(taken)
	for _, c := range f.classes {
		used[c.Minor] = true
	}
	for _, k := range f.filters {
		used[k.Minor] = true
	}
	minor := uint16(1)
	for used[minor] {
		minor++
	}
	return minor
}

// wants is what every device shall have.
func (s *Shaper) wants(devices map[string][]string) wishes {
	tick := s.system.Tick()
	made := wishes{}
	for device, owners := range devices {
		w := wish{kind: fq, classes: map[uint16]Shape{}, filters: map[Filter]bool{}}
		for _, owner := range owners {
			class, minor := s.wanted[owner], s.at[owner].minor
			if class.FQ {
				continue
			}
			w.kind = htb
			w.classes[minor] = shape(class.RateBps, tick)
			for _, f := range filters(class.Matches, minor) {
				w.filters[f] = true
			}
		}
		made[device] = w
	}
	return made
}

// carryOut does the operations in order. After one that fails the rest of its device waits for the next Sync, which looks
// at the kernel anew.
func (s *Shaper) carryOut(todo []Operation) (done []Operation, failures []error) {
	broken := map[string]bool{}
	for _, op := range todo {
		if broken[op.Device] {
			continue
		}
		if err := s.system.Do(op); err != nil {
			broken[op.Device] = true
			failures = append(failures, fmt.Errorf("tc %s: %w", op, err))
			continue
		}
		done = append(done, op)
	}
	return done, failures
}

// forgetMissing: an owner has a class when the kernel has it.
func (s *Shaper) forgetMissing(have kernel, done []Operation) {
	exists := map[place]bool{}
	for device, f := range have {
		for _, c := range f.classes {
			exists[place{device, c.Minor}] = true
		}
	}
	for _, op := range done {
		if op.Class != nil {
			exists[place{op.Device, op.Class.Minor}] = op.Verb != Delete
		}
	}
	maps.DeleteFunc(s.at, func(_ string, p place) bool { return !exists[p] })
}
