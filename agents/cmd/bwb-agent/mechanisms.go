// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"bandwidthbroker/agents/internal/mechanism"
)

// mechanisms is a flag with names of rate mechanisms, the preferred first: pacing,htb. In the configuration file it may
// be a list.
type mechanisms []mechanism.Name

func (m *mechanisms) Set(text string) error {
	// A TOML list comes as [pacing htb].
	if inner, list := strings.CutPrefix(text, "["); list {
		text = strings.Join(strings.Fields(strings.TrimSuffix(inner, "]")), ",")
	}
	names, err := mechanism.ParseNames(text)
	*m = names
	return err
}

func (m *mechanisms) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint([]mechanism.Name(*m)), " ", ","), "[]")
}

func (m *mechanisms) Type() string { return "names" }
