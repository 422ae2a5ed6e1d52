// SPDX-License-Identifier: Apache-2.0

package pacing

import "testing"

// looks has a sender send at a rate for some time, looked at every 40 ms.
func looks(m *Meter, now, sent *int64, bps, heldBps, micros int64) {
	for end := *now + micros; *now < end; {
		*now += 40_000
		*sent += bps / 8 * 40_000 / 1_000_000
		m.See(*now, *sent, heldBps)
	}
}

func TestAMeterOfACommand(t *testing.T) {
	const held = 40_000_000
	m := NewMeter(CommandSampling)
	now, sent := int64(5_000_000), int64(0)
	steps := []struct {
		what                 string
		bps, heldBps, micros int64
		want                 int64
	}{
		{"after half a second nothing can be said", 20_000_000, held, 500_000, 0},
		{"after a second without a pause", 20_000_000, held, 1_000_000, 20_000_000},
		{"the newest counts, not the best", 8_000_000, held, 2_000_000, 8_000_000},
		{"a rate that changes by less than 5 % is the same", 8_000_000, held + held/21, 1_000_000, 8_000_000},
		{"another rate begins anew", 8_000_000, 2 * held, 40_000, 0},
		{"", 30_000_000, 2 * held, 1_100_000, 30_000_000},
		{"a command that thinks says nothing", 0, 2 * held, 40_000, 0},
	}
	for _, s := range steps {
		looks(m, &now, &sent, s.bps, s.heldBps, s.micros)
		if got := m.RateBps(); got != s.want {
			t.Errorf("%s: %d bit/s, want %d", s.what, got, s.want)
		}
	}
}

func TestAMeterOfAWriterKeepsTheBest(t *testing.T) {
	const held = 40_000_000
	m := NewMeter(WriterSampling)
	now, sent := int64(5_000_000), int64(0)
	looks(m, &now, &sent, 30_000_000, held, 1_200_000)
	if got := m.RateBps(); got < 29_000_000 || got > 30_000_000 {
		t.Errorf("%d bit/s", got)
	}
	was := m.RateBps()
	looks(m, &now, &sent, 0, held, 1_000_000)
	looks(m, &now, &sent, 10_000_000, held, 1_000_000)
	if got := m.RateBps(); got != was {
		t.Errorf("after a pause and a slow second: %d bit/s", got)
	}
}
