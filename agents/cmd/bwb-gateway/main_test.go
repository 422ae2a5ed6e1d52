// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
)

func execute(args ...string) (string, error) {
	var out bytes.Buffer
	cmd := root()
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	err := cmd.Execute()
	return out.String(), err
}

func TestQuantities(t *testing.T) {
	for text, want := range map[string]int64{"500Mbit": 500_000_000, "2.5Gbit/s": 2_500_000_000, "800k": 800_000, "64": 64, "1mbps": 1_000_000} {
		if q := rate(0); q.Set(text) != nil || q.value != want {
			t.Errorf("%q is %d", text, q.value)
		}
	}
	for text, want := range map[string]int64{"1MB": 1_000_000, "100k": 100_000, "65536": 65536, "0": 0, "1.5 MB": 1_500_000} {
		if q := size(0); q.Set(text) != nil || q.value != want {
			t.Errorf("%q is %d", text, q.value)
		}
	}
	for text, want := range map[string]int64{"0.001": 1_000_000, "0.1%": 1_000_000, "0": 0, "1": 1_000_000_000, "100%": 1_000_000_000} {
		if s := new(share); s.Set(text) != nil || s.parts != want {
			t.Errorf("%q is %d", text, s.parts)
		}
	}
	for _, text := range []string{"", "-1", "fast", "1Xbit", "1e9", "0.3", "99999999999999999999"} {
		if q := rate(0); q.Set(text) == nil {
			t.Errorf("%q was taken for a rate", text)
		}
	}
	for _, text := range []string{"", "-1", "2", "101%", "NaN", "some"} {
		if new(share).Set(text) == nil {
			t.Errorf("%q was taken for a share", text)
		}
	}
}

func TestMistakesAreExplained(t *testing.T) {
	for _, c := range []struct{ want, args string }{
		{"capacity is 0", "--capacity 0"},
		{"no rate: write 500Mbit", "--capacity fast"},
		{"delay is -1000000", "--delay -1ms"},
		{"buffer is 9", "--buffer 9000GB"},
		{"loss is 2", "--loss 2"},
		{"framing is 5000", "--framing 5000"},
		{"MTU is 20", "--mtu 20"},
		{`realtime is "maybe"`, "--realtime=maybe"},
		{"network namespace nosuch", "--left nosuch"},
		{"/nosuch/trace", "--trace /nosuch/trace"},
		{"unknown command", "emulate more"},
	} {
		_, err := execute(append([]string{"emulate"}, strings.Fields(c.args)...)...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.args, err, c.want)
		}
	}
}

func TestHelpTeaches(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"emulate", "--help"}} {
		out, err := execute(args...)
		if err != nil || !strings.Contains(out, "bwb-gateway") || !strings.Contains(out, "emulate") {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
	out, _ := execute("emulate", "--help")
	for _, taught := range []string{"--framing 38", `{"op":"cut"}`, "lateness_us", "bwb-gateway emulate --left west"} {
		if !strings.Contains(out, taught) {
			t.Errorf("--help does not speak of %s", taught)
		}
	}
}
