//go:build real

package ledger_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// shards are two processes that share a trace. Their ledgers add up.
func shards(t *testing.T) {
	t.Parallel()
	c := run{
		engine: []string{"--ttft", "300ms", "--itl", "1ms"}, trace: rows(60, 50*time.Millisecond, lengths(20, 2)),
		args: []string{"--lanes", "2", "--max-wait", "300ms", "--goodput", "ttft:20s"}, expected: 60, drops: "overload",
	}
	dir := t.TempDir()
	e := startEngine(t, dir, c.engine...)
	var ends []func() made
	var files, folders []string
	for i := range 2 {
		of := filepath.Join(dir, fmt.Sprint("shard", i))
		if err := os.Mkdir(of, 0o750); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, c.begin(t, e, of, "", "--shard", fmt.Sprintf("%d/2", i)))
		files, folders = append(files, filepath.Join(of, records)), append(folders, filepath.Join(of, artifacts))
	}
	var all []made
	for _, end := range ends {
		all = append(all, end())
	}
	missed := account{}
	for _, file := range files {
		missed["dropped missed"] += lastLedger(t, read(t, file))["dropped missed"]
	}
	want := c.account(t, requests(t, files...), missed)
	for _, m := range all {
		c.exited(t, m, want)
	}
	for of, paths := range map[string][]string{"records": files, "folders": folders} {
		said := reported(t, append([]string{"--merge"}, paths...)...)
		if len(said) != 1 {
			t.Errorf("report of %s: want one run, got %d", of, len(said))
			continue
		}
		for _, name := range differs(want, said[0], 1e-12) {
			t.Errorf("report of %s: %s: want %v, got %v", of, name, want[name], said[0][name])
		}
	}
}

// sweep is a run at each of three concurrencies. Each has its own ledger, and one file of records holds three runs.
func sweep(t *testing.T) {
	t.Parallel()
	c := run{
		engine: []string{"--ttft", "20ms", "--itl", "2ms"},
		args:   []string{"--concurrency", "1,2,4", "--request-count", "12", "--isl", "30", "--osl", "5", "--streaming", "--goodput", "time_to_first_token:20000"}, expected: 12,
	}
	dir := t.TempDir()
	m := c.begin(t, startEngine(t, dir, c.engine...), dir, "")()
	want := account{expected: 12, judged: 12, good: 12, eligible: 12, "ok": 12, overall: 1, service: 1}
	c.exited(t, m, want)
	for _, path := range []string{artifacts, records} {
		said := reported(t, filepath.Join(dir, path))
		if len(said) != 3 {
			t.Errorf("report of %s: want three runs, got %d", path, len(said))
		}
		for i, got := range said {
			for _, name := range differs(want, got, 1e-12) {
				t.Errorf("report of %s: run %d: %s: want %v, got %v", path, i, name, want[name], got[name])
			}
		}
	}
}
