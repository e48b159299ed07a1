package daemon

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"replayd/internal/config"
	"replayd/internal/dataset"
	"replayd/internal/fault"
	"replayd/internal/scalar"
	"replayd/internal/schedule"
	"replayd/internal/synth"
	"replayd/internal/token"
	"replayd/internal/trace"
)

type rowSource struct {
	source schedule.Source
	stats  trace.Stats   // of the trace; of other rows see noTrace
	files  []os.FileInfo // filesOf the configuration when they were opened; nil for a pipe
	texted string        // digest of the dataset with the texts; "": there is none
	texts  func(dst []byte, r *trace.Record, salt uint64, tokens int) []byte
	close  func() error
}

// digest identifies the rows and their texts.
func (r *rowSource) digest() string { return r.stats.SHA256 + r.texted }

// sha256 returns the begin of the digest of the trace.
func (r *rowSource) sha256() string { return r.stats.SHA256[:min(12, len(r.stats.SHA256))] }

// Close closes the file, if there is one.
func (r *rowSource) Close() error {
	if r.close == nil {
		return nil
	}
	return r.close()
}

// openRows opens a trace, reads a dataset, or generates rows.
func (o *Options) openRows(
	ctx context.Context, at string, c config.Workload, t *token.Tokenizer,
) (*rowSource, fault.List) {
	files := filesOf(c)
	r, faults := o.openSource(ctx, at, c, t)
	if len(faults) > 0 {
		return nil, faults
	}
	r.files = files
	if c.Trace.Path == "" || !c.Dataset.Given() {
		return r, nil
	}
	if t == nil {
		_ = r.Close() // the fault is what matters
		faults.Add(at+".dataset", "want a tokenizer too: texts are cut to the trace's lengths, "+
			"and the name of a family has no file to cut them by")
		return nil, faults
	}
	set, err := o.openDataset(ctx, c, t)
	if err != nil {
		_ = r.Close() // likewise
		return nil, fault.At(at+".dataset.path", err)
	}
	r.texts, r.texted = set.Texts(c.Prompt.Seed), set.SHA256()
	return r, nil
}

// filesOf stats the files of a workload's rows, also those of a folder. Faults are reported when they are opened.
func filesOf(c config.Workload) []os.FileInfo {
	var files []os.FileInfo
	for _, path := range []string{c.Trace.Path, c.Dataset.Path} {
		if path == "" {
			continue
		}
		stat, _ := os.Stat(path)
		files = append(files, stat)
		if stat == nil || !stat.IsDir() {
			continue
		}
		entries, _ := os.ReadDir(path)
		for _, e := range entries {
			if stat, err := os.Stat(filepath.Join(path, e.Name())); err == nil { // the file behind a link
				files = append(files, stat)
			}
		}
	}
	return files
}

func (o *Options) openSource(
	ctx context.Context, at string, c config.Workload, t *token.Tokenizer,
) (*rowSource, fault.List) {
	switch {
	case c.Synthetic.Given():
		r, err := syntheticRows(c)
		return r, fault.At(at+".synthetic", err)
	case c.Trace.Path == "":
		return o.datasetRows(ctx, at, c, t)
	}
	r, err := o.traceRows(ctx, c)
	return r, fault.At(at+".trace.path", err)
}

