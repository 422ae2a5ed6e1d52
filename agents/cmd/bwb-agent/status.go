// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"bandwidthbroker/agents/internal/agent"
	"bandwidthbroker/agents/internal/agentstate"
	"bandwidthbroker/agents/internal/mechanism"
)

func statusCommand() *cobra.Command {
	var stateDir string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what the agent on a state folder is doing",
		Long: `Reads the state folder; works whether the agent runs or not. The figures are those of the agent's last word with
the broker, at most a second old while something moves.`,
		Example: `  bwb-agent status --state-dir /var/lib/bwb
  bwb-agent status --state-dir /var/lib/bwb --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := os.Stat(stateDir); err != nil {
				return errors.New("no such state folder (--state-dir)")
			}
			state, err := agentstate.Open(stateDir)
			if err != nil {
				return err
			}
			s, err := agent.ReadStatus(state)
			if err != nil {
				return err
			}
			if asJSON {
				out := json.NewEncoder(cmd.OutOrStdout())
				out.SetIndent("", "  ")
				return out.Encode(s)
			}
			return show(cmd.OutOrStdout(), s)
		},
	}
	cmd.Flags().StringVar(&stateDir, "state-dir", "", "the agent's state `folder`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func show(w io.Writer, s agent.Status) error {
	if s.Host == "" {
		fmt.Fprintln(w, "not enrolled")
		return nil
	}
	state := "stopped"
	if s.Running {
		state = "running"
	}
	fmt.Fprintf(w, "%s on node %s, %s; broker %s\n", s.Host, s.Node, state, s.Broker)
	if s.At.IsZero() {
		return nil
	}
	fmt.Fprintf(w, "data address %s; revision %d; broker last spoken to %s; clock offset %d us (+-%d); %d reports waiting\n",
		s.DataAddress, s.Revision, s.BrokerSpokenAt.Format(time.RFC3339), s.ClockOffsetUs, s.ClockErrorUs, s.ReportsWaiting)
	fmt.Fprintln(w, mechanismLine(s.Mechanisms))
	if err := showClasses(w, s.Classes); err != nil || len(s.Transfers) == 0 {
		return err
	}
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "TRANSFER\tMODE\tROLE\tPEER\tDONE\tRATE\tSTATE\tPATH")
	for _, t := range s.Transfers {
		share := 100.0
		if t.VolumeBytes > 0 {
			share = 100 * float64(t.Bytes) / float64(t.VolumeBytes)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%.1f %%\t%.1f Mbit/s\t%s\t%s\n", t.Transfer, t.Mode, t.Role, t.Peer, share,
			float64(t.AppliedRateBps)/1e6, word(t), t.Path)
	}
	return table.Flush()
}

// mechanismLine says what holds rates on this host, and why the rest does not.
func mechanismLine(all []mechanism.Report) string {
	var can, cannot []string
	for _, m := range all {
		if m.Available {
			can = append(can, string(m.Name))
		} else {
			cannot = append(cannot, fmt.Sprintf("%s: %s", m.Name, m.Reason))
		}
	}
	line := "mechanisms " + strings.Join(can, ", ")
	if len(cannot) > 0 {
		line += "; not " + strings.Join(cannot, "; not ")
	}
	return line
}

// showClasses shows what the kernel holds for this agent's transfers.
func showClasses(w io.Writer, classes []agent.ClassStatus) error {
	if len(classes) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "CLASS\tTRANSFER\tRATE WITH HEADERS\tSENT\tPACKETS\tDROPPED\tWAITING")
	for _, c := range classes {
		fmt.Fprintf(table, "%s %x:%x\t%s\t%.1f Mbit/s\t%.1f MB\t%d\t%d\t%d B\n", c.Device, c.ID>>16, c.ID&0xffff, c.Transfer,
			float64(c.RateBps)/1e6, float64(c.Bytes)/1e6, c.Packets, c.Drops, c.Backlog)
	}
	return table.Flush()
}

func word(t agent.TransferStatus) string {
	switch {
	case t.Outcome != "":
		return t.Outcome
	case t.Paused:
		return "paused"
	case t.Connected:
		return "connected"
	}
	return "waiting"
}
