package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"replayd/internal/cli"
	"replayd/internal/config"
	"replayd/internal/export"
	"replayd/internal/number"
	"replayd/internal/report"
	"replayd/internal/synth"
)

// sweep makes a run at each concurrency, and names the knee. What is wrong with one run ends the sweep, but for a bound that
// was missed: that is what the higher ones are for.
func (o *runCommand) sweep(c *cobra.Command, w *world, r cli.Order) error {
	if o.Start != "" || o.Hold > 0 {
		return wrongInput(errors.New("--concurrency: want one number with --start or --hold"))
	}
	var folder export.Artifacts
	if r.Artifacts != "" { // a folder of a sweep holds no run of its own
		var err error
		if folder, err = export.OpenArtifacts(r.Artifacts, time.Now()); err != nil {
			return wrongInput(fmt.Errorf("--artifact-dir: %w", err))
		}
	}
	var points []report.ParetoPoint
	var missed error
	var warned []string // of runs whose prompts the server had
	for i, n := range r.Concurrency {
		one := r
		one.Concurrency = []int{n}
		one.Collect = true
		one.Config.Workloads = append(one.Config.Workloads[:0:0], r.Config.Workloads...)
		one.Config.Workloads[0].Lanes = n
		if !c.Flags().Changed("salt") {
			cold(c.Context(), &one.Config.Workloads[0].Prompt, i)
		}
		if o.Few {
			one.Config.Workloads[0].Rows = max(cli.FewRequests, cli.FewRounds*n)
		}
		if name := fmt.Sprintf("concurrency-%d", n); r.Artifacts != "" {
			one.Artifacts = filepath.Join(r.Artifacts, name)
			one.SavePrompts, one.SaveExcel = within(name, r.SavePrompts), within(name, r.SaveExcel)
		} else {
			one.SavePrompts, one.SaveExcel = numbered(r.SavePrompts, n), numbered(r.SaveExcel, n)
		}
		if _, err := fmt.Fprintf(w.out, "concurrency %d\n\n", n); err != nil {
			return err
		}
		a, err := o.once(c, w, one)
		var code *exitError
		if errors.As(err, &code) && code.code == exitMissed {
			missed = errors.Join(missed, fmt.Errorf("concurrency %d: %w", n, err))
		} else if err != nil {
			if len(points) > 0 { // what there is
				err = errors.Join(fmt.Errorf("concurrency %d: %w", n, err), writeSweep(w.out, points, warned))
			} else if !a.begun && r.Artifacts != "" {
				_ = os.Remove(one.Artifacts) // it is empty, unless it holds files of another program
				err = errors.Join(err, folder.PutBack())
			}
			return err
		}
		points = append(points, report.ParetoOf(a.collected))
		if warm := a.collected.Cache.Warm(); warm != "" {
			warned = append(warned, fmt.Sprintf("warm at concurrency %d: %s", n, warm))
		}
		if _, err := fmt.Fprintln(w.out); err != nil {
			return err
		}
	}
	if err := writeSweep(w.out, points, warned); err != nil {
		return err
	}
	if missed != nil {
		return &exitError{exitMissed, missed}
	}
	return nil
}

// cold gives a run of a sweep texts of its own, so that none finds in the server's prefix cache what the one before sent. In place of
// "none" they follow from the seed and the run's index: a repeated command sends equal bytes. "loop" tells runs apart by the
// second in which they begin, so this one begins in another.
func cold(ctx context.Context, p *config.Prompt, index int) {
	switch {
	case p.Salt == string(synth.SaltNone):
		p.Salt = fmt.Sprintf("fixed:%d+%d", p.Seed, index)
	case index > 0:
		now := time.Now()
		select {
		case <-time.After(now.Truncate(time.Second).Add(time.Second).Sub(now)):
		case <-ctx.Done():
		}
	}
}

// within moves a file of the artifact directory into a folder there.
func within(folder, path string) string {
	if path == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(path), folder, filepath.Base(path))
}

func numbered(path string, n int) string {
	if path == "" {
		return ""
	}
	extension := filepath.Ext(path)
	return fmt.Sprintf("%s-%d%s", strings.TrimSuffix(path, extension), n, extension)
}

// writeSweep prints a line a run, and the knee.
func writeSweep(w io.Writer, points []report.ParetoPoint, warned []string) error {
	text := &strings.Builder{}
	fmt.Fprintf(text, "%-12s %16s %16s %16s %12s\n", "concurrency", "output tokens/s", "per GPU", "per user", "TTFT mean")
	for _, p := range points {
		fmt.Fprintf(text, "%-12d %16s %16s %16s %12s\n", p.Concurrency,
			number.Value(p.Total, ""), number.Value(p.PerGPU(), ""), number.Value(p.PerUser, ""), number.Value(p.TTFT, "ms"))
	}
	if _, knee := report.Knee(points); knee != "" {
		fmt.Fprintf(text, "\n%s\n", knee)
	}
	if servers := report.Capacity(points); servers != "" {
		fmt.Fprintln(text, servers)
	}
	for _, warm := range warned {
		fmt.Fprintln(text, warm)
	}
	_, err := io.WriteString(w, text.String())
	return err
}
