package main

import (
	"context"
	"fmt"
	"os"
	"text/tabwriter"
)

// twice makes the release in two folders and lists its files with their sizes. A file whose bytes differ is an error.
func (r *release) twice(ctx context.Context) error {
	if err := r.make(ctx); err != nil {
		return err
	}
	second := *r
	var err error
	if second.out, err = os.MkdirTemp("", "replayd-release-again-"); err != nil {
		return err
	}
	defer os.RemoveAll(second.out)
	if second.work, err = os.MkdirTemp("", "replayd-release-again-work-"); err != nil {
		return err
	}
	defer second.close()
	fmt.Fprintln(r.log, "once more:")
	if err := second.make(ctx); err != nil {
		return err
	}
	a, err := sums(r.out)
	if err != nil {
		return err
	}
	b, err := sums(second.out)
	if err != nil {
		return err
	}
	differ := unequal(a, b)
	w := tabwriter.NewWriter(r.log, 0, 0, 2, ' ', 0)
	var total int64
	for _, s := range a {
		mark := "equal"
		if why := differ[s.name]; why != "" {
			mark = why
		}
		fmt.Fprintf(w, "%s\t%d bytes\t%s\n", s.name, s.size, mark)
		total += s.size
	}
	fmt.Fprintf(w, "%d files\t%d bytes\t\n", len(a), total)
	if err := w.Flush(); err != nil {
		return err
	}
	if len(differ) > 0 {
		return fmt.Errorf("want two equal runs, got %d files that differ: %v", len(differ), differ)
	}
	return nil
}

// unequal says for each file in which of two runs it is missing, or how it differs.
func unequal(a, b []sum) map[string]string {
	second := map[string]sum{}
	for _, s := range b {
		second[s.name] = s
	}
	differ := map[string]string{}
	for _, s := range a {
		t, ok := second[s.name]
		switch {
		case !ok:
			differ[s.name] = "only in the first run"
		case s.size != t.size:
			differ[s.name] = fmt.Sprintf("%d bytes in the first run, %d in the second", s.size, t.size)
		case s.sha256 != t.sha256:
			differ[s.name] = fmt.Sprintf("sha256 %.12s… in the first run, %.12s… in the second", s.sha256, t.sha256)
		}
		delete(second, s.name)
	}
	for name := range second {
		differ[name] = "only in the second run"
	}
	return differ
}
