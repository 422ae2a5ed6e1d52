// SPDX-License-Identifier: Apache-2.0

package tclinux

// left is what an earlier process left: classes, and the devices that have a root qdisc of ours.
type left struct {
	classes map[place]bool
	devices map[string]bool
}

func leftIn(have kernel) left {
	l := left{map[place]bool{}, map[string]bool{}}
	for device, f := range have {
		if !ours(f.root) {
			continue
		}
		l.devices[device] = true
		for _, c := range f.classes {
			l.classes[place{device, c.Minor}] = true
		}
	}
	return l
}

// adopt takes out what owners have now.
func (l left) adopt(at map[string]place) {
	for _, p := range at {
		delete(l.classes, p)
	}
}

// hide returns what was found without what is left: what is not seen is not removed.
func (l left) hide(have kernel) kernel {
	if len(l.devices) == 0 {
		return have
	}
	seen := kernel{}
	for device, f := range have {
		if !l.devices[device] {
			seen[device] = f
			continue
		}
		copied := &found{root: f.root, spared: true}
		for _, c := range f.classes {
			if !l.classes[place{device, c.Minor}] {
				copied.classes = append(copied.classes, c)
			}
		}
		for _, k := range f.filters {
			if !l.classes[place{device, k.Minor}] {
				copied.filters = append(copied.filters, k)
			}
		}
		seen[device] = copied
	}
	return seen
}
