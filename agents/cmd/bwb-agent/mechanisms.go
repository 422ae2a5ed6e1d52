// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"bandwidthbroker/agents/internal/mechanism"
)

// mechanisms is a flag with names of rate mechanisms, the preferred first: pacing,htb.
type mechanisms []mechanism.Name

func (m *mechanisms) Set(text string) error {
	names, err := mechanism.ParseNames(text)
	*m = names
	return err
}

func (m *mechanisms) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint([]mechanism.Name(*m)), " ", ","), "[]")
}

func (m *mechanisms) Type() string { return "names" }
