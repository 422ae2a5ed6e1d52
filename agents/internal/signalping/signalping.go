// SPDX-License-Identifier: Apache-2.0

// Package signalping measures what a start signal costs between two hosts, as RR-6205 does for its figures 4 and 5: "we
// measure the time required to perform two signalizations (one in each direction) between two machines and then divide this
// time by two". Socket, frames and state machines are those of the agents.
package signalping

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"bandwidthbroker/agents/internal/signal"
	"bandwidthbroker/agents/internal/signalport"
)

// timeout of the pairs: long enough for any path, so that only a GO ends the waiting.
const timeout int64 = 60_000_000 // µs

// There and back are two pairs: ping-N then echo-N, and echo-N then pong-N, where N begins with the name of a run.
const there, middle, back = "ping-", "echo-", "pong-"

// Options of a measurement.
type Options struct {
	Listen, Peer string
	Key          signal.Key
	Count        int
	Pause        time.Duration // between two handshakes
	Patience     time.Duration // give one up after so long
	Log          *slog.Logger
}

// Result is the distribution of the time of one handshake.
type Result struct {
	Count       int     `json:"count"`
	Lost        int     `json:"lost"`
	MeanUs      float64 `json:"mean_us"`
	DeviationUs float64 `json:"deviation_us"`
	MinUs       float64 `json:"min_us"`
	P50Us       float64 `json:"p50_us"`
	P90Us       float64 `json:"p90_us"`
	P99Us       float64 `json:"p99_us"`
	MaxUs       float64 `json:"max_us"`
	RoundTripUs int64   `json:"round_trip_us"`
	// SamplesUs are all, in order.
	SamplesUs []float64 `json:"samples_us"`
}

// Ping measures. It fails when nobody answers at all.
func Ping(ctx context.Context, opt Options) (Result, error) {
	port := signalport.Open(opt.Listen, opt.Log)
	defer port.Close()
	if err := port.Err(); err != nil {
		return Result{}, fmt.Errorf("--listen: %w", err)
	}
	var run [4]byte
	_, _ = rand.Read(run[:])
	var result Result
	for n := range opt.Count {
		took, trip, ok := once(ctx, port, opt, fmt.Sprintf("%s-%d", hex.EncodeToString(run[:]), n))
		if ctx.Err() != nil {
			return Result{}, ctx.Err()
		}
		if !ok {
			result.Lost++
			if result.Lost == 3 && len(result.SamplesUs) == 0 {
				return Result{}, fmt.Errorf("%s does not answer: is `bwb-agent signal-echo` running there, with the same key?", opt.Peer)
			}
			continue
		}
		result.SamplesUs = append(result.SamplesUs, float64(took.Nanoseconds())/2000)
		if result.RoundTripUs == 0 || trip < result.RoundTripUs {
			result.RoundTripUs = trip
		}
		sleep(ctx, opt.Pause)
	}
	result.summarise()
	return result, nil
}

// once is one handshake there and one back.
func once(ctx context.Context, port *signalport.Port, opt Options, name string) (took time.Duration, trip int64, ok bool) {
	arrived := make(chan struct{}, 1)
	returning := port.Succeed(config(middle+name, back+name), opt.Key, func() {
		select {
		case arrived <- struct{}{}:
		default:
		}
	})
	defer returning.Leave()
	returning.Plan(port.Now()+timeout, 0)
	begin := time.Now()
	going := port.Precede(precede(there+name, middle+name), opt.Key, opt.Peer)
	defer going.Leave()
	going.Release(0, signal.Done)
	patience := time.NewTimer(opt.Patience)
	defer patience.Stop()
	for {
		select {
		case <-arrived:
			if returning.Look().Verdict == signal.Signalled {
				return time.Since(begin), going.Look().RoundTrip, true
			}
		case <-patience.C:
			return 0, 0, false
		case <-ctx.Done():
			return 0, 0, false
		}
	}
}

// Echo answers until it is told to end.
func Echo(ctx context.Context, listen string, key signal.Key, log *slog.Logger) error {
	port := signalport.OpenFor(listen, log, func(port *signalport.Port, pair signal.Pair, from string) {
		name, ours := strings.CutPrefix(pair.Predecessor, there)
		if !ours || pair.Successor != middle+name {
			return
		}
		var waiting *signalport.Successor
		waiting = port.Succeed(signal.SuccessorConfig{Pair: pair, Nonce: nonce(), Timeout: timeout}, key, func() {
			go func() { // not in the middle of the call that the news came by
				if waiting.Look().Verdict != signal.Signalled {
					return
				}
				port.Precede(precede(middle+name, back+name), key, from).Release(0, signal.Done)
				waiting.Leave()
			}()
		})
		waiting.Plan(port.Now()+timeout, 0)
	})
	defer port.Close()
	if err := port.Err(); err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	<-ctx.Done()
	if err := ctx.Err(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func config(predecessor, successor string) signal.SuccessorConfig {
	return signal.SuccessorConfig{Pair: signal.Pair{Predecessor: predecessor, Successor: successor}, Nonce: nonce(), Timeout: timeout}
}

func precede(predecessor, successor string) signal.PredecessorConfig {
	return signal.PredecessorConfig{Pair: signal.Pair{Predecessor: predecessor, Successor: successor}, Nonce: nonce(), Timeout: timeout}
}

func nonce() (n signal.Nonce) {
	_, _ = rand.Read(n[:]) // does not fail
	return n
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func (r *Result) summarise() {
	r.Count = len(r.SamplesUs)
	if r.Count == 0 {
		return
	}
	sorted := slices.Sorted(slices.Values(r.SamplesUs))
	at := func(share float64) float64 { return sorted[min(int(share*float64(r.Count)), r.Count-1)] }
	r.MinUs, r.P50Us, r.P90Us, r.P99Us, r.MaxUs = sorted[0], at(0.5), at(0.9), at(0.99), sorted[r.Count-1]
	for _, s := range sorted {
		r.MeanUs += s / float64(r.Count)
	}
	for _, s := range sorted {
		r.DeviationUs += (s - r.MeanUs) * (s - r.MeanUs) / float64(r.Count)
	}
	r.DeviationUs = math.Sqrt(r.DeviationUs)
}
