package main

import (
	"github.com/prometheus/common/version"
	"github.com/spf13/cobra"

	"replayd/internal/daemon"
)

func newServe(w *world) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "serve", Short: "The daemon: workloads on a loop, /metrics, drain on SIGTERM",
		Example: "  replayd serve --config replayd.yaml",
		Args:    usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := loadConfig(w, file, c)
			if err != nil {
				return wrongInput(err)
			}
			return daemon.Serve(c.Context(), hardStop(c.Context()), daemon.ServeOptions{
				Config: cfg, Version: version.Version, Log: w.log,
			})
		},
	}
	c.Flags().StringVar(&file, "config", "replayd.yaml", "configuration file")
	webFlags(c)
	return c
}

// webFlags are those that stand for keys of the configuration file; package config reads them.
func webFlags(c *cobra.Command) {
	c.Flags().String("web.listen-address", ":9797", "address of /metrics, host:port")
	c.Flags().String("web.config.file", "", "exporter-toolkit's file for TLS and passwords")
}
