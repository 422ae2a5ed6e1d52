// SPDX-License-Identifier: Apache-2.0

package mechanism

import (
	"fmt"
	"slices"
	"strings"

	"bandwidthbroker/agents/internal/pacing"
)

// Host is what this host can do, found out once at start, and what it prefers.
type Host struct {
	table   Table
	reports []Report // one for each row of the table
	prefer  []Name
	means   Means
}

// Unavailable says why this host cannot use a mechanism.
type Unavailable struct {
	Name   Name
	Reason string
}

// Error implements error.
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

// ChooseForeign is the first candidate that can hold sockets of another process, or pacing where the assignment leaves it
// open and this host prefers only mechanisms that cannot: that preference is about its own sending.
func (h *Host) ChooseForeign(asked Name) (Name, error) {
	names, err := h.Candidates(asked)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if m, _ := h.table.find(name); m.Foreign != nil {
			return name, nil
		}
	}
	if asked == "" {
		return Pacing, nil
	}
	return "", ownOnly(asked)
}

func ownOnly(name Name) error {
	return &Unavailable{name, "it slows the agent's own writes, and a command writes for itself"}
}

func (h *Host) usable(name Name) (reason string, ok bool) {
	i := slices.IndexFunc(h.reports, func(r Report) bool { return r.Name == name })
	if i < 0 {
		return "not known to this agent", false
	}
	return h.reports[i].Reason, h.reports[i].Available
}

// Own makes the limiter for this process's own sockets of a transfer; it may be a SendWindow. The error is an *Unavailable.
func (h *Host) Own(asked Name, transfer string) (pacing.Limiter, error) {
	name, err := h.Choose(asked)
	if err != nil {
		return nil, err
	}
	m, _ := h.table.find(name)
	return m.Own(h.means, transfer), nil
}

// Foreign makes the limiter for sockets of another process, which writes when it likes. The error is an *Unavailable.
func (h *Host) Foreign(asked Name, transfer string) (pacing.Limiter, error) {
	name, err := h.Choose(asked)
	if err != nil {
		return nil, err
	}
	m, _ := h.table.find(name)
	if m.Foreign == nil {
		return nil, ownOnly(name)
	}
	return m.Foreign(h.means, transfer), nil
}

// LookaheadUs is how far ahead of the booking a sender may write that is held by a mechanism, in µs.
func (h *Host) LookaheadUs(name Name) int64 {
	m, _ := h.table.find(name)
	return m.LookaheadUs
}

// ParseNames reads a list of preferences, as in --mechanism pacing,htb.
func ParseNames(text string) ([]Name, error) {
	var names []Name
	for part := range strings.SplitSeq(text, ",") {
		name := Name(strings.TrimSpace(part))
		if _, ok := Known.find(name); !ok {
			return nil, fmt.Errorf("%q is no rate mechanism: want some of %s, the preferred first", string(name), JoinNames(Known.Names()))
		}
		names = append(names, name)
	}
	return names, nil
}

// JoinNames writes names as in "pacing, htb".
func JoinNames(names []Name) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = string(name)
	}
	return strings.Join(texts, ", ")
}