func (o *Options) traceRows(ctx context.Context, c config.Workload) (*rowSource, error) {
	block := int(c.Trace.BlockTokens)
	if c.Trace.BlockTokens == scalar.AutoValue {
		block = 0
	}
	plan := c.Plan()
	file, err := trace.Open(ctx, c.Trace.Path, trace.Options{
		Wait: plan.Wait, BySession: plan.BySession(), SharedPrefix: c.Trace.Shared, Format: trace.Format(c.Trace.Format),
		BlockTokens: block, Strict: c.Trace.Strict, Deltas: c.Trace.Deltas, From: plan.From, FromFirst: c.Trace.FromFirst, Header: c.Trace.RowHeader, Stdin: o.Stdin,
		Columns: c.Trace.Columns, Gap: plan.LeastGap(),
		Regular: o.Stdin == nil, // the daemon opens the file again on a reload
	})
	if err != nil {
		return nil, err
	}
	for _, warning := range file.Stats.Warnings {
		o.Log.Warn("trace is read with a warning", "workload", c.Name, "warning", warning)
	}
	if n := file.Stats.Sessions; n > 0 && c.AtOnce > n {
		o.Log.Warn(fmt.Sprintf("%d plays of %d sessions at once: the trace has no more", c.AtOnce, n), "workload", c.Name)
	}
	if file.Stats.Format == trace.Named {
		o.Log.Info("trace is read by its columns", "workload", c.Name, "columns", file.Stats.Columns)
	}
	r := &rowSource{source: schedule.FromFile(file), stats: file.Stats, close: file.Close}
	format := file.Stats.Format // the rows of others are whole prompts
	deltas := c.Trace.Deltas && file.Stats.Sessions > 0 && (format == trace.Mooncake || format == trace.Named)
	if c.Trace.Rescale == nil && !deltas {
		return r, nil
	}
	var all []trace.Record
	if err := file.Each(ctx, func(r *trace.Record) { all = append(all, *r) }); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if c.Trace.Rescale != nil {
		s := *c.Trace.Rescale
		s.BlockTokens, s.Seed, s.Wait = file.Stats.BlockTokens, c.Prompt.Seed, plan.Wait
		all, err = synth.Rescale(all, s)
	}
	if err == nil && deltas {
		err = o.accumulate(c, all)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", c.Trace.Path, err), file.Close())
	}
	stats := file.Stats
	source := schedule.FromRecords(all, stats.HasTimestamps)
	stats.Requests, stats.Span, stats.Tick = len(all), source.Last, source.Tick
	return &rowSource{source: source, stats: stats}, file.Close()
}

// accumulate gives later turns the turns before, and says so.
func (o *Options) accumulate(c config.Workload, all []trace.Record) error {
	lengthened, whole, err := synth.Accumulate(all)
	if err != nil {
		return err
	}
	o.Log.Info("later turns of sessions contain the turns before", "workload", c.Name, "turns", lengthened)
	if whole > 0 {
		o.Log.Info("later turns are sent as they are: their ids begin with those of the turn before", "workload", c.Name, "turns", whole)
	}
	return nil
}

func syntheticRows(c config.Workload) (*rowSource, error) {
	made, err := c.Made()
	if err != nil {
		return nil, err
	}
	n := cmp.Or(c.Synthetic.Requests, c.Rows)
	// Comparisons over time need one digest: other lengths or another seed make other rows.
	digest := sha256.Sum256(fmt.Appendf(nil, "%+v %d", made, n))
	return &rowSource{source: schedule.Generated(n, made.Rows), stats: noTrace("", "synthetic", n, hex.EncodeToString(digest[:]))}, nil
}

// noTrace returns the statistics of rows without a trace: their number, 0: no end, and origin.
func noTrace(path, format string, rows int, sha256 string) trace.Stats {
	s := trace.Stats{Path: path, Format: trace.Format(format), Requests: rows, SHA256: sha256}
	s.Prefix.HitTokenRatio = math.NaN()
	return s
}

// datasetRows returns a dataset's texts in the order of the file.
func (o *Options) datasetRows(
	ctx context.Context, at string, c config.Workload, t *token.Tokenizer,
) (_ *rowSource, faults fault.List) {
	set, err := o.openDataset(ctx, c, t)
	if err != nil {
		return nil, fault.At(at+".dataset.path", err)
	}
	if set.Unanswered && !c.Prompt.History {
		faults.Add(at+".prompt.history", "want true: conversations of %s have no answers in them, got false",
			c.Dataset.Path)
		return nil, faults
	}
	all := set.Records()
	return &rowSource{
		source: schedule.FromRecords(all, false),
		stats:  noTrace(c.Dataset.Path, c.Dataset.Format, len(all), set.SHA256()),
	}, nil
}

func (o *Options) openDataset(ctx context.Context, c config.Workload, t *token.Tokenizer) (*dataset.Set, error) {
	set, err := dataset.Open(ctx, dataset.Format(c.Dataset.Format), c.Dataset.Path, dataset.Options{
		Tokenizer: t, Seed: c.Prompt.Seed, Most: c.Rows, Draws: c.Rows, Turns: c.Dataset.Turns, Regular: o.Stdin == nil,
	})
	if err != nil {
		return nil, err
	}
	for _, warning := range set.Warnings {
		o.Log.Warn("dataset is read with a warning", "workload", c.Name, "warning", warning)
	}
	return set, nil
}
