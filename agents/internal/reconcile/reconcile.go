// SPDX-License-Identifier: Apache-2.0

// Package reconcile compares what the broker wants with what runs, and says what to do about the difference. The same
// wishes twice give nothing to do the second time.
package reconcile

import (
	"fmt"
	"slices"
	"strings"

	"bandwidthbroker/agents/internal/mover"
)

// Verb is what to do with a transfer.
type Verb int

// Stops come before starts: what is given up makes room for what is new.
const (
	Stop   Verb = iota // it is no longer wanted: remove what is unfinished
	Update             // same file, other plan: change the pace, keep the connection
	Start
)

// Operation is one difference.
type Operation struct {
	Verb   Verb
	Orders mover.Orders // for Stop: those it runs by
}

func (o Operation) String() string {
	return fmt.Sprintf("%s %s", [...]string{"stop", "update", "start"}[o.Verb], o.Orders.Transfer)
}

// Diff lists the operations that lead from running to wanted, in the order to do them in. held names transfers of which
// the broker sent something that makes no sense: they stay as they are.
func Diff(running map[string]mover.Orders, wanted []mover.Orders, held map[string]error) []Operation {
	var todo []Operation
	listed := map[string]bool{}
	for _, want := range wanted {
		listed[want.Transfer] = true
		have, runs := running[want.Transfer]
		switch {
		case !runs:
			todo = append(todo, Operation{Start, want})
		case have.Equal(want):
		case have.SameTransfer(want):
			todo = append(todo, Operation{Update, want})
		default:
			todo = append(todo, Operation{Stop, have}, Operation{Start, want})
		}
	}
	for id, have := range running {
		if _, hold := held[id]; !listed[id] && !hold {
			todo = append(todo, Operation{Stop, have})
		}
	}
	slices.SortStableFunc(todo, func(a, b Operation) int {
		if a.Verb != b.Verb {
			return int(a.Verb) - int(b.Verb)
		}
		return strings.Compare(a.Orders.Transfer, b.Orders.Transfer)
	})
	return todo
}
