package daemon

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"replayd/internal/config"
	"replayd/internal/gpu"
	"replayd/internal/metrics"
	"replayd/internal/records"
	"replayd/internal/scrape"
	"replayd/internal/web"
)

// Check opens everything that a configuration names, as Build does, one workload after the other, and keeps nothing open. It does
// not use the network. loaded is the error of loading the configuration, or nil. The error of Check has the faults of both, each
// with its line. A key with a known fault is not opened.
func Check(ctx context.Context, c config.Config, log *slog.Logger, loaded error) error {
	var known config.Faults
	if loaded != nil {
		bad := (*config.Invalid)(nil)
		if !errors.As(loaded, &bad) {
			return loaded // there is no configuration to check
		}
		known = bad.Faults
	}
	reg := prometheus.NewRegistry()
	meter := metrics.NewMeter(reg)
	g := &Generation{
		options: Options{Config: c, Meter: meter, Engines: scrape.NewCollector(reg), GPUs: gpu.NewCollector(reg), Log: log},
		shared:  &shared{sink: records.NewSink(meter.RecordErrors, log)},
		checks:  true,
	}
	faults := g.open(ctx, nil, known)
	closed := g.discard()
	if ctx.Err() != nil {
		return context.Cause(ctx) // the check was stopped
	}
	return errors.Join(c.Refuse(append(known, faults...)), closed)
}

// checkWeb checks the file of TLS and passwords. A reload that does not change the section does not read the file.
func (g *Generation) checkWeb(old *Generation) config.Faults {
	w := g.options.Config.Web
	if old != nil && old.options.Config.Web == w {
		return nil
	}
	err := web.CheckConfig(w.ConfigFile)
	if err == nil {
		return nil
	}
	what := strings.TrimPrefix(err.Error(), "web.config_file: ")
	return config.Faults{{Path: "web.config_file", Want: strings.ReplaceAll(what, "\n", ";")}}
}
