// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"testing"
	"time"

	"bandwidthbroker/agents/internal/datachannel"
)

// A byte alone is taken as it comes, at the beginning and after a flow: its acknowledgement, which a sender that warms up its
// window waits for, would otherwise be 40 ms late.
func TestSinglesAreTakenAtOnce(t *testing.T) {
	const size = chunkSize
	p := newPair(t, size)
	r := p.receiver()
	c, _, _, _ := p.dial()
	frame := make([]byte, datachannel.DataPrefix+size)
	datachannel.PutData(frame, 0, size)
	written := 0
	for _, n := range []int{1, 1, size / 2, 1, 1, 1, 2 * single, 1} {
		from := written
		if written == 0 {
			n += datachannel.DataPrefix
			from = -datachannel.DataPrefix
		}
		if _, err := c.conn.Write(frame[datachannel.DataPrefix+from : datachannel.DataPrefix+from+n]); err != nil {
			t.Fatal(err)
		}
		written = from + n
		for deadline := time.Now().Add(5 * time.Second); r.Progress().Bytes != int64(written); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d bytes were sent, the receiver has taken %d", written, r.Progress().Bytes)
			}
		}
	}
}
