// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

func TestMechanismNames(t *testing.T) {
	for text, want := range map[string]string{"pacing": "pacing", "htb, pacing": "htb,pacing"} {
		var m mechanisms
		if err := m.Set(text); err != nil || m.String() != want {
			t.Errorf("%q became %q, %v", text, m.String(), err)
		}
	}
	if got := flagText([]any{"htb", "pacing"}); got != "htb,pacing" {
		t.Errorf("a list of the configuration file became %q", got)
	}
	for _, text := range []string{"", "tbf", "pacing,,htb", "[]"} {
		if err := new(mechanisms).Set(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
