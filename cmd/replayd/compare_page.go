package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/version"

	"replayd/internal/canary"
	"replayd/internal/config"
	"replayd/internal/number"
	"replayd/internal/report"
	"replayd/internal/secret"
)

// A comparePage collects the page of a comparison.
type comparePage struct {
	path    string // "": no page is wanted
	history canary.History
	begin   time.Time
	looked  bool
	sha256  string    // of the trace
	models  [2]string // that the servers list
}

// check tells before the comparison, which can last for hours, that the page cannot be written.
func (p *comparePage) check() error {
	if p.path == "" {
		return nil
	}
	err := writable(filepath.Dir(p.path))
	if info, fault := os.Stat(p.path); err == nil && fault == nil && info.IsDir() {
		err = errors.New(p.path + ": want a file, got a directory")
	}
	if err != nil {
		return fmt.Errorf("--html: %w", err)
	}
	return nil
}

// look reads the trace's digest and the models' names off the metrics once, when both servers have answered.
func (p *comparePage) look(j *canary.Judgement, metrics prometheus.Gatherer) {
	if p.path == "" || p.looked || j.Pairs.Judged == 0 {
		return
	}
	p.looked = true
	families, _ := metrics.Gather() // those that could be gathered
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			switch f.GetName() {
			case "replayd_trace_info":
				p.sha256 = labels["sha256"]
			case "replayd_target_info":
				for side := range p.models {
					if labels["target"] == canary.Side(side).String() {
						p.models[side] = labels["model"]
					}
				}
			}
		}
	}
}

// write writes the page.
func (p *comparePage) write(j *canary.Judgement, o *compareFlags, c *config.Config) error {
	if p.path == "" {
		return nil
	}
	now := time.Now()
	page := report.Canary{
		Judgement: *j, Options: o.Options, History: &p.history, Settings: p.settings(o, c, now),
		Workloads: [2]string{"compare", "compare@candidate"},
	}.Page()
	page.Made = made(now)
	return save("--html", p.path, page.Write)
}

func (p *comparePage) settings(o *compareFlags, c *config.Config, end time.Time) (facts []report.Fact) {
	add := func(name, text string) {
		if text != "" {
			facts = append(facts, report.Fact{Name: name, Text: text})
		}
	}
	w := &c.Workloads[0]
	add("trace", w.Trace.Path)
	if p.sha256 != "" {
		add("sha256 of the trace", p.sha256+"…")
	}
	for i, t := range c.Targets {
		add(t.Name, secret.Shown(t.URL))
		add("model of the "+t.Name, cmp.Or(t.Model, p.models[i]))
	}
	api := c.Targets[0].API
	if !c.Targets[0].Stream {
		api += ", not streamed"
	}
	add("api", api)
	add("slo", o.slo)
	add("arrival", w.Arrival)
	add("speed", number.Short(w.Speed))
	if d := w.TurnDelay; d.Scale != 1 || d.Max > 0 {
		delays := "× " + number.Short(d.Scale)
		if d.Max > 0 {
			delays += ", at most " + d.Max.String()
		}
		add("delays of turns", delays)
	}
	add("began", p.begin.UTC().Format(time.DateTime)+" UTC")
	add("ended", end.UTC().Format(time.DateTime)+" UTC")
	add("longest time", time.Duration(o.longest).String())
	add("version", version.Version)
	return facts
}
