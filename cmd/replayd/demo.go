package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/common/version"
	"github.com/spf13/cobra"

	"replayd/internal/cli"
	"replayd/internal/config"
	"replayd/internal/daemon"
	"replayd/internal/measure"
	"replayd/internal/replay"
	"replayd/internal/sim"
	"replayd/internal/synth"
	"replayd/internal/terminal"
)

// demoLoop is the length of a loop; the bundled sample fits in it.
const demoLoop = 3 * time.Minute

// demoText tells a newcomer where to look, in 80 columns: the engine's address, a loop's minutes, the page's address.
//
//go:embed demo.txt
var demoText string

func newDemo(w *world) *cobra.Command {
	listen, duration := "127.0.0.1:9797", time.Duration(0)
	c := &cobra.Command{
		Use: "demo", Short: "Run a simulated engine, the bundled trace and the daemon",
		Args: usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if !c.Flags().Changed("log.level") { // a new user looks at the figures, not at the log
				if err := c.Flags().Set("log.level", "warn"); err != nil {
					return err
				}
			}
			ctx := c.Context()
			if duration > 0 {
				var stop context.CancelFunc
				ctx, stop = context.WithTimeout(ctx, duration)
				defer stop()
			}
			return demo(ctx, hardStop(c.Context()), w, listen, !c.Flags().Changed("web.listen-address"))
		},
	}
	c.Flags().StringVar(&listen, "web.listen-address", listen, "address of /metrics; if the default is taken, a free port")
	c.Flags().Var(cli.Duration(&duration), "duration", "stop after this time, such as 30s; 0: on Ctrl-C")
	return c
}

func demo(ctx, hard context.Context, w *world, listen string, anyPort bool) error {
	dir, err := os.MkdirTemp("", "replayd-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	sample := filepath.Join(dir, "sample.jsonl")
	if err := os.WriteFile(sample, synth.Sample, 0o600); err != nil {
		return err
	}
	if anyPort && taken(listen) {
		listen = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	var engine sync.WaitGroup
	engineCtx, stopEngine := context.WithCancel(context.WithoutCancel(ctx))
	defer stopEngine()
	var engineErr error
	engine.Go(func() { engineErr = simulate(engineCtx, sim.Defaults(), l, func() {}) })

	cfg := demoConfig(sample, "http://"+l.Addr().String(), listen)
	progress := &terminal.Progress{}
	end := make(chan struct{})
	var shown sync.WaitGroup
	err = daemon.Serve(ctx, hard, daemon.ServeOptions{
		Config: cfg, Version: version.Version, Log: w.log, LogDropped: w.dropped, Runs: w.drains, Observers: []replay.Observer{progress},
		Started: func(url string, ledger func() measure.Ledger) {
			fmt.Fprintf(w.out, demoText, cfg.Targets[0].URL, demoLoop.Minutes(), url)
			shown.Go(func() {
				outlook := func() terminal.Outlook { return terminal.Outlook{Ledger: ledger()} }
				if screen := w.screen(); screen != nil {
					progress.Show(screen, outlook, end)
				} else {
					progress.Print(w.out, outlook, end)
				}
			})
		},
	})
	close(end)
	shown.Wait()
	stopEngine()
	engine.Wait()
	return errors.Join(err, engineErr)
}

// taken reports whether another process listens on the address.
func taken(address string) bool {
	l, err := net.Listen("tcp", address)
	if err == nil {
		l.Close() // only a test
	}
	return errors.Is(err, syscall.EADDRINUSE)
}

func demoConfig(sample, engine, listen string) config.Config {
	c := config.Default()
	c.Web.Listen, c.Drain = listen, 2*time.Second
	t := config.DefaultTarget()
	t.Name, t.URL = "sim", engine
	l := config.DefaultWorkload()
	l.Name, l.Target, l.Trace.Path = "sample", t.Name, sample
	l.Repeat.Align, l.Repeat.Every = "start", demoLoop
	l.SLO.Bounds = config.Bounds{"ttft": "500ms", "tpot": "50ms"}
	g := config.DefaultGPU()
	g.Target, g.DCGMExporter = t.Name, engine+"/dcgm/metrics"
	c.Targets, c.Workloads, c.GPUs = []config.Target{t}, []config.Workload{l}, []config.GPU{g}
	return c
}
