// SPDX-License-Identifier: Apache-2.0

package doctor

import "fmt"

// A folder with less than either is nearly full.
const (
	minFree  = 10 << 30
	minShare = 0.05
)

func (h Host) disk() []Finding {
	if h.Receive == "" {
		return nil
	}
	free, size, err := h.Free(h.Receive)
	if err != nil {
		return []Finding{{Todo, "receive folder", err.Error(), "a folder", "create " + h.Receive + ", or give another --receive"}}
	}
	const gigabyte = 1e9
	f := Finding{State: OK, What: "receive folder", Found: fmt.Sprintf("%.0f of %.0f GB free", float64(free)/gigabyte, float64(size)/gigabyte)}
	if free < minFree || float64(free) < minShare*float64(size) {
		f.State, f.Wanted, f.Change = Todo, "room for what comes: a transfer that finds none fails with disk_full", "make room in "+h.Receive
	}
	return []Finding{f}
}
