package main

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"replayd/internal/config"
	"replayd/internal/measure"
)

// flagOf names the flag behind a key of the configuration, for errors.
var flagOf = map[string]string{
	"targets[0].url": "--url", "targets[0].api": "--api", "targets[0].output": "--output",
	"targets[0].timeouts.connect": "--timeout-connect", "targets[0].timeouts.first_token": "--timeout-first-token",
	"targets[0].timeouts.stall": "--timeout-stall", "targets[0].timeouts.total": "--timeout-total",
	"workloads[0].name": "--name", "workloads[0].trace.path": "TRACE", "workloads[0].trace.format": "--format",
	"workloads[0].trace.block_tokens": "--block-tokens", "workloads[0].trace.from": "--from", "workloads[0].trace.to": "--to",
	"workloads[0].trace.max_input": "--max-input", "workloads[0].trace.max_output": "--max-output",
	"workloads[0].trace.over_limit": "--over-limit", "workloads[0].arrival": "--arrival", "workloads[0].speed": "--speed",
	"workloads[0].lanes": "--lanes", "workloads[0].overload": "--overload", "workloads[0].max_wait": "--max-wait",
	"workloads[0].prompt.form": "--prompt", "workloads[0].prompt.words": "--words", "workloads[0].prompt.salt": "--salt",
	"workloads[0].shard.index": "--shard", "workloads[0].shard.of": "--shard", "web.listen": "--web.listen-address",
}

// config is the configuration that the flags stand for; its error holds every fault.
func (o *runFlags) config(path string) (config.Config, measure.SLO, error) {
	var errs []error
	fault := func(flag string, err error) { errs = append(errs, fmt.Errorf("%s: %w", flag, err)) }
	c := config.Default()
	c.Records = config.Records{Path: o.records} // whole: a run that ends keeps all of its records
	if o.listen != "" {
		c.Web.Listen = o.listen
	}
	t, l := o.target, o.workload
	if t.URL != "" && !strings.Contains(t.URL, "://") {
		t.URL = "http://" + t.URL
	}
	if o.client != "" {
		http, err := httpConfig(o.client)
		if err != nil {
			fault("--http.config.file", err)
		}
		t.HTTP = config.HTTP{HTTPClientConfig: http}
	}
	t.Name = "server"
	if u, err := url.Parse(t.URL); err == nil && config.IsName(u.Hostname()) {
		t.Name = u.Hostname()
	}
	l.Target, l.Trace.Path, l.Repeat.Mode = t.Name, path, "once"
	l.Rows = o.requests
	if o.requests < 0 {
		fault("--requests", fmt.Errorf("want an integer ≥ 0, got %d", o.requests))
	}
	for _, d := range []struct {
		flag  string
		value config.Duration
	}{{"--duration", o.duration}, {"--wait-ready", o.wait}, {"--hold", o.hold}} {
		if d.value < 0 {
			fault(d.flag, fmt.Errorf("want a duration ≥ 0, got %v", d.value))
		}
	}
	if o.hold > 0 && o.listen == "" {
		fault("--hold", errors.New("want --web.listen-address too: without it there is no /metrics to hold"))
	}
	if o.duration > 0 {
		if end := l.Trace.From + config.Duration(float64(o.duration)*l.Speed); l.Trace.To == 0 || end < l.Trace.To {
			l.Trace.To = end
		}
	}
	if err := shardOf(o.shard, &l.Shard); err != nil {
		fault("--shard", err)
	}
	name, bounds := "--goodput", o.goodput
	if o.slo != "" {
		name, bounds = "--slo", o.slo
	}
	if o.slo != "" && o.goodput != "" {
		fault("--goodput", errors.New("want only one of --slo and --goodput"))
	}
	slo, err := measure.ParseSLO(bounds)
	if err != nil {
		fault(name, err)
	}
	l.SLO.TTFT, l.SLO.TPOT, l.SLO.E2E = config.Duration(slo.TTFT), config.Duration(slo.TPOT), config.Duration(slo.E2E)
	if !(o.least >= 0 && o.least <= 1) {
		fault("--min-goodput", fmt.Errorf("want 0 to 1, got %v", o.least))
	}
	if o.least > 0 && o.least < 1 { // else the default: with all or nothing there is no budget of errors to show
		l.SLO.Objective = o.least
	}
	if l.Epoch, err = startInstant(o.start, time.Now()); err != nil {
		fault("--start", err)
	}
	c.Targets, c.Workloads = []config.Target{t}, []config.Workload{l}
	for _, f := range c.Check() {
		name := flagOf[f.Path]
		if name == "" {
			name = f.Path
		}
		fault(name, errors.New(f.Want))
	}
	return c, slo, errors.Join(errs...)
}

// shardOf reads --shard.
func shardOf(s string, shard *config.Shard) error {
	index, of, _ := strings.Cut(s, "/")
	n, err := strconv.Atoi(of)
	if err != nil || shard.Index.UnmarshalText([]byte(index)) != nil {
		return fmt.Errorf("want INDEX/OF such as 0/4 or auto/4, got %q", s)
	}
	shard.Of = n
	return nil
}

// startInstant reads --start; the zero instant for "".
func startInstant(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if every, ok := strings.CutPrefix(s, "next:"); ok {
		d, err := time.ParseDuration(every)
		if err != nil || d <= 0 {
			return time.Time{}, fmt.Errorf("want next: and a duration > 0, such as next:1m, got %q", s)
		}
		return now.Truncate(d).Add(d).Round(0), nil
	}
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("want an instant such as 2026-01-02T15:04:05Z, or next:1m, got %q", s)
	}
	return at, nil
}
