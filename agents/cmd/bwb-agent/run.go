// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"bandwidthbroker/agents/internal/agent"
	"bandwidthbroker/agents/internal/agentstate"
	"bandwidthbroker/agents/internal/mechanism"
	"bandwidthbroker/agents/internal/observe"
)

func runCommand() *cobra.Command {
	var f enrolFlags
	var cfg agent.Config
	var logLevel string
	var logJSON bool
	fallback := rate{-1}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the agent",
		Long: `Runs until it gets SIGINT or SIGTERM. Transfers that are under way then go on where they were when the agent runs
again, and so they do after kill -9 or a power loss.

Files are sent from the --serve folder and received into the --receive folder; nothing outside of them is touched. An
agent without one of them does not send, or does not receive. When the broker is gone, transfers go on to the end of
what was booked; the rest then goes at the fallback rate.

If the host is not enrolled yet and BWB_ENROLMENT_TOKEN (or --token-file, --token-env) and --broker are given, it
enrols first.`,
		Example: `  bwb-agent run --state-dir /var/lib/bwb --serve /data/out --receive /data/in
  bwb-agent run --config /etc/bwb-agent.toml --log-level debug
  bwb-agent run --state-dir ./a --serve ./out --fallback-rate 1Mbit --trace ./trace.csv

A configuration file has the flags as keys:
  state-dir = "/var/lib/bwb"
  serve = "/data/out"
  receive = "/data/in"
  fallback-rate = "1Mbit"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := logger(cmd.ErrOrStderr(), logLevel, logJSON)
			if err != nil {
				return err
			}
			slog.SetDefault(log)
			state, err := agentstate.Open(f.stateDir)
			if err != nil {
				return err
			}
			if err := state.Lock(); err != nil {
				return err
			}
			defer state.Unlock()
			c, found, err := state.Credentials()
			if err != nil {
				return err
			}
			token, err := enrolmentToken(f.tokenFile, f.tokenEnv)
			if err != nil && !found {
				return err
			}
			if !found {
				if token == "" {
					return errors.New("not enrolled yet: run `bwb-agent enrol`, or give --broker and BWB_ENROLMENT_TOKEN")
				}
				if c, err = f.enrol(cmd.Context(), token, false, state); err != nil {
					return err
				}
				log.Info("enrolled", "host", c.Host, "node", c.Node)
			}
			cfg.Version, cfg.Log, cfg.FallbackBps = version, log, fallback.bps
			cfg.Listen, cfg.Advertise = first(f.listen, c.Listen, defaultListen), first(f.advertise, c.Advertise)
			cfg.TLS = c.TLS
			if cmd.Flags().Changed("tls") {
				cfg.TLS = f.tls
			}
			if cfg.ServeDir == "" && cfg.ReceiveDir == "" {
				log.Warn("neither --serve nor --receive: this agent can move nothing")
			}
			return agent.Run(cmd.Context(), cfg, state)
		},
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&cfg.ServeDir, "serve", "", "`folder` that files are sent from")
	flags.StringVar(&cfg.ReceiveDir, "receive", "", "`folder` that files are received into")
	flags.Var(&fallback, "fallback-rate", "for what remains after the end of a booking; 0 stops (default: what the broker says)")
	flags.DurationVar(&cfg.PeerTimeout, "peer-timeout", time.Minute, "give a transfer up when its receiver made no progress for so long")
	flags.DurationVar(&cfg.Poll, "poll", 15*time.Second, "ask for assignments this often even if the broker's stream says nothing")
	flags.DurationVar(&cfg.GuardLimit, "guard-limit", 10*time.Millisecond, "most that booked steps are kept away from for the clock's error")
	flags.StringVar(&cfg.LocalGroup, "local-group", "", "`group` whose members may have their commands paced (bwb run); default: this user alone")
	flags.Var((*mechanisms)(&cfg.Mechanisms), "mechanism",
		"rate `mechanisms` for transfers that leave it open, the preferred first: "+mechanism.JoinNames(mechanism.Known.Names())+" (default pacing)")
	cfg.Observe, _ = observe.ParseRules(observe.DefaultRules)
	flags.Var((*observed)(&cfg.Observe), "observe",
		"packets that observed transfers may be made of, as [PORTS>]ADDRESS[:PORTS], several with commas: ADDRESS is peer, an IP address or a prefix; none: nothing")
	flags.StringVar(&cfg.TraceFile, "trace", "", "append time_us,transfer,bytes_sent_acked,applied_rate to this CSV `file` every 100 ms")
	flags.StringVar(&logLevel, "log-level", "info", "debug, info, warn or error")
	flags.BoolVar(&logJSON, "log-json", false, "log as JSON lines")
	return withConfig(cmd)
}

// first is the first that is given.
func first(choices ...string) string {
	for _, c := range choices {
		if c != "" {
			return c
		}
	}
	return ""
}
