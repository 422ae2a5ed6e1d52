// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/spf13/cobra"

	"bandwidthbroker/agents/internal/emulate"
)

// emulateFlags are what the command line adds to the emulator's own options.
type emulateFlags struct {
	options    emulate.Options
	capacity   quantity
	buffer     quantity
	loss       share
	delay      time.Duration
	control    string
	asJSON     bool
	untilStdin bool
}

func emulateCommand() *cobra.Command {
	f := emulateFlags{capacity: rate(1_000_000_000), buffer: size(1_000_000)}
	cmd := &cobra.Command{
		Use:   "emulate",
		Short: "Emulate a bottleneck between two network namespaces",
		Long: `Makes a TUN device in each of two network namespaces and carries IP packets between them over a link with a capacity, a
propagation delay, a buffer and random loss, the same in each direction. It needs root, and no queueing discipline of the kernel.

The link is a transmitter with a drop-tail queue before it. Its capacity counts IP bytes; --framing 38 adds what Ethernet
adds to a packet on the wire (14 header, 4 check sequence, 8 preamble, 12 gap), and then buffer, trace and statistics
count it, too. The packet that is being sent needs no buffer. A lost packet was sent: it takes its time on the link.

Addresses and routes are yours to give (ip -n NAMESPACE ...); ` + "`bwb lab`" + ` does all of it. While it runs it takes orders, one JSON
object a line, on the --control socket, and answers each with {"ok": true} or {"ok": false, "error": "..."}:

  {"op":"set","direction":"left-right","capacity_bps":200000000,"delay_us":5000,"buffer_bytes":100000,"loss":0.001}
  {"op":"cut"}  {"op":"restore"}                      a cut ends what is on the link, and what comes
  {"op":"drop","protocol":"udp","port":7411,"count":3}  lose the next three packets of a kind
  {"op":"statistics"}

"direction" is left-right, right-left or both (the default). Statistics say how late the emulator itself was (lateness_us,
unread_us, run_queue_us): when it did not get a processor in time, throw the measurement away.`,
		Example: `  bwb-gateway emulate --left west --right east --capacity 500Mbit --delay 5ms --buffer 1MB
  bwb-gateway emulate --left west --right east --capacity 1Gbit --delay 50ms --loss 0.01% --seed 7 --trace trace.csv --json
  echo '{"op":"set","capacity_bps":100000000}' | nc -NU control.sock`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.options.Link.CapacityBps, f.options.Link.Buffer = f.capacity.value, f.buffer.value
			f.options.Link.Loss, f.options.Link.Delay = f.loss.parts, f.delay.Nanoseconds()
			if !cmd.Flags().Changed("seed") {
				f.options.Seed = rand.Uint64N(1 << 32) // short enough to be typed
			}
			return f.run(cmd)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.options.Left.Namespace, "left", "", "network `namespace` of the left end: a name, or a path (default: this one)")
	flags.StringVar(&f.options.Right.Namespace, "right", "", "network `namespace` of the right end (default: this one)")
	flags.StringVar(&f.options.Left.Device, "left-device", "bwb-left", "`name` of the TUN device at the left end")
	flags.StringVar(&f.options.Right.Device, "right-device", "bwb-right", "`name` of the TUN device at the right end")
	flags.IntVar(&f.options.MTU, "mtu", 1500, "largest IP packet, in `bytes`")
	flags.Var(&f.capacity, "capacity", "of each direction: 500Mbit, 2.5Gbit")
	flags.DurationVar(&f.delay, "delay", 0, "one way: half of the round trip that it adds")
	flags.Var(&f.buffer, "buffer", "bytes that may wait for the transmitter in each direction: 1MB, 100k")
	flags.Var(&f.loss, "loss", "share of the packets that is lost at random: 0.001, 0.1%")
	flags.Uint64Var(&f.options.Seed, "seed", 0, "`number` that the random losses follow from (default: drawn, and printed)")
	flags.Int64Var(&f.options.Framing, "framing", 0, "`bytes` that a packet takes on the wire beside IP; 38 for Ethernet")
	flags.StringVar(&f.control, "control", "", "unix `socket` to take orders on; it appears when the link is up")
	flags.StringVar(&f.options.Trace, "trace", "", "CSV `file`: bytes offered, forwarded and dropped per 10 ms, direction and flow")
	flags.BoolVar(&f.asJSON, "json", false, "print statistics as JSON at the end")
	flags.StringVar((*string)(&f.options.Realtime), "realtime", "no", "run before all ordinary processes (SCHED_FIFO): yes, no, or try")
	flags.Lookup("realtime").NoOptDefVal = string(emulate.Required)
	flags.DurationVar(&f.options.Spin, "spin", 5*time.Microsecond, "look at the clock instead of sleeping for waits this short")
	flags.DurationVar(&f.options.Moderate, "moderate", 0, "look for packets so often, instead of waking up for each: half the work, and so much delay more")
	flags.BoolVar(&f.untilStdin, "until-stdin-closes", false, "end when standard input does: with the program that started this one")
	return cmd
}

func (f *emulateFlags) run(cmd *cobra.Command) error {
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	emulator, err := emulate.New(f.options)
	if err != nil {
		return err
	}
	defer emulator.Close()
	if f.control != "" {
		if err := emulator.Listen(ctx, f.control); err != nil {
			return err
		}
	}
	if f.untilStdin {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			cancel()
		}()
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "link is up, seed %d\n", f.options.Seed)
	if err := emulator.Run(ctx); err != nil {
		return err
	}
	if f.asJSON {
		encoder := json.NewEncoder(cmd.OutOrStdout())
		encoder.SetIndent("", " ")
		return encoder.Encode(emulator.Statistics())
	}
	return nil
}
