// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"

	"github.com/spf13/cobra"

	"bandwidthbroker/agents/internal/local"
	"bandwidthbroker/agents/internal/mechanism"
	"bandwidthbroker/agents/internal/wrap"
)

// exitCode ends the program with a command's own exit code; nothing more needs to be said.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

const shimName = "exec-shim"

func execCommand() *cobra.Command {
	var transfer, stateDir, ports, to string
	var choice wrap.Choice
	var quiet bool
	cmd := &cobra.Command{
		Use:   "exec --transfer ID --state-dir FOLDER [flags] -- COMMAND...",
		Short: "Run any command with its connections held to a booked rate",
		Long: `Waits until the transfer's booked time has come, runs the command, and holds all TCP connections of the command and of
whatever it starts, together, to the booked rate, step by step. It counts what the other ends have acknowledged and
reports that to the broker, through the agent that runs on this host. Usually ` + "`bwb run`" + ` books and calls it.

The transfer is one of mode wrapped, and this host is its source: what is paced is what leaves this host. A command that
fetches data (rsync HOST:file ., curl -O) is not slowed down by it: run it at the other end, as the sender.

The command sees nothing of it. Its connections are duplicated before they are made (seccomp user notification and
pidfd_getfd), and the kernel paces them. No root is needed. Two things are different for the command, though:
  - without root, programs that change the user (sudo, ping where it is setuid) lose that power: the kernel demands it
    (no_new_privs);
  - UDP and QUIC are not paced (rclone and curl use TCP unless told otherwise).
Connections to this host itself are left alone unless --loopback is given; --port and --to choose among the others, so
that a control connection does not take its share.

Its exit code is the command's own (128 + N when signal N ended it), 127 if there is no such command, 126 if it cannot be
run or the transfer cannot be. Signals are passed on. The first ctrl-C ends the command and what was sent is reported, the
second one kills. When the broker cancels the transfer the command gets TERM. When this process is killed, so is the
command, and the transfer has failed (supervisor_lost); when the agent is killed, the command goes on by what was booked.`,
		Example: `  bwb-agent exec --transfer tr_... --state-dir /var/lib/bwb -- rsync -a run7/ rsync://dtn-b/incoming/
  bwb-agent exec --transfer tr_... --state-dir ./a --port 9000 -- sh -c 'curl -T x http://dtn-b:9000/x & curl -T y http://dtn-b:9000/y; wait'`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if transfer == "" {
				return errors.New("no transfer given (--transfer ID); `bwb run` books one and calls this")
			}
			if stateDir == "" {
				return errors.New("no state folder given (--state-dir): that of the agent on this host")
			}
			if ports != "" {
				if choice.Ports, err = wrap.ParsePorts(ports); err != nil {
					return fmt.Errorf("--port: %w", err)
				}
			}
			if to != "" {
				if choice.To, err = wrap.ParseAddresses(to); err != nil {
					return fmt.Errorf("--to: %w", err)
				}
			}
			return supervise(cmd, transfer, stateDir, choice, quiet, args)
		},
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	flags.StringVar(&transfer, "transfer", "", "`ID` of a transfer of mode wrapped whose source is this host")
	flags.StringVar(&stateDir, "state-dir", os.Getenv("BWB_AGENT_STATE_DIR"), "state `folder` of the agent that runs on this host (BWB_AGENT_STATE_DIR)")
	flags.StringVar(&ports, "port", "", "pace only connections to these `ports`: 873 or 8000-8010,9000 (default: all)")
	flags.StringVar(&to, "to", "", "pace only connections to these `addresses`: 192.0.2.7 or 192.0.2.0/24 (default: all)")
	flags.BoolVar(&choice.Loopback, "loopback", false, "pace connections to this host itself as well")
	flags.BoolVarP(&quiet, "quiet", "q", false, "no status line on the terminal")
	return cmd
}

// supervise runs a command and becomes its exit code.
func supervise(cmd *cobra.Command, transfer, stateDir string, choice wrap.Choice, quiet bool, args []string) error {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, wrap.Forwarded...)
	defer signal.Stop(signals)
	// The context of the program ends with the first signal; here the command decides what that means.
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	client := local.NewClient(local.Path(stateDir), transfer)
	go func() {
		if err := client.Run(ctx); err != nil {
			cancel(err)
		}
	}()
	options := wrap.Options{
		Command: args, Shim: []string{"bwb-agent", shimName}, Choice: choice, Client: client, Signals: signals, Messages: cmd.ErrOrStderr(),
		Limiter: mechanism.NewPacing,
	}
	if !quiet && isTerminal(os.Stderr) {
		options.Status = os.Stderr
	}
	code, err := wrap.New(options).Run(ctx)
	if err != nil {
		fmt.Fprintln(cmd.ErrOrStderr(), "bwb-agent:", err)
	}
	if code != 0 {
		return exitCode(code)
	}
	return nil
}

func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// shimCommand is the first life of the command's process, and what is left of the supervisor when processes outlive the
// command. It is not meant to be called by hand.
func shimCommand() *cobra.Command {
	return &cobra.Command{
		Use: shimName, Hidden: true, DisableFlagParsing: true, Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if args[0] == wrap.AnswerOnly {
				wrap.Answerer()
				return nil
			}
			supervisor, err := strconv.Atoi(args[0])
			if err != nil || len(args) < 2 {
				return errors.New("this is a part of `bwb-agent exec`")
			}
			return exitCode(wrap.Shim(args[1:], supervisor))
		},
	}
}
