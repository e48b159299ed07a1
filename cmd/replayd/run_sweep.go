package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"replayd/internal/cli"
	"replayd/internal/config"
	"replayd/internal/export"
	"replayd/internal/report"
	"replayd/internal/synth"
	"replayd/internal/terminal"
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
	var warm report.SharedTexts // runs whose prompts were in the server's cache
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
			one.SavePrompts, one.SaveExcel = placed(r.SavePrompts, name, ""), placed(r.SaveExcel, name, "")
		} else {
			suffix := fmt.Sprintf("-%d", n)
			one.SavePrompts, one.SaveExcel = placed(r.SavePrompts, "", suffix), placed(r.SaveExcel, "", suffix)
		}
		if _, err := fmt.Fprintf(w.out, "concurrency %d\n\n", n); err != nil {
			return err
		}
		a, err := o.once(c, w, one)
		if code, ok := errors.AsType[*exitError](err); ok && code.code == exitMissed {
			missed = errors.Join(missed, fmt.Errorf("concurrency %d: %w", n, err))
		} else if err != nil {
			if len(points) > 0 { // print the runs so far
				err = errors.Join(fmt.Errorf("concurrency %d: %w", n, err), writeSweep(w, points, warm))
			} else if !a.begun && r.Artifacts != "" {
				_ = os.Remove(one.Artifacts) // fails if the folder holds files of another program
				err = errors.Join(err, folder.PutBack())
			}
			return err
		}
		points = append(points, report.ParetoOf(a.collected))
		warm.Add(strconv.Itoa(n), a.collected.Cache.Warm())
		if _, err := fmt.Fprintln(w.out); err != nil {
			return err
		}
	}
	if err := writeSweep(w, points, warm); err != nil {
		return err
	}
	if r.Artifacts != "" {
		if _, err := fmt.Fprintf(w.out, "\none page of all runs: replayd report %s\n", terminal.Name(r.Artifacts)); err != nil {
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
	case p.Salt == synth.SaltNone:
		p.Salt = synth.Salt(fmt.Sprintf("fixed:%d+%d", p.Seed, index))
	case index > 0:
		now := time.Now()
		select {
		case <-time.After(now.Truncate(time.Second).Add(time.Second).Sub(now)):
		case <-ctx.Done():
		}
	}
}

// placed returns a file's path in a subfolder of its folder, with a suffix before the extension. "" stays.
func placed(path, folder, suffix string) string {
	if path == "" {
		return ""
	}
	extension := filepath.Ext(path)
	name := strings.TrimSuffix(filepath.Base(path), extension) + suffix + extension
	return filepath.Join(filepath.Dir(path), folder, name)
}

// writeSweep prints a line for each run, as the page of the runs has it, then the knee. A column without values is left
// out, and so are columns for which the terminal has no room.
func writeSweep(w *world, points []report.ParetoPoint, warm report.SharedTexts) error {
	table := report.ParetoTable(points).Known()
	rows := [][]string{nil}
	for _, c := range table.Columns[1:] { // without the name of the run: it is the concurrency
		rows[0] = append(rows[0], c.Name)
	}
	for _, cells := range table.Rows {
		rows = append(rows, cells[1:])
	}
	text := &terminal.Table{Columns: w.columns}
	text.Rows(rows, []string{"TTFT mean", "per user", "per GPU"})
	if _, knee := report.Knee(points); knee != "" {
		fmt.Fprintln(text)
		text.Wrapped("", knee, 0)
	}
	if servers := report.Capacity(points); servers != "" {
		text.Wrapped("", servers, 0)
	}
	for _, line := range warm.Lines() {
		text.Wrapped("warm at concurrency ", line, 0)
	}
	_, err := io.WriteString(w.out, text.String())
	return err
}
