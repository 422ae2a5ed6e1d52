// SPDX-License-Identifier: Apache-2.0

// Command bwb-gateway stands between networks. As yet it emulates a bottleneck for the laboratory.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set by the linker.
var version = "dev"

// Threads that carry packets must never wait for one that does something else: for its place in Go's scheduler (there are two of
// them, and a few more goroutines), or for the collector (the heap is small, and nearly nothing is allocated).
const (
	places    = 16
	gcPercent = 1000
)

func main() {
	runtime.GOMAXPROCS(places)
	debug.SetGCPercent(gcPercent)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends it at once; the devices go with the process either way.
	context.AfterFunc(ctx, stop)
	if err := root().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bwb-gateway:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has run
	}
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "bwb-gateway",
		Short:         "Carries packets between two networks the way a link would",
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version,
	}
	cmd.AddCommand(emulateCommand())
	return cmd
}
