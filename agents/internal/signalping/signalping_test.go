// SPDX-License-Identifier: Apache-2.0

package signalping

import (
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"bandwidthbroker/agents/internal/signal"
)

var silent = slog.New(slog.NewTextHandler(io.Discard, nil))

func freeAddress(t *testing.T) string {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.LocalAddr().String()
}

func options(peer string, key signal.Key) Options {
	return Options{Listen: "127.0.0.1:0", Peer: peer, Key: key, Count: 20, Patience: 5 * time.Second, Log: silent}
}

func TestTwentyHandshakes(t *testing.T) {
	address, key := freeAddress(t), signal.Key{7}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Echo(ctx, address, key, silent) }()
	r, err := Ping(t.Context(), options(address, key))
	if err != nil {
		t.Fatal(err)
	}
	if r.Count != 20 || r.Lost != 0 || len(r.SamplesUs) != 20 {
		t.Errorf("%+v", r)
	}
	if !(0 < r.MinUs && r.MinUs <= r.P50Us && r.P50Us <= r.P99Us && r.P99Us <= r.MaxUs && r.MinUs <= r.MeanUs && r.MeanUs <= r.MaxUs) {
		t.Errorf("%+v", r)
	}
	if r.RoundTripUs <= 0 {
		t.Errorf("round trip %d us", r.RoundTripUs)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestNobodyAnswers(t *testing.T) {
	opt := options(freeAddress(t), signal.Key{7})
	opt.Patience = 20 * time.Millisecond
	if _, err := Ping(t.Context(), opt); err == nil || !strings.Contains(err.Error(), "signal-echo") {
		t.Errorf("error %v", err)
	}
}
