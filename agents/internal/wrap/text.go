// SPDX-License-Identifier: Apache-2.0

package wrap

import "fmt"

// size and rateText are for people: 1.5 GB, 400 Mb/s.
func size(bytes int64) string   { return scaled(bytes) + "B" }
func rateText(bps int64) string { return scaled(bps) + "b/s" }

func scaled(n int64) string {
	value := float64(n)
	for _, prefix := range []string{" ", " k", " M", " G"} {
		if value < 1000 {
			return fmt.Sprintf("%.4g%s", value, prefix)
		}
		value /= 1000
	}
	return fmt.Sprintf("%.4g T", value)
}
