// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"time"

	"bandwidthbroker/agents/internal/mover"
)

const traceEvery = 100 * time.Millisecond

// trace writes what leaves this host, for tests and for operators who want to see the pace: broker time, transfer,
// bytes of the file that the peer's kernel has acknowledged, and the rate asked of ours.
func (a *Agent) trace(ctx context.Context) {
	file, err := os.OpenFile(a.cfg.TraceFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		a.log.Error("--trace", "error", err)
		return
	}
	defer file.Close()
	out := bufio.NewWriter(file)
	defer out.Flush()
	if info, err := file.Stat(); err == nil && info.Size() == 0 {
		fmt.Fprintln(out, "time_us,transfer,bytes_sent_acked,applied_rate")
	}
	ticker := time.NewTicker(traceEvery)
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		a.mu.Lock()
		for id, t := range a.transfers {
			if s, sends := t.mover.(*mover.Sender); sends {
				if acked, applied, ok := s.Trace(); ok {
					fmt.Fprintf(out, "%d,%s,%d,%d\n", a.clock.Now(), id, acked, applied)
				}
			}
		}
		a.mu.Unlock()
		if n%10 == 0 {
			_ = out.Flush()
		}
	}
}
