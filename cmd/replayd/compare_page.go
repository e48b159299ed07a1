package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/common/version"

	"replayd/internal/canary"
	"replayd/internal/cli"
	"replayd/internal/config"
	"replayd/internal/file"
	"replayd/internal/number"
	"replayd/internal/report"
	"replayd/internal/secret"
)

// A comparePage collects the page of a comparison.
type comparePage struct {
	path    string // "": no page is wanted
	history canary.History
	blocks  []canary.Block // with --aa
	begin   time.Time
	played  func() (sha256 string, models [2]string) // what is compared; nil: nothing was
}

// check tells before the comparison, which can last for hours, that the page cannot be written.
func (p *comparePage) check() error {
	if p.path == "" {
		return nil
	}
	err := file.Writable(filepath.Dir(p.path))
	if info, fault := os.Stat(p.path); err == nil && fault == nil && info.IsDir() {
		err = errors.New(p.path + ": want a file, got a directory")
	}
	if err != nil {
		return fmt.Errorf("--html: %w", err)
	}
	return nil
}

func (p *comparePage) write(j *canary.Judgment, o *cli.Compare, c *config.Config) error {
	if p.path == "" {
		return nil
	}
	now := time.Now()
	page := report.Canary{
		Judgment: *j, Options: o.Options, History: &p.history, Settings: p.settings(o, c, now),
		Workloads: [2]string{"compare", "compare@candidate"},
	}.Page()
	page.Made = made(now)
	return save("--html", p.path, page.Write)
}

func (p *comparePage) settings(o *cli.Compare, c *config.Config, end time.Time) (facts report.Facts) {
	w, add := &c.Workloads[0], facts.Add
	add("trace", w.Trace.Path)
	var models [2]string
	if p.played != nil {
		var sha256 string
		sha256, models = p.played()
		add("sha256 of the trace", sha256+"…")
	}
	for i, t := range c.Targets {
		add(t.Name, cmp.Or(strings.Join(t.Pods, " "), secret.Shown(t.URL)))
		add("model of the "+t.Name, cmp.Or(t.Model, models[i]))
	}
	api := string(c.Targets[0].API)
	if !c.Targets[0].Stream {
		api += ", not streamed"
	}
	add("api", api)
	add("slo", o.SLO)
	add("arrival", string(w.Arrival))
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
	add("longest time", o.Longest.String())
	add("version", version.Version)
	return facts
}

// mostWander bounds the blocks from which a wander is proposed: a week of blocks of a minute.
const mostWander = 7 * 24 * 60

// add keeps a block, for the page and for the proposal of a wander.
func (p *comparePage) add(b canary.Block, aa bool) {
	p.history.Block(b)
	if aa && len(p.blocks) < mostWander {
		p.blocks = append(p.blocks, b)
	}
}

// printWander prints how far the ratio of two equal servers has wandered. err is why the comparison ended before its
// time; nil: it did not.
func (o *compareCommand) printWander(w *world, p *comparePage, last *canary.Judgment, err error) error {
	found, ok := canary.WanderOf(p.blocks)
	if !ok {
		fmt.Fprintf(w.out, "wander: too few blocks with latencies: %d of 22 or more: %s\n", last.Useful, last.Why(o.Options))
		if err != nil {
			return err
		}
		return &exitError{exitUndecided, fmt.Errorf("no wander in %v", o.Longest)}
	}
	fmt.Fprintf(w.out, "pairs: %d, void: %d\nwander: %s\n", last.Pairs.Judged, last.Pairs.Void, found.Text())
	if text := cmp.Or(last.UnequalLoads(), last.UnknownLoads()); text != "" {
		fmt.Fprintf(w.out, "loads: %s\n", text)
	}
	if cut, ok := errors.AsType[*signaled](err); ok { // what was measured is told, and that it is less than was asked for
		return &exitError{cut.code(), fmt.Errorf("%w before the end of %v", err, o.Longest)}
	}
	return err
}
