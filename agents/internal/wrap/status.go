// SPDX-License-Identifier: Apache-2.0

package wrap

import (
	"fmt"
	"strings"
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
