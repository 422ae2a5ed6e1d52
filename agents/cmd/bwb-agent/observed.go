// SPDX-License-Identifier: Apache-2.0

package main

import "bandwidthbroker/agents/internal/observe"

// observed is a flag with the packets that observed transfers may be made of.
type observed observe.Rules

func (o *observed) Set(text string) error {
	rules, err := observe.ParseRules(text)
	*o = observed(rules)
	return err
}

func (o *observed) String() string { return observe.Rules(*o).String() }

func (o *observed) Type() string { return "rules" }
