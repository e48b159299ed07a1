package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"

	"replayd/internal/cli"
	"replayd/internal/file"
	"replayd/internal/sim"
	"replayd/internal/visitors"
)

func newSim(w *world) *cobra.Command {
	o := sim.Defaults()
	listen, logPath := "127.0.0.1:8000", ""
	table := cli.Sim(&o, &listen, &logPath)
	c := &cobra.Command{
		Use: "sim", Short: "Run a simulated engine with a GPU",
		Long: `Run a simulated engine with a GPU: it has slots, a queue, prefill and decode
rates, and a prefix cache.

It answers /v1/chat/completions, /v1/completions and /v1/models, has vLLM's
series on /metrics, and dcgm-exporter's on /dcgm/metrics.`,
		Example: "  replayd sim --web.listen-address 127.0.0.1:8000 --ttft 200ms --itl 20ms\n" +
			"  replayd sim --slots 16 --fault-429 0.05 --log requests.jsonl",
		Args: usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Check().Named(table.NameOf).Err(); err != nil {
				return wrongInput(err)
			}
			if logPath != "" {
				f, err := file.Append(logPath)
				if err != nil {
					return wrongInput(fmt.Errorf("--log: %w", err))
				}
				defer f.Close()
				o.Log = f
			}
			l, err := net.Listen("tcp", listen)
			if err != nil {
				return fmt.Errorf("--web.listen-address: %w", err)
			}
			return simulate(c.Context(), o, l, func() {
				fmt.Fprintf(w.out, "simulated engine %q at http://%s\n", o.Model, l.Addr())
			})
		},
	}
	table.Add(c)
	return c
}

// simulate serves an engine on l until ctx is cancelled. Streams may then go on for a second.
func simulate(ctx context.Context, o sim.Options, l net.Listener, started func()) error {
	e, err := sim.New(o)
	if err != nil {
		return errors.Join(wrongInput(err), l.Close())
	}
	started()
	return visitors.Serve(ctx, e.Server(), l, time.Second)
}
