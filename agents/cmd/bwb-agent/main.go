// SPDX-License-Identifier: Apache-2.0

// Command bwb-agent is the light agent of the bandwidth broker: one on each transfer host. It opens connections to the
// broker only, and to other agents for the data itself.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set by the linker.
var version = "dev"

// An agent shares its host with what the host is for. The heap holds a few buffers per transfer; this makes the
// collector run often enough to stay near 20 MB in all, and costs nothing measurable.
const (
	memoryLimit = 12 << 20
	gcPercent   = 50
)

func main() {
	debug.SetMemoryLimit(memoryLimit)
	debug.SetGCPercent(gcPercent)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the agent at once, as if it were killed: it is built to resume from that too.
	context.AfterFunc(ctx, stop)
	if err := root().ExecuteContext(ctx); err != nil {
		var code exitCode
		if errors.As(err, &code) {
			stop()
			os.Exit(int(code)) //nolint:gocritic // stop has run
		}
		fmt.Fprintln(os.Stderr, "bwb-agent:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has run
	}
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bwb-agent",
		Short: "Moves files between hosts at the rates that a bandwidth broker has booked",
		Long: `bwb-agent runs on each transfer host. It learns from the broker which files to send or receive, when, and at which
rate; paces its connections to exactly that; resumes after a crash, a broken network or a restart; and reports what
is true.

First enrol the host with a one-time token from the broker, then run the agent:

  bwb-agent enrol --broker https://broker:7410 --token-file token --state-dir /var/lib/bwb --advertise dtn-a:7411
  bwb-agent run --state-dir /var/lib/bwb --serve /data/out --receive /data/in

Everything it remembers is in the state folder. Its log goes to standard error.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version,
	}
	cmd.AddCommand(enrolCommand(), runCommand(), execCommand(), shimCommand(), statusCommand(), doctorCommand(), signalEchoCommand(), signalPingCommand(), versionCommand())
	return cmd
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		Run:   func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), version) },
	}
}
