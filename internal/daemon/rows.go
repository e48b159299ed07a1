package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"replayd/internal/config"
	"replayd/internal/dataset"
	"replayd/internal/schedule"
	"replayd/internal/synth"
	"replayd/internal/token"
	"replayd/internal/trace"
)

// A rowSource is where the rows of a workload come from.
type rowSource struct {
	source schedule.Source
	stats  trace.Stats // of rows that are made up, only how many there are
	stat   os.FileInfo // of their file when it was opened; nil for a pipe, and without a file
	texts  func(dst []byte, r *trace.Record, salt uint64, tokens int) []byte
	close  func() error
}

// Close frees the file, if there is one.
func (r *rowSource) Close() error {
	if r.close == nil {
		return nil
	}
	return r.close()
}

// openRows opens a trace, reads a dataset, or makes rows up.
func (g *Generation) openRows(ctx context.Context, c config.Workload, t *token.Tokenizer) (*rowSource, error) {
	switch {
	case c.Synthetic.Given():
		return syntheticRows(c)
	case c.Trace.Path == "":
		return g.datasetRows(ctx, c, t)
	}
	r, err := g.traceRows(ctx, c)
	if err != nil || !c.Dataset.Given() {
		return r, err
	}
	if t == nil {
		return nil, errors.Join(errors.New("dataset: want a tokenizer too: texts are cut to the trace's lengths"), r.Close())
	}
	set, err := g.openDataset(ctx, c, t)
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	r.texts = set.Texts(c.Prompt.Seed)
	return r, nil
}

func (g *Generation) traceRows(ctx context.Context, c config.Workload) (*rowSource, error) {
	stat, _ := os.Stat(c.Trace.Path) // a fault is trace.Open's to tell
	block := int(c.Trace.BlockTokens)
	if c.Trace.BlockTokens == config.AutoValue {
		block = 0
	}
	file, err := trace.Open(ctx, c.Trace.Path, trace.Options{
		Format: trace.Format(c.Trace.Format), BlockTokens: block, Strict: c.Trace.Strict, Stdin: g.options.Stdin,
	})
	if err != nil {
		return nil, err
	}
	for _, warning := range file.Stats.Warnings {
		g.options.Log.Warn("trace", "workload", c.Name, "warning", warning)
	}
	r := &rowSource{source: schedule.FromFile(file), stats: file.Stats, stat: stat, close: file.Close}
	if c.Trace.Rescale == (config.Rescale{}) {
		return r, nil
	}
	all, err := all(r.source)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	s := c.Trace.Rescale
	all, err = synth.Rescale(all, synth.RescaleOptions{
		Speedup: s.Speedup, PrefixLen: s.PrefixLen, PrefixRoot: s.PrefixRoots, PromptLen: s.PromptLen,
		MaxInput: s.MaxInput, MaxOutput: s.MaxOutput, BlockTokens: file.Stats.BlockTokens, Seed: c.Prompt.Seed,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", c.Trace.Path, err), file.Close())
	}
	stats := file.Stats
	source := schedule.FromRecords(all, stats.HasTimestamps)
	stats.Requests, stats.Span, stats.Tick = len(all), source.Last, source.Tick
	return &rowSource{source: source, stats: stats, stat: stat}, file.Close()
}

// all reads a whole source.
func all(s schedule.Source) ([]trace.Record, error) {
	next, err := s.Rows(0)
	if err != nil {
		return nil, err
	}
	var rows []trace.Record
	for {
		r, err := next()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
}

// syntheticRows are made up as they are wanted.
func syntheticRows(c config.Workload) (*rowSource, error) {
	s := c.Synthetic
	made := synth.Synthetic{
		System: s.SystemTokens, Turns: synth.Normal{Mean: s.Turns, Stddev: s.TurnsStddev},
		Delay: time.Duration(s.TurnDelay), DelayStddev: time.Duration(s.TurnDelayStddev), Users: c.Users, Rate: c.Rate, Seed: c.Prompt.Seed,
	}
	if c.Arrival != string(schedule.Users) {
		made.Rate = 0 // it is the plan's alone
	}
	if s.Lengths == "" {
		made.Input, made.Output = synth.Normal{Mean: s.InputTokens, Stddev: s.InputStddev}, synth.Normal{Mean: s.OutputTokens, Stddev: s.OutputStddev}
	} else {
		pairs, err := synth.ParsePairs(s.Lengths)
		if err != nil {
			return nil, fmt.Errorf("synthetic.lengths: %w", err)
		}
		made.Pairs = pairs
	}
	if err := made.Check(); err != nil {
		return nil, fmt.Errorf("synthetic: %w", err)
	}
	n := s.Requests
	if n == 0 {
		n = c.Rows
	}
	return &rowSource{source: schedule.Generated(n, made.Rows), stats: trace.Stats{Path: "synthetic", Format: "synthetic", Requests: n}}, nil
}

// datasetRows are texts in their file's order.
func (g *Generation) datasetRows(ctx context.Context, c config.Workload, t *token.Tokenizer) (*rowSource, error) {
	stat, _ := os.Stat(c.Dataset.Path)
	set, err := g.openDataset(ctx, c, t)
	if err != nil {
		return nil, err
	}
	if set.Unanswered && !c.Prompt.Carry {
		return nil, fmt.Errorf("%s: want prompt.carry (--carry) too: conversations have no answers in them", c.Dataset.Path)
	}
	all := set.Records()
	return &rowSource{
		source: schedule.FromRecords(all, false), stat: stat,
		stats: trace.Stats{Path: c.Dataset.Path, Format: trace.Format(c.Dataset.Format), Requests: len(all), SHA256: set.SHA256()},
	}, nil
}

func (g *Generation) openDataset(ctx context.Context, c config.Workload, t *token.Tokenizer) (*dataset.Set, error) {
	set, err := dataset.Open(ctx, dataset.Format(c.Dataset.Format), c.Dataset.Path, dataset.Options{
		Tokenizer: t, Seed: c.Prompt.Seed, Most: c.Rows, Draws: c.Rows, Turns: c.Dataset.Turns,
	})
	if err != nil {
		return nil, err
	}
	for _, warning := range set.Warnings {
		g.options.Log.Warn("dataset", "workload", c.Name, "warning", warning)
	}
	return set, nil
}
