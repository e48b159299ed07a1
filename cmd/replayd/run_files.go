package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"replayd/internal/cli"
	"replayd/internal/export"
	"replayd/internal/file"
	"replayd/internal/measure"
	"replayd/internal/replay"
	"replayd/internal/result"
	"replayd/internal/secret"
)

// open creates everything that can fail, before any request is sent.
func (a *account) open(o *cli.Flags) error {
	r := &a.order
	settings := result.Settings{
		Command: cli.Typed(a.args), Model: o.Target.Model, Endpoint: string(o.Target.API), Rate: o.Workload.Rate, GPUs: o.Gpus,
		Slice: time.Duration(o.Aliases.Slice), SLO: r.SLO, Session: o.Workload.SLO.Session,
		Percentiles: o.Percentiles, Streamed: r.Config.Targets[0].Stream,
	}
	if len(r.Concurrency) == 1 {
		settings.Concurrency = r.Concurrency[0]
	}
	collected := result.CollectorOptions{Gaps: o.Gaps, Log: a.log, Processor: fmt.Sprintf("replayd-%d", max(0, int(r.Config.Workloads[0].Shard.Index)))}
	for _, f := range []struct{ flag, path string }{{"--save-result", r.SaveExcel}, {"--save-prompts", r.SavePrompts}} {
		if f.path == "" {
			continue
		}
		if err := file.Writable(filepath.Dir(f.path)); err != nil {
			return fmt.Errorf("%s: %w", f.flag, err)
		}
	}
	if r.Artifacts != "" {
		folder, err := export.OpenArtifacts(r.Artifacts, time.Now())
		if err != nil {
			return fmt.Errorf("--artifact-dir: %w", err)
		}
		a.folder, collected.Path = &folder, folder.Path(result.ExportName)
	}
	if r.Collect || r.Artifacts != "" || r.SaveExcel != "" || r.Table != string(cli.Own) || len(o.Percentiles) > 0 {
		var err error
		if a.collector, err = result.NewCollector(settings, collected); err != nil {
			return fmt.Errorf("--artifact-dir: %w", err)
		}
		var ctx context.Context
		ctx, a.stop = context.WithCancel(context.Background())
		a.written = make(chan error, 1)
		go func() { a.written <- a.collector.Run(ctx) }() // stopWriting waits for it
	}
	if r.Artifacts != "" {
		a.sampler = export.NewSampler()
	}
	return a.openPrompts()
}

// putBack restores the artifact directory: the files of an earlier run are worth more than those of a run that sent
// nothing.
func (a *account) putBack() error {
	if a.folder == nil {
		return nil
	}
	for _, empty := range []string{a.folder.Path(result.ExportName), a.order.SavePrompts} {
		if err := os.Remove(empty); empty != "" && err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return a.folder.PutBack()
}

// stopWriting closes the files that are written during the run. A second call does nothing.
func (a *account) stopWriting() {
	if a.stop != nil {
		a.stop()
		if err := <-a.written; err != nil {
			a.fail(err)
		}
		a.stop = nil
	}
	if a.prompts != nil {
		a.fail(a.prompts.close())
		a.prompts = nil
	}
}

func (a *account) observers() []replay.Observer {
	all := []replay.Observer{a.summary, a.progress}
	if a.collector != nil {
		all = append(all, a.collector)
	}
	return all
}

// session adds a session that has ended.
func (a *account) session(s *measure.Session) {
	a.summary.Session(s)
	if a.collector != nil {
		a.collector.Session(s)
	}
}

// pageOf returns the address of a target's metrics, as far as the configuration has it.
func (a *account) pageOf(target string) string {
	for _, t := range a.order.Config.Targets {
		if t.Name == target {
			return secret.InAddresses(cmp.Or(t.Metrics.URL, t.URL))
		}
	}
	return target
}

// save writes the files before anything is printed, because the reader of stdout may be gone.
func (a *account) save() error {
	a.stopWriting()
	if a.collector == nil {
		return nil
	}
	a.collected = a.collector.Collected()
	run := &a.collected
	run.Cut, run.Ledger = a.verdict != nil, &a.ledger
	if a.sampler != nil {
		if n := a.sampler.Beyond(); n > 0 {
			run.Partial = append(run.Partial, fmt.Sprintf("%d series of the server and the GPUs were too many to keep", n))
		}
		run.ServerSeries = a.sampler.Series(run.Span())
		for i := range run.ServerSeries {
			run.ServerSeries[i].Source = a.pageOf(run.ServerSeries[i].Labels["target"])
		}
		if run.Settings.GPUs == 0 {
			run.Settings.GPUs = export.CountGPUs(run.ServerSeries)
		}
	}
	run.Cache, run.Reading, run.Settings.NotExact = a.cache(), a.summary.Reading(), a.notExact()
	var errs []error
	if a.folder != nil {
		errs = append(errs, a.write(*run))
	}
	if path := a.order.SaveExcel; path != "" {
		errs = append(errs, file.Replace(path, func(w io.Writer) error { return export.WriteXLSX(w, *run) }))
	}
	return errors.Join(errs...)
}

func (a *account) report() error {
	if a.collector == nil {
		return a.summary.WriteTable(a.out, a.ledger, a.columns)
	}
	run := &a.collected
	var errs []error
	switch cli.Spelling(a.order.Table) {
	case cli.AIPerf:
		errs = append(errs, export.WriteAIPerfTable(a.out, *run, a.columns))
	case cli.TraceReplay:
		errs = append(errs, export.WriteVLLMTable(a.out, *run))
	default:
		errs = append(errs, a.summary.WriteTable(a.out, a.ledger, a.columns, run.Settings.Percentiles...))
	}
	errs = append(errs, export.WriteServerSeries(a.out, *run, a.columns))
	if run.Settings.Slice > 0 {
		errs = append(errs, export.WriteSlices(a.out, *run))
	}
	if a.folder != nil {
		a.log.Info("files of this run", "dir", a.folder.Dir)
	}
	for _, said := range run.Partial {
		fmt.Fprintln(a.err, "replayd: "+said)
	}
	return errors.Join(errs...)
}

// write writes the files of the artifact directory.
func (a *account) write(run result.Run) error {
	sessions := func(w io.Writer, r result.Run) error { return result.WriteSessions(w, r.Sessions) }
	var errs []error
	for _, f := range []struct {
		name   string
		wanted bool
		write  func(io.Writer, result.Run) error
	}{
		{export.CSVName, true, export.WriteCSV},
		{result.JSONName, true, export.WriteJSON},
		{export.SlicesCSVName, run.Settings.Slice > 0, export.WriteSlicesCSV},
		{export.SlicesJSONName, run.Settings.Slice > 0, export.WriteSlicesJSON},
		{result.SessionsName, len(run.Sessions) > 0, sessions},
		{export.ServerMetricsName, len(run.ServerSeries) > 0, export.WriteServerMetrics},
	} {
		if f.wanted {
			errs = append(errs, a.folder.Write(f.name, func(w *os.File) error { return f.write(w, run) }))
		}
	}
	return errors.Join(errs...)
}
