// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"bandwidthbroker/agents/internal/agentstate"
	"bandwidthbroker/agents/internal/brokerclient"
	"bandwidthbroker/agents/internal/doctor"
)

// brokerPatience is how long an answer of the broker is waited for.
const brokerPatience = 5 * time.Second

func doctorCommand() *cobra.Command {
	var stateDir string
	var asJSON bool
	var receive string
	var devices []string
	var fastest rate
	var rtt time.Duration
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what of this host's configuration keeps transfers from their rates",
		Long: `Looks at the network devices, the settings of TCP, the clock, the disk, and what else transfers depend on, and says
what was found, what is wanted and how to change it. It changes nothing.

Lines that begin with todo make the exit code 1; note is good to know. Run it as the user that the agent runs as: some
answers depend on privileges.`,
		Example: `  bwb-agent doctor --state-dir /var/lib/bwb --receive /data/in
  bwb-agent doctor --rate 100Gbit --rtt 150ms --device eth2 --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if rtt <= 0 {
				return fmt.Errorf("--rtt %s: want a time above 0", rtt)
			}
			host, closed, err := doctor.ThisHost()
			if err != nil {
				return err
			}
			defer closed()
			host.Devices, host.RateBps, host.RTT, host.Receive = devices, fastest.bps, rtt, receive
			if host.Broker, err = askBroker(cmd.Context(), stateDir); err != nil {
				return err
			}
			findings := doctor.Examine(host)
			if asJSON {
				out := json.NewEncoder(cmd.OutOrStdout())
				out.SetIndent("", "  ")
				err = out.Encode(map[string]any{"findings": findings, "todo": doctor.ToDo(findings)})
			} else {
				err = doctor.Write(cmd.OutOrStdout(), findings)
			}
			if err == nil && doctor.ToDo(findings) > 0 {
				err = exitCode(1)
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&stateDir, "state-dir", "", "the agent's state `folder`, to ask its broker")
	flags.StringVar(&receive, "receive", "", "`folder` that files are received into")
	flags.StringSliceVar(&devices, "device", nil, "network `device` that data goes by, several with commas (default: the physical ones)")
	flags.Var(&fastest, "rate", "of the fastest transfer (default: what the fastest device can)")
	flags.DurationVar(&rtt, "rtt", 100*time.Millisecond, "round trip to the farthest peer")
	flags.BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

// askBroker returns how to ask the broker that a state folder is enrolled with; nil when it is not.
func askBroker(ctx context.Context, stateDir string) (func() error, error) {
	if stateDir == "" {
		return nil, nil
	}
	if _, err := os.Stat(stateDir); err != nil {
		return nil, errors.New("no such state folder (--state-dir)")
	}
	state, err := agentstate.Open(stateDir)
	if err != nil {
		return nil, err
	}
	c, found, err := state.Credentials()
	if err != nil || !found {
		return nil, err
	}
	client, err := brokerclient.New(brokerclient.Options{Broker: c.Broker, Token: c.AgentToken, CAFile: c.CAFile, Local: time.Now})
	if err != nil {
		return nil, err
	}
	return func() error {
		ctx, cancel := context.WithTimeout(ctx, brokerPatience)
		defer cancel()
		_, _, _, err := client.Assignments(ctx, c.Host, "")
		return err
	}, nil
}
