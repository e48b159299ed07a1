package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"replayd/internal/file"
	"replayd/internal/number"
	"replayd/internal/terminal"
	"replayd/internal/trace"
)

// traceOutput says where to write a trace, and in which format.
type traceOutput struct {
	path   string
	format string
}

func (o *traceOutput) add(c *cobra.Command, formatFlag string) {
	c.Flags().StringVarP(&o.path, "output", "o", "-", "file to write; -: stdout")
	c.Flags().StringVar(&o.format, formatFlag, "", strings.Join(trace.Writable, ", ")+
		"; empty: sessions for sessions and for rows with parents, else mooncake")
}

// write writes the rows of f that next returns, until io.EOF: in the requested format, else as Sessions if f is of that
// format or rows name parents, else as Mooncake.
func (o *traceOutput) write(ctx context.Context, w *world, f *trace.File, next func() (trace.Record, error)) error {
	if strings.EqualFold(filepath.Ext(o.path), ".csv") {
		return wrongInput(fmt.Errorf("--output: want a name such as trace.jsonl, because traces are written as JSON lines, got %q",
			o.path))
	}
	format := trace.Format(o.format)
	switch {
	case format != "":
	case f.Stats.Format == trace.Sessions, f.Stats.Edges > 0:
		format = trace.Sessions
	default:
		format = trace.Mooncake
	}
	var rows *trace.Writer
	put := func(out io.Writer) (err error) {
		options := trace.WriterOptions{Untimed: !f.Stats.HasTimestamps, BlockTokens: f.Stats.BlockTokens}
		if rows, err = trace.NewWriter(out, format, options); err != nil {
			return err
		}
		for {
			if err := ctx.Err(); err != nil {
				return err
			}
			r, err := next()
			if errors.Is(err, io.EOF) {
				return rows.Close()
			}
			if err != nil {
				return err
			}
			if err := rows.Write(&r); err != nil {
				return err
			}
		}
	}
	err := writeTo(w, o.path, put)
	if outside := (*fs.PathError)(nil); err != nil && ctx.Err() == nil && !errors.As(err, &outside) {
		return wrongInput(err)
	}
	if err != nil {
		return err
	}
	warn(w.err, rows.Warnings())
	if o.path == "-" {
		return nil
	}
	_, err = fmt.Fprintf(w.out, "%s: %s, %s\n", terminal.Name(o.path), format, number.Count(rows.Rows(), "request"))
	return err
}

// writeTo writes to standard output for "-". Otherwise it replaces the file at path once the new one is complete.
func writeTo(w *world, path string, write func(io.Writer) error) error {
	if path == "-" {
		return write(w.data)
	}
	return file.Replace(path, write)
}

// warn prints warnings: to stderr where stdout may carry a new trace.
func warn(to io.Writer, warnings []string) {
	for _, warning := range warnings {
		fmt.Fprintln(to, "warning:", warning)
	}
}
