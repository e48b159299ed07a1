package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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

// sweep makes a run at each concurrency and reports the knee. An error of a run ends the sweep, except a missed bound:
// higher concurrencies are meant to find it.
func (o *runCommand) sweep(c *cobra.Command, w *world, r cli.Order) error {
	if o.Start != "" || o.Hold > 0 {
		return wrongInput(errors.New("--concurrency: want one number with --start or --hold"))
	}
	var folder export.Artifacts
	if r.Artifacts != "" { // the folder of a sweep has no run of its own
		var err error
		if folder, err = export.OpenArtifacts(r.Artifacts, time.Now()); err != nil {
			return wrongInput(fmt.Errorf("--artifact-dir: %w", err))
		}
	}
	var points []report.ParetoPoint
	var missed error
	var warm warmRuns
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
			if len(points) > 0 { // print the runs so far
				err = errors.Join(fmt.Errorf("concurrency %d: %w", n, err), writeSweep(w.out, points, warm))
			} else if !a.begun && r.Artifacts != "" {
				_ = os.Remove(one.Artifacts) // fails if the folder holds files of another program
				err = errors.Join(err, folder.PutBack())
			}
			return err
		}
		points = append(points, report.ParetoOf(a.collected))
		warm.add(n, a.collected.Cache.Warm())
		if _, err := fmt.Fprintln(w.out); err != nil {
			return err
		}
	}
	if err := writeSweep(w.out, points, warm); err != nil {
		return err
	}
	if r.Artifacts != "" {
		if _, err := fmt.Fprintf(w.out, "\none page of all runs: replayd report %s\n", r.Artifacts); err != nil {
			return err
		}
	}
	if missed != nil {
		return &exitError{exitMissed, missed}
	}
	return nil
}

// cold gives a run of a sweep its own texts, so that it does not hit prompts of the previous run in the server's prefix
// cache. The salt "none" becomes a salt of the seed and the run's index, so that a repeated command sends equal bytes.
// The salt "loop" depends on the second in which a run begins, so cold waits for the next second.
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

// within returns a file's path in a subfolder of its folder.
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

// warmRuns holds the warnings of runs whose prompts were in the server's cache. Runs with the same text share a line.
type warmRuns struct {
	texts []string
	at    map[string][]string // concurrencies, by text
}

// add adds a run; an empty text is no warning.
func (w *warmRuns) add(concurrency int, text string) {
	if text == "" {
		return
	}
	if w.at == nil {
		w.at = map[string][]string{}
	}
	if w.at[text] == nil {
		w.texts = append(w.texts, text)
	}
	w.at[text] = append(w.at[text], strconv.Itoa(concurrency))
}

// writeSweep prints a line for each run, then the knee. A column without values is left out.
func writeSweep(w io.Writer, points []report.ParetoPoint, warm warmRuns) error {
	text := &strings.Builder{}
	columns := []struct {
		name  string
		width int
		value func(report.ParetoPoint) float64
		unit  string
	}{
		{"output tokens/s", 16, func(p report.ParetoPoint) float64 { return p.Total }, ""},
		{"per GPU", 12, report.ParetoPoint.PerGPU, ""},
		{"per user", 12, func(p report.ParetoPoint) float64 { return p.PerUser }, ""},
		{"TTFT mean", 12, func(p report.ParetoPoint) float64 { return p.TTFT }, "ms"},
	}
	fmt.Fprintf(text, "%-12s", "concurrency")
	lines := make([]string, len(points))
	for i, p := range points {
		lines[i] = fmt.Sprintf("%-12d", p.Concurrency)
	}
	for _, c := range columns {
		if !slices.ContainsFunc(points, func(p report.ParetoPoint) bool { return !math.IsNaN(c.value(p)) }) {
			continue
		}
		fmt.Fprintf(text, "%*s", c.width, c.name)
		for i, p := range points {
			lines[i] += fmt.Sprintf("%*s", c.width, number.Value(c.value(p), c.unit))
		}
	}
	fmt.Fprintf(text, "\n%s\n", strings.Join(lines, "\n"))
	if _, knee := report.Knee(points); knee != "" {
		fmt.Fprintf(text, "\n%s\n", knee)
	}
	if servers := report.Capacity(points); servers != "" {
		fmt.Fprintln(text, servers)
	}
	for _, t := range warm.texts {
		fmt.Fprintf(text, "warm at concurrency %s: %s\n", strings.Join(warm.at[t], ", "), t)
	}
	_, err := io.WriteString(w, text.String())
	return err
}
