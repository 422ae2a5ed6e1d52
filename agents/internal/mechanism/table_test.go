// SPDX-License-Identifier: Apache-2.0

package mechanism_test

import (
	"errors"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"bandwidthbroker/agents/internal/brokerapi"
	"bandwidthbroker/agents/internal/mechanism"
	"bandwidthbroker/agents/internal/pacing"
)

// able has every means that a mechanism may ask for.
var able = mechanism.Means{Classes: &classes{}, FQ: func(netip.Addr) error { return nil }}

// Every row is whole, and makes limiters where this host finds it usable.
func TestEveryRowIsImplemented(t *testing.T) {
	host := mechanism.Known.Probe([]mechanism.Name{mechanism.Pacing}, able)
	for i, m := range mechanism.Known {
		if m.Name == "" || slices.Index(mechanism.Known.Names(), m.Name) != i {
			t.Errorf("row %d: name %q is empty or stands twice", i, m.Name)
		}
		if m.Probe == nil || m.Own == nil || m.LookaheadUs <= 0 {
			t.Errorf("%s: the row is not complete", m.Name)
			continue
		}
		if err := m.Probe(able); err != nil {
			t.Logf("NOT SHOWN that %s can be used on a host that has everything: %v", m.Name, err)
			continue
		}
		if l, err := host.Own(m.Name, "tr_1"); err != nil || l == nil {
			t.Errorf("%s: own sockets are held by %T, %v", m.Name, l, err)
		}
		if m.Foreign == nil {
			continue
		}
		if l, err := host.Foreign(m.Name, "tr_1"); err != nil || l == nil {
			t.Errorf("%s: foreign sockets are held by %T, %v", m.Name, l, err)
		}
	}
}

func TestTheTableHasTheMechanismsOfTheContract(t *testing.T) {
	for _, name := range mechanism.Known.Names() {
		if !brokerapi.AssignmentMechanism(name).Valid() {
			t.Errorf("the broker never asks for %q: its contract (Mechanism in broker/) does not name it", name)
		}
	}
	generated, err := os.ReadFile("../brokerapi/types.gen.go")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`AssignmentMechanism = "(\w+)"`).FindAllSubmatch(generated, -1)
	if len(named) == 0 {
		t.Fatal("no mechanism is found in the generated types")
	}
	for _, match := range named {
		if !slices.Contains(mechanism.Known.Names(), mechanism.Name(match[1])) {
			t.Errorf("the broker may ask for %q, and no row has it", match[1])
		}
	}
}

// slow is a mechanism that exists in this test alone.
type slow struct{ pacing.Limiter }

const slowName mechanism.Name = "slow"

func newSlow(mechanism.Means, string) pacing.Limiter { return slow{mechanism.NewPacing()} }

// What one row adds is probed, shown, chosen by preference and by name, and used; package mover sends by it in TestAMechanismIsOneRow.
func TestAMechanismIsOneRow(t *testing.T) {
	probed := 0
	usable := func(mechanism.Means) error { probed++; return nil }
	table := append(slices.Clone(mechanism.Known), mechanism.Mechanism{Name: slowName, Probe: usable, Own: newSlow, Foreign: newSlow, LookaheadUs: 7_000})
	host := table.Probe([]mechanism.Name{slowName, mechanism.Pacing}, mechanism.Means{})
	if probed != 1 || !slices.Contains(host.Reports(), mechanism.Report{Name: slowName, Available: true}) {
		t.Errorf("probed %d times, %+v", probed, host.Reports())
	}
	for _, asked := range []mechanism.Name{"", slowName} {
		for how, make := range map[string]func(mechanism.Name, string) (pacing.Limiter, error){"own": host.Own, "foreign": host.Foreign} {
			l, err := make(asked, "tr_1")
			if _, ok := l.(slow); !ok || err != nil {
				t.Errorf("%s, asked for %q: %T, %v", how, asked, l, err)
			}
		}
		if name, err := host.ChooseForeign(asked); name != slowName || err != nil {
			t.Errorf("asked for %q, a command is held by %q, %v", asked, name, err)
		}
	}
	if got := host.LookaheadUs(slowName); got != 7_000 {
		t.Errorf("lookahead %d µs", got)
	}
}

// Whatever rows a table has: what is reported as available makes a limiter of that name, and what is not makes none.
func TestNoMechanismIsUsableWithoutAnImplementation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table mechanism.Table
		for _, name := range []mechanism.Name{"a", "b", "c"} {
			row := mechanism.Mechanism{Name: name, LookaheadUs: 1}
			switch rapid.SampledFrom([]string{"usable", "not usable", "no probe"}).Draw(t, "probe") {
			case "usable":
				row.Probe = func(mechanism.Means) error { return nil }
			case "not usable":
				row.Probe = func(mechanism.Means) error { return errors.New("not here") }
			}
			implementation := func(mechanism.Means, string) pacing.Limiter { return named{name} }
			if rapid.Bool().Draw(t, "own") {
				row.Own = implementation
			}
			if rapid.Bool().Draw(t, "foreign") {
				row.Foreign = implementation
			}
			table = append(table, row)
		}
		host := table.Probe([]mechanism.Name{"a"}, mechanism.Means{})
		for i, r := range host.Reports() {
			if r.Name != table[i].Name || r.Available != (r.Reason == "") {
				t.Fatalf("row %d: %+v", i, r)
			}
			own, err := host.Own(r.Name, "tr_1")
			if r.Available != (err == nil) || (err == nil && own.(named).name != r.Name) {
				t.Fatalf("%+v makes %v, %v", r, own, err)
			}
			foreign, err := host.Foreign(r.Name, "tr_1")
			if (r.Available && table[i].Foreign != nil) != (err == nil) || (err == nil && foreign.(named).name != r.Name) {
				t.Fatalf("%+v makes %v, %v for sockets of others", r, foreign, err)
			}
		}
	})
}

type named struct{ name mechanism.Name }

func (named) Attach(pacing.Socket) error                     { return nil }
func (named) Detach(pacing.Socket)                           {}
func (named) SetRate(rateBps int64) (heldBps int64, _ error) { return rateBps, nil }
func (named) Balance(int64) error                            { return nil }
func (named) Close() error                                   { return nil }
