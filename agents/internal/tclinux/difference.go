// SPDX-License-Identifier: Apache-2.0

package tclinux

import (
	"cmp"
	"maps"
	"slices"
)

// wishes is what each device shall have; wish what one shall.
type wishes map[string]wish

type wish struct {
	kind    string // of the root qdisc
	classes map[uint16]Shape
	filters map[Filter]bool
}

// The order of operations. New before old, so that no packet of a class is ever without one; less before more, so that
// the sum of the rates is at no instant above what was wanted before and after.
const (
	swapRoot = iota // there can be one only: the other kind goes first
	addRoot
	lowerClass
	addClass
	raiseClass
	addFilter
	deleteFilter
	deleteClass
	deleteRoot
)

type step struct {
	rank int
	op   Operation
}

// difference leads from what the kernel has to what is wanted.
func difference(want wishes, have kernel) []Operation {
	var steps []step
	for _, device := range slices.Sorted(maps.Keys(want)) {
		steps = append(steps, toHave(device, want[device], have.on(device))...)
	}
	for _, device := range slices.Sorted(maps.Keys(have)) {
		if _, wanted := want[device]; !wanted && ours(have[device].root) && !have[device].spared {
			steps = append(steps, step{deleteRoot, Operation{Verb: Delete, Device: device}})
		}
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.rank, b.rank) })
	todo := make([]Operation, len(steps))
	for i, s := range steps {
		todo[i] = s.op
	}
	return todo
}

func toHave(device string, want wish, have *found) (steps []step) {
	add := func(rank int, op Operation) {
		op.Device = device
		steps = append(steps, step{rank, op})
	}
	if have.root.Kind != want.kind || !ours(have.root) {
		if ours(have.root) {
			add(swapRoot, Operation{Verb: Delete})
			have = &found{}
		}
		add(addRoot, Operation{Verb: Add, Kind: want.kind})
	}
	kept := map[uint16]bool{}
	for _, c := range have.classes {
		shape, wanted := want.classes[c.Minor]
		kept[c.Minor] = true
		switch {
		case !wanted:
			add(deleteClass, Operation{Verb: Delete, Class: &KernelClass{Minor: c.Minor}})
		case shape == c.Shape:
		case shape.RateBps > c.Shape.RateBps:
			add(raiseClass, Operation{Verb: Change, Class: &KernelClass{Minor: c.Minor, Shape: shape}})
		default:
			add(lowerClass, Operation{Verb: Change, Class: &KernelClass{Minor: c.Minor, Shape: shape}})
		}
	}
	for _, minor := range slices.Sorted(maps.Keys(want.classes)) {
		if !kept[minor] {
			add(addClass, Operation{Verb: Add, Class: &KernelClass{Minor: minor, Shape: want.classes[minor]}})
		}
	}
	there := map[Filter]bool{}
	for _, f := range have.filters {
		if !want.filters[f.Filter] || there[f.Filter] {
			add(deleteFilter, Operation{Verb: Delete, Filter: &f})
			continue
		}
		there[f.Filter] = true
	}
	for _, f := range slices.SortedFunc(maps.Keys(want.filters), compare) {
		if !there[f] {
			add(addFilter, Operation{Verb: Add, Filter: &KernelFilter{Filter: f}})
		}
	}
	return steps
}

func compare(a, b Filter) int {
	return cmp.Or(cmp.Compare(a.Minor, b.Minor), cmp.Compare(a.priority(), b.priority()), cmp.Compare(a.Keys, b.Keys))
}
