package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/prometheus/common/version"
	"github.com/spf13/cobra"

	"replayd/internal/config"
	"replayd/internal/daemon"
	"replayd/internal/measure"
	"replayd/internal/visitors"
)

func newServe(w *world) *cobra.Command {
	var file string
	var watch bool
	c := &cobra.Command{
		Use: "serve", Short: "Run the daemon: workloads on a loop or a schedule, and /metrics",
		Example: `  replayd serve --config replayd.yaml
  replayd serve --config replayd.yaml --config.watch --web.enable-lifecycle`,
		Args: usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			var watcher *config.Watcher
			if watch {
				watcher = config.NewWatcher(file) // before the file is loaded
			}
			load := func() (config.Config, error) { return loadConfig(c.Context(), w, file, c.Flags()) }
			cfg, err := load()
			if errors.Is(err, fs.ErrNotExist) && !c.Flags().Changed("config") {
				return wrongInput(fmt.Errorf("%w: name a configuration file with --config, or try replayd demo, which needs none", err))
			}
			if err != nil {
				return wrongInput(daemon.Check(c.Context(), cfg, w.log, err)) // adds the faults of the files
			}
			o := daemon.ServeOptions{Config: cfg, Version: version.Version, Log: w.log, LogDropped: w.dropped, Load: load, Hangup: w.hangups, Watch: watcher, Runs: w.drains}
			v := verdicts{begun: !cfg.ExitWhenDone}
			o.Started = func(string, func() measure.Ledger) { v.begun = true }
			o.Over = func(of config.Workload, l measure.Ledger, early error) { v.add(c.Context(), of, l, early) }
			return v.err(c.Context(), daemon.Serve(c.Context(), hardStop(c.Context()), o))
		},
	}
	c.Flags().StringVar(&file, "config", "replayd.yaml", "configuration file")
	c.Flags().BoolVar(&watch, "config.watch", false, "reload the configuration file when its content changes")
	// The values of these stand for keys of the configuration file; package config reads them.
	c.Flags().Bool("exit-when-done", false, "end when all workloads, played once, are over, with the exit code of run")
	c.Flags().String("web.listen-address", ":9797", "address of /metrics, host:port")
	c.Flags().String("web.config.file", "", "exporter-toolkit's file for TLS and passwords")
	c.Flags().Bool("web.enable-lifecycle", false, "POST /-/reload, /-/pause, /-/resume and /-/comparisons/NAME/restart work")
	c.Flags().Bool("web.enable-pprof", false, "Go's profiles under /debug/pprof/")
	c.Flags().Int("web.max-connections", visitors.Most, "most connections at once, a quarter of them from one address")
	c.Flags().String("web.allowed-hosts", "", "names, separated by commas, at which browsers may open the pages; *: any")
	c.Flags().String("web.external-url", "", "address at which people reach this process, for links in alerts")
	c.Flags().String("web.runbook-url", "", "address of the runbook, for links in alerts (default: the page of a replayd)")
	c.Flags().String("web.dashboards-url", "", "address of the Grafana that has the dashboards, for links in alerts")
	return c
}
