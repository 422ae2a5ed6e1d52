// SPDX-License-Identifier: Apache-2.0

package emulate

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"

	"bandwidthbroker/agents/internal/gateway"
)

// TraceHeader names the columns. time_us is the begin of a tick of 10 ms, in µs since the Unix epoch; bytes are wire bytes;
// forwarded counts in the tick in which a packet was due at the link's far end; offered in the one in which it was read, and unread_max_us is by how
// much earlier a packet of that tick may have come. The last two columns are the direction's, not the flow's.
const TraceHeader = "time_us,direction,protocol,source,source_port,destination,destination_port," +
	"offered_bytes,forwarded_bytes,dropped_bytes,queue_max_bytes,unread_max_us\n"

// trace collects rows of both directions and writes them apart from the threads that carry packets.
type trace struct {
	file   *os.File
	epoch  int64 // µs since the Unix epoch at ns 0
	mu     sync.Mutex
	text   []byte
	spare  []byte
	failed error
}

func newTrace(path string, epoch int64) (*trace, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("--trace: %w", err)
	}
	return &trace{file: file, epoch: epoch, text: []byte(TraceHeader)}, nil
}

// writer is what the ticks of a direction are handed to.
func (t *trace) writer(direction string, f *flows) func(*window) {
	var names []string
	return func(w *window) {
		for i := len(names); i < len(f.all); i++ {
			names = append(names, ","+direction+","+columns(f.all[i])+",")
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, flow := range w.touched {
			r := w.rows[flow]
			t.text = strconv.AppendInt(t.text, t.epoch+w.number*(tick/1000), 10)
			t.text = append(t.text, names[flow]...)
			for _, value := range [...]int64{r.offered, r.forwarded, r.dropped} {
				t.text = append(strconv.AppendInt(t.text, value, 10), ',')
			}
			t.text = append(strconv.AppendInt(t.text, w.queueMax, 10), ',')
			t.text = append(strconv.AppendInt(t.text, w.unreadMax/1000, 10), '\n')
		}
	}
}

func columns(f gateway.Flow) string {
	if !f.Source.IsValid() {
		return "other,,,,"
	}
	protocol := strconv.Itoa(int(f.Protocol))
	switch f.Protocol {
	case gateway.ProtocolTCP:
		protocol = "tcp"
	case gateway.ProtocolUDP:
		protocol = "udp"
	}
	return fmt.Sprintf("%s,%s,%d,%s,%d", protocol, f.Source, f.SourcePort, f.Destination, f.DestinationPort)
}

// save writes what has come together. A full disk ends the trace, not the link: the error shows in the statistics.
func (t *trace) save() {
	t.mu.Lock()
	text := t.text
	t.text = t.spare[:0]
	t.mu.Unlock()
	var err error
	if t.error() == nil {
		_, err = t.file.Write(text)
	}
	t.mu.Lock()
	t.spare = text
	t.failed = errors.Join(t.failed, err)
	t.mu.Unlock()
}

func (t *trace) error() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed
}

func (t *trace) close() error {
	t.save()
	return errors.Join(t.error(), t.file.Close())
}
