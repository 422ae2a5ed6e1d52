// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"io"
)

// Write shows findings to people: one line each, and below it what is wanted and how to get it.
func Write(w io.Writer, findings []Finding) error {
	width := 0
	for _, f := range findings {
		width = max(width, len(f.What))
	}
	for _, f := range findings {
		if _, err := fmt.Fprintf(w, "%-4s  %-*s  %s\n", f.State, width, f.What, f.Found); err != nil {
			return err
		}
		for _, more := range []struct{ word, text string }{{"wanted", f.Wanted}, {"change", f.Change}} {
			if more.text != "" {
				fmt.Fprintf(w, "      %-*s  %s: %s\n", width, "", more.word, more.text)
			}
		}
	}
	verdict := "nothing to do"
	if n := ToDo(findings); n > 0 {
		verdict = fmt.Sprintf("%d to do", n)
	}
	_, err := fmt.Fprintln(w, verdict)
	return err
}
