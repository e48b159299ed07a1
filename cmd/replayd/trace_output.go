package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
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

func (o *traceOutput) add(c *cobra.Command, formatFlag, otherwise string) {
	c.Flags().StringVarP(&o.path, "output", "o", "-", "file to write; -: stdout")
	c.Flags().StringVar(&o.format, formatFlag, "", strings.Join(trace.Writable, ", ")+"; empty: "+otherwise)
}

// choose returns the format to write: the requested one, else keep. If the file's extension is .csv or .jsonl and keep
// is of the other kind, choose returns Azure or Mooncake. A format that can only be read becomes Sessions, or Mooncake
// if its rows have no parents.
func (o *traceOutput) choose(keep trace.Format) trace.Format {
	csv := map[trace.Format]bool{trace.Azure: true, trace.BurstGPT: true}
	switch extension := filepath.Ext(strings.ToLower(o.path)); {
	case o.format != "":
		return trace.Format(o.format)
	case extension == ".csv" && !csv[keep]:
		return trace.Azure
	case extension == ".jsonl" && csv[keep], keep == trace.Bailian:
		return trace.Mooncake
	case !slices.Contains(trace.Writable, string(keep)):
		return trace.Sessions
	}
	return keep
}

// write writes the rows that next returns, until io.EOF.
func (o *traceOutput) write(ctx context.Context, w *world, format trace.Format, options trace.WriterOptions, next func() (trace.Record, error)) error {
	var rows *trace.Writer
	put := func(out io.Writer) (err error) {
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
	for _, warning := range rows.Warnings() {
		fmt.Fprintln(w.err, "warning:", warning)
	}
	if format == trace.VLLM {
		fmt.Fprintf(w.err, "vllm bench serve --dataset-name timed_trace --self-timed --timed-trace-chunk-hash-size %d reads it\n", options.BlockTokens)
	}
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

// writerOptions returns the options of a Writer for rows from files.
func writerOptions(files ...*trace.File) trace.WriterOptions {
	o := trace.WriterOptions{}
	for _, f := range files {
		o.Untimed = o.Untimed || !f.Stats.HasTimestamps
		o.Sessions = o.Sessions || f.Stats.Sessions > 0
		if o.BlockTokens == 0 || f.Stats.RowsWithIDs > 0 {
			o.BlockTokens = f.Stats.BlockTokens
		}
	}
	return o
}

// openNoisy opens a trace and prints its warnings to stderr, because stdout may carry the new trace.
func (o *traceFlags) openNoisy(c *cobra.Command, w *world, path string) (*trace.File, error) {
	f, err := o.open(c, w, path)
	if err != nil {
		return nil, wrongInput(err)
	}
	for _, warning := range f.Stats.Warnings {
		fmt.Fprintln(w.err, "warning:", warning)
	}
	return f, nil
}
