// SPDX-License-Identifier: Apache-2.0

package flows

import (
	"os"
	"strconv"
	"strings"
)

// readNumber is the first number on the line of a /proc file that begins with a name.
func readNumber(path, name string) (int, bool) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			if fields := strings.Fields(rest); len(fields) > 0 {
				number, err := strconv.Atoi(fields[0])
				return number, err == nil
			}
		}
	}
	return 0, false
}
