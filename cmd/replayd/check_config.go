package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/common/version"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"replayd/internal/config"
	"replayd/internal/daemon"
	"replayd/internal/number"
	"replayd/internal/terminal"
)

func newCheckConfig(w *world) *cobra.Command {
	var noFiles bool
	var probes []string
	c := &cobra.Command{
		Use: "check-config FILE", Short: "Print every error of a configuration, with its line",
		Long: `Print every error of a configuration, with its line, and exit with 0 or 2.

These are the errors for which serve does not start and a reload is refused.
Without errors it says when the next request of each workload is due, and which
share of its loop is without rows: in gaps of more than a minute.
Traces, datasets, keys and certificates are read once. Only --probe connects to
anything: it reads the metrics page of a running engine, and refuses limits of
guards for which the page has no metric. It reads the router's page, too.`,
		Example: `  replayd check-config replayd.yaml
  replayd check-config replayd.yaml --probe vllm=http://127.0.0.1:8000`,
		Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := loadConfig(cmd.Context(), w, args[0], nil)
			var outlooks []string
			if !noFiles {
				outlooks, err = daemon.Outlook(cmd.Context(), c, w.log, err)
			}
			unseen := false
			if err == nil {
				unseen, err = probe(cmd.Context(), probes, c)
			}
			if s := stopped(cmd.Context()); s != nil && err != nil {
				return &exitError{s.code(), err}
			}
			switch {
			case unseen:
				return err
			case err != nil:
				return wrongInput(err)
			}
			var names []string
			for _, w := range c.Workloads {
				names = append(names, w.Name)
			}
			compared := ""
			for _, one := range c.Comparisons {
				compared += fmt.Sprintf(", comparison %s: %s with %s", one.Name, one.Workload, one.Candidate)
			}
			lines := append([]string{fmt.Sprintf("%s: ok, %s, %s: %s%s", terminal.Name(args[0]), number.Count(len(c.Targets), "target"),
				number.Count(len(names), "workload"), strings.Join(names, ", "), compared)}, outlooks...)
			_, err = fmt.Fprintln(w.out, strings.Join(lines, "\n  "))
			return err
		},
	}
	c.Flags().BoolVar(&noFiles, "no-files", false, "do not open the files that the configuration names")
	c.Flags().StringArrayVar(&probes, "probe", nil, "[TARGET=]URL of an engine: check guards against its metrics page; without TARGET: all guards")
	return c
}

// probe checks the guards of a configuration against running engines. unseen is true if an engine's page could not be
// read, which says nothing about the configuration.
func probe(ctx context.Context, flags []string, c config.Config) (unseen bool, err error) {
	engines, err := probed(flags, c)
	if err != nil {
		return false, err
	}
	err = daemon.Probe(ctx, c, engines, "replayd/"+version.Version)
	_, bad := errors.AsType[*config.Invalid](err)
	return err != nil && !bad, err
}

// probed returns the engines that --probe names, by target. The key "" stands for all other targets.
func probed(flags []string, c config.Config) (map[string]string, error) {
	engines := map[string]string{}
	for _, flag := range flags {
		target, address, named := strings.Cut(flag, "=")
		if !named || strings.Contains(target, "/") { // the = may be in the query of an address
			target, address = "", flag
		}
		if named && target != "" && !slices.ContainsFunc(c.Targets, func(t config.Target) bool { return t.Name == target }) {
			return nil, fmt.Errorf("--probe: want [TARGET=]URL with a target of the configuration, got %q", target)
		}
		if _, twice := engines[target]; twice {
			return nil, fmt.Errorf("--probe: want each target once, got %q twice", target)
		}
		engines[target] = address
	}
	return engines, nil
}

// loadConfig reads a configuration. flags, if there are any, override its keys. The end of ctx ends the wait for a pipe that says nothing,
// and for a file system that does not answer; the error is then the cause of that end.
func loadConfig(ctx context.Context, w *world, path string, flags *pflag.FlagSet) (config.Config, error) {
	type loaded struct {
		config config.Config
		err    error
	}
	end := make(chan loaded, 1)
	go func() { // what is stuck in a file is left behind
		c, err := config.Load(path, w.env, flags, func(said string) {
			w.log.Warn("environment variable ignored: it is no key of the configuration", "variable", said)
		})
		end <- loaded{c, err}
	}()
	select {
	case l := <-end:
		return l.config, l.err
	case <-ctx.Done():
		return config.Config{}, context.Cause(ctx)
	}
}
