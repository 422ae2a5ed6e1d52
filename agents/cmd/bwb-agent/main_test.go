// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRates(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1Mbit": 1_000_000, "2.5Gbit": 2_500_000_000, "800k": 800_000, "100 Gbit/s": 100_000_000_000, "64": 64, "1mbps": 1_000_000,
	} {
		var r rate
		if err := r.Set(text); err != nil || r.bps != want {
			t.Errorf("%q: %d, %v", text, r.bps, err)
		}
	}
	for _, text := range []string{"", "-1", "fast", "1Xbit", "1e9", "99999Tbit"} {
		if err := new(rate).Set(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

func execute(args ...string) (string, error) {
	var out bytes.Buffer
	cmd := root()
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	err := cmd.Execute()
	return out.String(), err
}

func TestConfigurationFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "agent.toml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := runCommand()
	write("serve = \"/from/file\"\nfallback-rate = \"3Mbit\"\npeer-timeout = \"5s\"\ntls = true\n")
	if err := cmd.ParseFlags([]string{"--serve", "/from/flag"}); err != nil {
		t.Fatal(err)
	}
	if err := applyConfig(cmd.Flags(), file); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"serve": "/from/flag", "fallback-rate": "3000000", "peer-timeout": "5s", "tls": "true"} {
		if got := cmd.Flags().Lookup(name).Value.String(); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	for text, want := range map[string]string{"sevre = 1": `unknown key "sevre"`, "poll = \"soon\"": "poll", "serve = ": "config"} {
		write(text)
		if err := applyConfig(runCommand().Flags(), file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestMistakesAreExplained(t *testing.T) {
	t.Setenv("BWB_ENROLMENT_TOKEN", "")
	dir := t.TempDir()
	for _, c := range []struct{ want, args string }{
		{"no state folder", "run"},
		{"not enrolled yet", "run --state-dir " + dir},
		{"no enrolment token", "enrol --broker http://x:1 --state-dir " + dir},
		{"--advertise HOST:PORT", "enrol --broker http://x:1 --token-env HOME --state-dir " + dir},
		{"want http://HOST:PORT", "enrol --broker x --token-env HOME --advertise a:1 --state-dir " + dir},
		{"NOSUCH is not set", "enrol --broker http://x:1 --token-env NOSUCH --state-dir " + dir},
		{"not a rate", "run --fallback-rate fast"},
		{"no such state folder", "status --state-dir " + dir + "/none"},
	} {
		if _, err := execute(strings.Fields(c.args)...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.args, err, c.want)
		}
	}
}

func TestHelpTeaches(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"run", "--help"}, {"enrol", "--help"}, {"status", "--help"}} {
		out, err := execute(args...)
		if err != nil || !strings.Contains(out, "bwb-agent "+strings.TrimPrefix(args[0], "--help")) || !strings.Contains(out, "--state-dir") {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}
