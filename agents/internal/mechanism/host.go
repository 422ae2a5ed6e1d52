// SPDX-License-Identifier: Apache-2.0

package mechanism

import (
	"fmt"
	"net/netip"
	"strings"
)

// All are the mechanisms in the order in which they are shown.
var All = []Name{Pacing, HTB, FQ, Window, Userland}

// Classes is what `htb` needs of the host's traffic control; package agent makes it of tclinux.Shaper.
type Classes interface {
	// Hold keeps a class of HTB for an owner on the way to an address, at a rate with all headers, and answers what goes
	// into SO_PRIORITY of its sockets, and the rate that the kernel, read back, now holds to.
	Hold(owner string, to netip.Addr, wireBps int64) (priority uint32, heldBps int64, err error)
	// Release removes the class.
	Release(owner string) error
	// LinkHeader is how many bytes the device on the way to an address puts in front of every packet.
	LinkHeader(to netip.Addr) (int, error)
}

// Host is what this host can do, found out once at start, and what it prefers.
type Host struct {
	reports []Report
	prefer  []Name
	classes Classes
	fq      func(to netip.Addr) error // nil: the way to an address leads through fq
}

// Unavailable says why this host cannot use a mechanism.
type Unavailable struct {
	Name   Name
	Reason string
}

func (e *Unavailable) Error() string { return fmt.Sprintf("mechanism %s: %s", e.Name, e.Reason) }

// Reports say of every mechanism whether it can be used here.
func (h *Host) Reports() []Report { return h.reports }

// Candidates are the mechanisms to try, the best first: the one that an assignment asks for or, when it leaves it open (""),
// those that the host prefers and can use. The error is an *Unavailable.
func (h *Host) Candidates(asked Name) ([]Name, error) {
	if asked != "" {
		if reason, ok := h.usable(asked); !ok {
			return nil, &Unavailable{asked, reason}
		}
		return []Name{asked}, nil
	}
	var names []Name
	var reasons []string
	for _, name := range h.prefer {
		if reason, ok := h.usable(name); ok {
			names = append(names, name)
		} else {
			reasons = append(reasons, fmt.Sprintf("%s: %s", name, reason))
		}
	}
	if len(names) == 0 {
		return nil, &Unavailable{h.prefer[0], "none that this host prefers can be used: " + strings.Join(reasons, "; ")}
	}
	return names, nil
}

// Choose is the first candidate.
func (h *Host) Choose(asked Name) (Name, error) {
	names, err := h.Candidates(asked)
	if err != nil {
		return "", err
	}
	return names[0], nil
}

func (h *Host) usable(name Name) (reason string, ok bool) {
	for _, r := range h.reports {
		if r.Name == name {
			return r.Reason, r.Available
		}
	}
	return "not known to this agent", false
}

// Limiter holds this process's own sockets of a transfer: it may say in Room how much they may write.
func (h *Host) Limiter(asked Name, transfer string) (Limiter, error) {
	name, err := h.Choose(asked)
	if err != nil {
		return nil, err
	}
	switch name {
	case HTB:
		return newHTB(h.classes, transfer), nil
	case FQ:
		return newFQ(h.fq), nil
	case Window:
		return newWindow(), nil
	case Userland:
		return newUserland(), nil
	}
	return NewPacing(), nil
}

// Foreign holds sockets of another process, which writes when it likes. `userland` cannot: the token bucket would have to
// be in the writer.
func (h *Host) Foreign(asked Name, transfer string) (Limiter, error) {
	name, err := h.Choose(asked)
	if err != nil {
		return nil, err
	}
	switch name {
	case Userland:
		return nil, &Unavailable{name, "not possible for sockets of another process: its token bucket is in the sender"}
	case Window:
		return newBuffer(), nil
	}
	return h.Limiter(name, transfer)
}

// ParseNames reads a list of preferences, as in --mechanism pacing,htb.
func ParseNames(text string) ([]Name, error) {
	var names []Name
	for part := range strings.SplitSeq(text, ",") {
		name := Name(strings.TrimSpace(part))
		if !known(name) {
			return nil, fmt.Errorf("%q is no rate mechanism: want some of pacing, htb, fq, window, userland, the preferred first", string(name))
		}
		names = append(names, name)
	}
	return names, nil
}

func known(name Name) bool {
	for _, n := range All {
		if n == name {
			return true
		}
	}
	return false
}
