// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"bandwidthbroker/agents/internal/agent"
	"bandwidthbroker/agents/internal/agentstate"
)

// enrolFlags are shared by enrol and by run, which enrols first where that has not been done.
type enrolFlags struct {
	broker, caFile, tokenFile, tokenEnv string
	listen, advertise, stateDir         string
	tls                                 bool
}

func (f *enrolFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.broker, "broker", "", "`URL` of the broker, http://HOST:PORT or https://HOST:PORT")
	flags.StringVar(&f.caFile, "ca-file", "", "PEM `file` of the authorities that vouch for an https broker (default: the system's)")
	flags.StringVar(&f.tokenFile, "token-file", "", "`file` with the one-time enrolment token, - for standard input")
	flags.StringVar(&f.tokenEnv, "token-env", "", "`NAME` of the environment variable with the token (BWB_ENROLMENT_TOKEN is read anyway)")
	flags.StringVar(&f.stateDir, "state-dir", "", "`folder` for everything the agent remembers (made with mode 0700)")
	flags.StringVar(&f.listen, "listen", "", "`ADDR:PORT` to listen on for data (default what was enrolled with, else "+defaultListen+")")
	flags.StringVar(&f.advertise, "advertise", "", "`HOST:PORT` at which other agents reach the listener (default: --listen)")
	flags.BoolVar(&f.tls, "tls", false, "encrypt the data channel: TLS 1.3 with a certificate made here and pinned by senders")
}

func (f *enrolFlags) enrol(ctx context.Context, token string, force bool, state *agentstate.Folder) (agentstate.Credentials, error) {
	if f.broker == "" {
		return agentstate.Credentials{}, errors.New("no broker given (--broker URL)")
	}
	if token == "" {
		return agentstate.Credentials{}, errors.New("no enrolment token given (--token-file, --token-env or BWB_ENROLMENT_TOKEN)")
	}
	listen := f.listen
	if listen == "" {
		listen = defaultListen
	}
	return agent.Enrol(ctx, agent.Enrolment{
		Broker: f.broker, CAFile: f.caFile, Token: token, Listen: listen, Advertise: f.advertise, TLS: f.tls,
		Version: version, Force: force,
	}, state)
}

func enrolCommand() *cobra.Command {
	var f enrolFlags
	var force bool
	cmd := &cobra.Command{
		Use:   "enrol",
		Short: "Make this host known to a broker, once",
		Long: `Trades a one-time enrolment token for the agent's own token, which is kept in the state folder (mode 0600).
Ask the broker's operator for a token: POST /v1/hosts/enrolment-tokens, or the dashboard's page of hosts.`,
		Example: `  bwb-agent enrol --broker https://broker:7410 --token-file ./token --state-dir /var/lib/bwb --advertise dtn-a:7411
  BWB_ENROLMENT_TOKEN=... bwb-agent enrol --broker http://127.0.0.1:7410 --state-dir ./a --listen 127.0.0.1:7411 --tls`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			token, err := enrolmentToken(f.tokenFile, f.tokenEnv)
			if err != nil {
				return err
			}
			state, err := agentstate.Open(f.stateDir)
			if err != nil {
				return err
			}
			if err := state.Lock(); err != nil {
				return err
			}
			defer state.Unlock()
			c, err := f.enrol(cmd.Context(), token, force, state)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "enrolled as %s on node %s\n", c.Host, c.Node)
			return nil
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&force, "force", false, "replace an earlier enrolment")
	return withConfig(cmd)
}
