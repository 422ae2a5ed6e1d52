// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bandwidthbroker/agents/internal/signal"
	"bandwidthbroker/agents/internal/signalping"
)

// signalFlags are what both ends of a measurement need.
type signalFlags struct {
	listen, keyFile string
}

func (f *signalFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.listen, "listen", "0.0.0.0:7412", "UDP `address` of this end")
	cmd.Flags().StringVar(&f.keyFile, "key-file", "", "`file` with the key of both ends, 64 hex digits (default: the variable BWB_SIGNAL_KEY)")
}

// key is read from where other users of the host cannot see it.
func (f *signalFlags) key() (key signal.Key, err error) {
	text := os.Getenv("BWB_SIGNAL_KEY")
	if f.keyFile != "" {
		raw, err := os.ReadFile(f.keyFile)
		if err != nil {
			return key, fmt.Errorf("--key-file: %w", err)
		}
		text = string(raw)
	}
	raw, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(raw) != len(key) {
		return key, errors.New("BWB_SIGNAL_KEY or --key-file must give the same 64 hex digits at both ends (`openssl rand -hex 32` makes some)")
	}
	return signal.Key(raw), nil
}

func signalEchoCommand() *cobra.Command {
	var f signalFlags
	cmd := &cobra.Command{
		Use:   "signal-echo",
		Short: "Answer start signals, for signal-ping on another host to measure",
		Long: `Runs until it gets SIGINT or SIGTERM. Each start signal that comes is answered by one in the other direction, over the
same socket, frames and state machines as between agents. It needs no broker and no state folder.`,
		Example: `  BWB_SIGNAL_KEY=... bwb-agent signal-echo --listen 192.0.2.8:7412`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			key, err := f.key()
			if err != nil {
				return err
			}
			return signalping.Echo(cmd.Context(), f.listen, key, slog.Default())
		},
	}
	f.add(cmd)
	return cmd
}

func signalPingCommand() *cobra.Command {
	var f signalFlags
	var count int
	var pause, patience time.Duration
	cmd := &cobra.Command{
		Use:   "signal-ping HOST:PORT",
		Short: "Measure what a start signal costs between this host and one that runs signal-echo",
		Long: `Does what RR-6205 does for its figures 4 and 5: one whole three-way handshake (HOLD, HELD, GO) to the other host and one back,
and half of the time that both take together. That is 1.5 round trips and the processing. One line of JSON:

  count, lost            handshakes measured, and given up
  mean_us, min_us, p50_us, p90_us, p99_us, max_us, deviation_us
  round_trip_us          the smallest HOLD to HELD
  samples_us             all of them, in order
`,
		Example: `  BWB_SIGNAL_KEY=... bwb-agent signal-ping 192.0.2.8:7412 --count 1000`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := f.key()
			if err != nil {
				return err
			}
			result, err := signalping.Ping(cmd.Context(), signalping.Options{
				Listen: f.listen, Peer: args[0], Key: key, Count: count, Pause: pause, Patience: patience, Log: slog.Default(),
			})
			if err != nil {
				return err
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(result)
		},
	}
	f.add(cmd)
	cmd.Flags().IntVar(&count, "count", 1000, "how many handshakes each way")
	cmd.Flags().DurationVar(&pause, "pause", 2*time.Millisecond, "between two of them")
	cmd.Flags().DurationVar(&patience, "patience", 2*time.Second, "give one up after so long")
	return cmd
}
