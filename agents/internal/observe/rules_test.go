// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"net/netip"
	"testing"

	"bandwidthbroker/agents/internal/failure"
	"bandwidthbroker/agents/internal/mover"
)

func TestWhatMayBeObserved(t *testing.T) {
	peer := []netip.Addr{netip.MustParseAddr("192.0.2.8")}
	const everything = "0.0.0.0/0,::/0"
	for _, c := range []struct {
		rules   string
		match   mover.Match
		allowed bool
	}{
		{DefaultRules, mover.Match{Address: "192.0.2.8", DestinationPorts: "5001-5010"}, true},
		{DefaultRules, mover.Match{Address: "::ffff:192.0.2.8", DestinationPorts: "5001"}, true},
		{DefaultRules, mover.Match{Address: "192.0.2.9", DestinationPorts: "5001-5010"}, false}, // somebody else
		{DefaultRules, mover.Match{Address: "192.0.2.8", DestinationPorts: "22"}, false},
		{DefaultRules, mover.Match{Address: "192.0.2.8", DestinationPorts: "1023-2000"}, false},
		{DefaultRules, mover.Match{Address: "192.0.2.8"}, false},                                // every port
		{DefaultRules, mover.Match{Address: "192.0.2.8", SourcePorts: "5001"}, false},           // to every port
		{DefaultRules, mover.Match{Address: "192.0.2.8", DestinationPorts: "7000-8000"}, false}, // what the agents move is among it
		{everything, mover.Match{Address: "192.0.2.8", DestinationPorts: "7411"}, false},
		{everything, mover.Match{Address: "192.0.2.8"}, false},
		{everything, mover.Match{Address: "192.0.2.9"}, true},
		{everything, mover.Match{Address: "2001:db8::1", SourcePorts: "443"}, true},
		{"198.51.100.0/24:5000-5100", mover.Match{Address: "198.51.100.7", DestinationPorts: "5000-5100"}, true},
		{"198.51.100.0/24:5000-5100", mover.Match{Address: "198.51.101.7", DestinationPorts: "5000-5100"}, false},
		{"198.51.100.0/24:5000-5100", mover.Match{Address: "192.0.2.8", DestinationPorts: "5000"}, false}, // not even the peer
		{"443>peer", mover.Match{Address: "192.0.2.8", SourcePorts: "443", DestinationPorts: "32768-60999"}, true},
		{"443>peer", mover.Match{Address: "192.0.2.8", SourcePorts: "443-444", DestinationPorts: "32768-60999"}, false},
		{"443>peer", mover.Match{Address: "192.0.2.8", DestinationPorts: "32768-60999"}, false},
		{"peer:5001,[2001:db8::/32]:5001", mover.Match{Address: "2001:db8::1", DestinationPorts: "5001"}, true},
		{"none", mover.Match{Address: "192.0.2.8", DestinationPorts: "5001"}, false},
	} {
		c.match.Protocol = "tcp"
		rules, err := ParseRules(c.rules)
		if err != nil {
			t.Fatalf("%s: %v", c.rules, err)
		}
		if again, err := ParseRules(rules.String()); err != nil || again.String() != rules.String() {
			t.Errorf("%s is written %s: %v", c.rules, rules, err)
		}
		aimed, err := aim(t.Context(), c.match, nil)
		if err != nil {
			t.Fatal(err)
		}
		fail := rules.permit(aimed, peer, 7411)
		if (fail == nil) != c.allowed || (fail != nil && fail.Code != failure.MatchRefused) {
			t.Errorf("%s, %+v: %v", c.rules, c.match, fail)
		}
	}
}

func TestRulesThatMakeNoSense(t *testing.T) {
	for _, text := range []string{"", "peer:", "peer:0", "peer:9-1", "nowhere", "192.0.2.0/33", ">peer", "[2001:db8::1", "[::1]5", "[::1]:", "peer,,peer", "none,peer"} {
		if rules, err := ParseRules(text); err == nil {
			t.Errorf("%q was read as %s", text, rules)
		}
	}
}
