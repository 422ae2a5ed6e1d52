// SPDX-License-Identifier: Apache-2.0

package wrap

import (
	"fmt"
	"strings"
	"time"
)

const statusEvery int64 = 500_000 // µs

func (s *Supervisor) warn(format string, values ...any) {
	text := fmt.Sprintf(format, values...)
	if !s.warned[text] {
		s.warned[text] = true
		s.leaveLine()
		fmt.Fprintln(s.Messages, "bwb-agent: "+text)
	}
}

// awaits is what there is to say before the start, which is booked in so many µs.
func (s *Supervisor) awaits(left int64) string {
	switch {
	case s.orders.Paused:
		return "paused"
	case s.orders.Wait && left <= 0:
		return "waits for the end of " + s.orders.After
	}
	text := "starts in " + (time.Duration(max(0, left)) * time.Microsecond).Round(time.Second).String()
	if s.orders.Wait {
		text += ", when " + s.orders.After + " has ended"
	}
	return text
}

// show keeps the status line up to date.
func (s *Supervisor) show(now int64, instead string) {
	if s.Status == nil || (now-s.shown < statusEvery && instead == "") {
		return
	}
	s.shown = now
	text := instead
	if text == "" {
		text = fmt.Sprintf("%s of %s, %s (booked %s), %d connections", size(s.acked()), size(s.orders.Volume), rateText(s.rate()),
			rateText(s.plan.RateAt(now)), len(s.streams))
	}
	if !s.Client.Connected() {
		text += ", agent away"
	}
	s.wide = max(s.wide, len(text))
	fmt.Fprintf(s.Status, "\r%s%s", text, strings.Repeat(" ", s.wide-len(text)))
}

func (s *Supervisor) leaveLine() {
	if s.Status != nil && s.wide > 0 {
		fmt.Fprintln(s.Status)
		s.wide = 0
	}
}
