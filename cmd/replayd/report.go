package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/version"
	"github.com/spf13/cobra"

	"replayd/internal/cli"
	"replayd/internal/export"
	"replayd/internal/fault"
	"replayd/internal/file"
	"replayd/internal/number"
	"replayd/internal/report"
	"replayd/internal/result"
	"replayd/internal/terminal"
)

type reportFlags struct {
	paths     cli.Lines
	merge     bool
	output    string
	json      string
	theme     string
	dashboard bool
	host      string
	port      int
}

func newReport(w *world) *cobra.Command {
	o := reportFlags{theme: "auto", host: "localhost", port: 8050}
	c := &cobra.Command{
		Use: "report [DIR…]", Short: "Write an HTML page about one or several runs",
		Long: `Write one self-contained HTML page about one or several runs. Several runs are
compared, with confidence intervals: two runs of one trace row by row too.

A DIR is an artifact folder of replayd run or of aiperf profile, a folder with
several of them below it, or a file: profile_export.jsonl or the records of a
run. A folder with shard*.jsonl is one run of several shards. Without a DIR it
is ./artifacts.`,
		Example: "  replayd report artifacts\n  replayd report before after --output compared.html",
		RunE: func(c *cobra.Command, args []string) error {
			sources, err := o.find(args)
			if err != nil {
				return wrongInput(err)
			}
			if o.dashboard {
				return o.serve(c.Context(), w, sources)
			}
			return o.write(w, sources, time.Now())
		},
	}
	cli.Table{
		{Title: "Runs", Rows: []cli.Row{
			cli.NewRow("paths", &o.paths, "folders or files, as the arguments; repeatable"),
			cli.NewRow("merge", &o.merge, "take the files as shards of one run; refuse requests that are in two"),
		}},
		{Title: "Output", Rows: []cli.Row{
			cli.NewRow("output", &o.output, "file, folder, or - for stdout; empty: report.html in the only DIR, else here"),
			cli.NewRow("theme", &o.theme, "auto, dark or light"),
			cli.NewRow("json", &o.json, "write the figures as JSON to this file or to - instead of a page"),
		}},
		{Title: "Dashboard", Rows: []cli.Row{
			cli.NewRow("dashboard", &o.dashboard, "serve a page with filters and a choice of runs until Ctrl-C"),
			cli.NewRow("host", &o.host, "address of the dashboard; others can see it unless it is local"),
			cli.NewRow("port", &o.port, "port of the dashboard; 0: a free one"),
		}},
	}.Add(c)
	return c
}

func (o *reportFlags) find(args []string) ([]result.Source, error) {
	var f fault.List
	f.If(!slices.Contains([]string{"auto", "dark", "light"}, o.theme),
		"--theme", "want auto, dark or light, got %q", o.theme)
	f.If(o.json != "" && (o.dashboard || o.output != ""), "--json", "cannot be combined with --output or --dashboard")
	f.If(o.dashboard && o.output != "", "--output", "cannot be combined with --dashboard, which writes no file")
	f.If(o.port < 0 || o.port > 65535, "--port", "want 0 to 65535, got %d", o.port)
	if err := f.Err(); err != nil {
		return nil, err
	}
	o.paths = append(args, o.paths...)
	if len(o.paths) == 0 {
		o.paths = []string{"artifacts"}
	}
	sources, err := result.FindRuns(o.paths, o.dashboard)
	if err != nil || !o.merge || len(sources) < 2 {
		return sources, err
	}
	return []result.Source{result.Shards(sources)}, nil
}

func (o *reportFlags) colors() report.Theme {
	if o.theme == "auto" {
		return ""
	}
	return report.Theme(o.theme)
}

func made(now time.Time) string {
	return fmt.Sprintf("Made by replayd %s at %s UTC.", version.Version, now.UTC().Format(time.DateTime))
}

// read reads the runs. It leaves out runs that cannot be read, as long as there are others.
func (o *reportFlags) read(w *world, sources []result.Source) (runs []result.Run, leftOut []error, err error) {
	for _, s := range sources {
		read, err := s.Read()
		if err != nil {
			leftOut = append(leftOut, err)
			continue
		}
		for _, run := range read {
			for _, what := range run.Partial {
				w.log.Warn("the run is incomplete", "run", run.Name, "reason", what)
			}
			runs = append(runs, run)
		}
	}
	if len(runs) == 0 {
		return nil, nil, wrongInput(errors.Join(leftOut...))
	}
	for _, err := range leftOut {
		w.log.Warn("a file is left out", "err", err)
	}
	return runs, leftOut, nil
}

func (o *reportFlags) write(w *world, sources []result.Source, now time.Time) error {
	runs, leftOut, err := o.read(w, sources)
	switch {
	case err != nil:
		return err
	case o.json != "":
		err := writeTo(w, o.json, func(out io.Writer) error { return export.WriteRuns(out, runs, report.Differences(runs), leftOut) })
		if err != nil && o.json != "-" {
			return wrongInput(fmt.Errorf("--json: %w", err))
		}
		return err
	}
	page := report.HTML(runs)
	requests := 0
	for _, run := range runs {
		requests += len(run.Rows)
	}
	for _, err := range leftOut {
		page.Warnings = append(page.Warnings, "Left out: "+err.Error())
	}
	page.Theme, page.Made = o.colors(), made(now)
	if o.output == "-" {
		return page.Write(w.data)
	}
	dir, name := o.outputPath()
	if err = file.MkdirAll(dir); err == nil {
		err = export.Artifacts{Dir: dir}.Write(name, func(f *os.File) error { return page.Write(f) })
	}
	if err != nil {
		return wrongInput(fmt.Errorf("--output: %w", err))
	}
	text := fmt.Sprintf("%s: %s of %s\n", terminal.Name(filepath.Join(dir, name)), number.Count(requests, "request"), number.Count(len(runs), "run"))
	if len(runs) == 2 && len(page.Pairs) == 1 { // for more the page and the JSON say it
		text += page.Lead + "\n" + page.Pairs[0] + "\n" + report.Assumption + "\n"
	}
	_, err = io.WriteString(w.out, text)
	return err
}

func (o *reportFlags) outputPath() (dir, name string) {
	switch {
	case strings.HasSuffix(o.output, ".html"), strings.HasSuffix(o.output, ".htm"):
		return filepath.Dir(o.output), filepath.Base(o.output)
	case o.output != "":
		return o.output, export.PageName
	case len(o.paths) == 1:
		if info, err := os.Stat(o.paths[0]); err == nil && info.IsDir() {
			return o.paths[0], export.PageName
		}
		return filepath.Dir(o.paths[0]), export.PageName
	}
	return ".", export.PageName
}

// serve serves the dashboard until ctx is cancelled.
func (o *reportFlags) serve(ctx context.Context, w *world, sources []result.Source) error {
	l, err := net.Listen("tcp", net.JoinHostPort(o.host, strconv.Itoa(o.port)))
	if err != nil {
		return fmt.Errorf("--host, --port: %w", err)
	}
	var hosts []string
	if address, ok := l.Addr().(*net.TCPAddr); ok && address.IP.IsLoopback() {
		hosts = []string{"localhost", "127.0.0.1", "::1", strings.ToLower(o.host)}
	} else {
		w.log.Warn("the dashboard can be opened from other machines", "address", l.Addr())
	}
	fmt.Fprintf(w.out, "dashboard of %s at http://%s\n", number.Count(len(sources), "run"), l.Addr())
	return report.NewDashboard(sources, o.colors(), made(time.Now()), hosts...).Run(ctx, l)
}
