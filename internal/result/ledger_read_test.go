package result

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"replayd/internal/measure"
)

// at returns an instant: seconds after 2027-01-15 08:00:00.
func at(second int) int64 { return (1_800_000_000 + int64(second)) * 1e9 }

// record returns the line of an ok request that was sent at an instant and ended a second later.
func record(id string, second int) string {
	return fmt.Sprintf(`{"id":%q,"outcome":"ok","due_ns":%d,"write_ns":%d,"end_ns":%d}`+"\n", id, at(second), at(second), at(second+1))
}

// told returns the ledger line of a workload: when it began, the line's instant, and its numbers of ok and dropped
// requests.
func told(workload, shard string, began, now, ok, dropped int) string {
	return fmt.Sprintf(`{"ledger":{"time_ns":%d,"began_ns":%d,"workload":%q,"target":"t","shard":%q,"slo":"","expected":%d,"in_flight":0,"waiting":0,`+
		`"outcomes":{"ok":%d},"dropped":{"overload":%d},"filtered":0,"good":%d,"eligible":%d}}`+"\n",
		at(now), at(began), workload, shard, ok+dropped, ok, dropped, ok, ok)
}

// foundRun holds the properties of a run that these tests compare.
type foundRun struct {
	Rows, Expected, Dropped int // Expected is −1 without a ledger
	Partial                 string
}

func foundRuns(runs []Run) (all []foundRun) {
	for _, r := range runs {
		f := foundRun{Rows: len(r.Rows), Expected: -1, Partial: strings.Join(r.Partial, "; ")}
		if r.Ledger != nil {
			f.Expected, f.Dropped = int(r.Ledger.Expected), int(r.Ledger.Unsent())
		}
		all = append(all, f)
	}
	return all
}

// The last ledger of each workload counts, and several workloads are added up. Another began_ns, or a repeated id,
// begins another run.
func TestReadLedgers(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []foundRun
	}{
		"head, a minute, end": {
			told("w", "0/1", 0, 0, 0, 0) + record("w/0/0", 1) + told("w", "0/1", 0, 60, 1, 2) + record("w/0/1", 61) + told("w", "0/1", 0, 65, 2, 4),
			[]foundRun{{2, 6, 4, ""}},
		},
		"two workloads, one of which a reload added": {
			told("b", "0/1", 0, 0, 0, 0) + record("b/0/0", 1) + told("a", "0/1", 50, 60, 0, 1) + told("b", "0/1", 0, 60, 1, 1) + record("a/0/0", 61) +
				told("a", "0/1", 50, 99, 1, 2) + told("b", "0/1", 0, 99, 1, 3),
			[]foundRun{{2, 7, 5, ""}},
		},
		"killed": {
			told("w", "0/1", 0, 0, 0, 0) + record("w/0/0", 1) + told("w", "0/1", 0, 60, 1, 3) + record("w/0/1", 101),
			[]foundRun{{2, 4, 3, "f: the last ledger is of 2027-01-15 08:01:00, 42s before the last request: what was never sent after it is not in this file"}},
		},
		"killed while a request was in flight": {
			strings.Replace(told("w", "0/1", 0, 60, 0, 3), `"expected":3,"in_flight":0`, `"expected":4,"in_flight":1`, 1),
			[]foundRun{{0, 4, 3, "f: the last ledger is of 2027-01-15 08:01:00, with requests not ended: 1; what came after it is not in this file"}},
		},
		"a file that was rotated": {
			told("w", "0/1", 0, 60, 7, 3) + record("w/0/7", 61) + told("w", "0/1", 0, 70, 8, 3),
			[]foundRun{{1, 11, 3, "f: the ledger counts 8 finished requests, 1 are in this file"}},
		},
		"the front was cut off": {
			record("w/0/0", 61) + told("w", "0/1", 0, 70, 1, 3),
			[]foundRun{{1, 4, 3, ""}},
		},
		"two runs of one name": {
			told("w", "0/1", 0, 0, 0, 0) + record("w/0/0", 1) + told("w", "0/1", 0, 5, 1, 0) +
				told("w", "0/1", 100, 100, 0, 0) + record("w/0/0", 101) + record("w/0/1", 102) + told("w", "0/1", 100, 105, 2, 9),
			[]foundRun{{1, 1, 0, ""}, {2, 11, 9, ""}},
		},
		"two runs of two names": {
			told("v", "0/1", 0, 0, 0, 0) + record("v/0/0", 1) + told("v", "0/1", 0, 5, 1, 0) +
				told("w", "0/1", 100, 100, 0, 0) + record("w/0/0", 101) + told("w", "0/1", 100, 105, 1, 9),
			[]foundRun{{1, 1, 0, ""}, {1, 10, 9, ""}},
		},
		"behind a run of an old replayd": {
			record("w/0/0", 1) + told("w", "0/1", 100, 100, 0, 0) + record("w/0/0", 101) + told("w", "0/1", 100, 105, 1, 2),
			[]foundRun{{1, -1, 0, ""}, {1, 3, 2, ""}},
		},
		"two runs of an old replayd": {
			record("w/0/0", 1) + record("w/0/1", 2) + record("w/0/0", 101) + record("w/0/1", 102) + record("w/0/2", 103),
			[]foundRun{{2, -1, 0, ""}, {3, -1, 0, ""}},
		},
		"a run that sent nothing":    {told("w", "0/1", 0, 5, 0, 4), []foundRun{{0, 4, 4, ""}}},
		"a process that did nothing": {told("w", "0/1", 0, 5, 0, 0), []foundRun{{0, 0, 0, ""}}},
		"nothing":                    {"", []foundRun{{0, -1, 0, ""}}},
	} {
		runs, err := ReadExport(strings.NewReader(c.text), "f")
		if diff := cmp.Diff(c.want, foundRuns(runs)); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}

// An invalid ledger is refused with its line number.
func TestLedgerFaults(t *testing.T) {
	good := told("w", "0/1", 0, 5, 4, 0)
	for _, c := range []struct{ old, text, want string }{
		{`"expected":4`, `"expected":5`, "f:1: ledger: want expected = finished + dropped + in flight + waiting, got 5 and 4"},
		{`"good":4`, `"good":5`, "f:1: ledger: want good ≤ ok"},
		{`"in_flight":0`, `"in_flight":-1`, "f:1: ledger: want counts of at least 0"},
		{`"ok":4`, `"fine":4`, `f:1: ledger: outcomes: want those of [ok `},
		{`"overload":0`, `"filtered":0`, `f:1: ledger: dropped: want those of [`},
		{`"expected":4`, `"expected":9000000000000000000`, "f:1: ledger: want counts of at most 1125899906842624"},
		{`"began_ns":18`, `"began_ns":-18`, "f:1: ledger: time_ns, began_ns: want Unix time in ns"},
		{`"good":4`, `"good":"4"`, "f:1: ledger.good: want an integer, got text"},
		{`"time_ns"`, `"version":2,"time_ns"`, "f:1: ledger: version: want at most 1, got 2, of a newer replayd"},
		{`{"ledger":{`, `{"ledger":[{`, "f: want a profile_export.jsonl or a file of records, got no line that is one: f:1: no JSON"},
	} {
		if _, err := ReadExport(strings.NewReader(strings.Replace(good, c.old, c.text, 1)), "f"); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: want %q, got %v", c.text, c.want, err)
		}
	}
}

// Ledgers of shards are added up, ledgers of two files of one shard are not. A missing shard is reported. A shard
// without a ledger leaves the ledger of the run unknown.
func TestMergeLedgers(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, lines ...string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	first := file("s0.jsonl", record("w/0/0", 1), told("w", "0/3", 0, 5, 1, 2))
	second := file("s1.jsonl", record("w/0/1", 1), told("w", "1/3", 0, 5, 1, 3))
	third := file("s2.jsonl", record("w/0/2", 1), told("w", "2/3", 0, 5, 1, 4))
	old := file("old.jsonl", record("w/0/9", 1))
	rotated := file("s0.jsonl.1", record("w/0/8", 0), told("w", "0/3", 0, 1, 1, 1))
	again := file("s0.jsonl.0", told("w", "0/3", 0, 1, 1, 1), record("w/0/0", 1), told("w", "0/3", 0, 5, 2, 2))
	twice := file("twice.jsonl", told("w", "0/1", 0, 5, 0, 1), told("w", "0/1", 9, 15, 0, 1))
	for _, c := range []struct {
		files []string
		want  foundRun
	}{
		{[]string{first, second, third}, foundRun{3, 12, 9, ""}},
		{[]string{first, third}, foundRun{2, 8, 6, "merge: not in these files: shard 1/3"}},
		{[]string{first, old}, foundRun{2, -1, 0, ""}},
		{[]string{rotated, again, second, third}, foundRun{4, 13, 9, s0Partial}},
	} {
		run, err := one((Source{Name: "m", Dir: dir, Files: c.files}).Read())
		if err != nil {
			t.Fatal(err)
		}
		run.Partial = cutDir(run.Partial, dir)
		if diff := cmp.Diff([]foundRun{c.want}, foundRuns([]Run{run})); diff != "" {
			t.Errorf("%q:\n%s", c.files, diff)
		}
	}
	if _, err := (Source{Name: "m", Files: []string{first, twice}}).Read(); err == nil || !strings.Contains(err.Error(), "want one shard of a run, got the records of 2 runs") {
		t.Errorf("%v", err)
	}
	alone, err := one((Source{Name: "m", Dir: dir, Files: []string{first}}).Read())
	if diff := cmp.Diff([]foundRun{{1, 3, 2, "a shard alone; not in these files: 1/3, 2/3"}}, foundRuns([]Run{alone})); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

// Each file of a shard that was rotated says that rows are missing.
const s0Partial = "s0.jsonl.0: the ledger counts 2 finished requests, 1 are in this file"

func cutDir(texts []string, dir string) (all []string) {
	for _, text := range texts {
		all = append(all, strings.ReplaceAll(text, dir+string(filepath.Separator), ""))
	}
	return all
}

// The ledger of an export is in the file of figures beside it. If there are several runs, the settings in that file
// belong to the run with the same ledger.
func TestLedgerBesideTheRequests(t *testing.T) {
	dir := t.TempDir()
	const figures = `{"input_config":{"cli_command":"replayd run x"},"was_cancelled":true,` +
		`"ledger":{"expected":%d,"outcomes":{"ok":1},"dropped":{"overload":%d},"good":1,"eligible":1,"in_flight":0,"waiting":0,"filtered":0}}`
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	export := write(ExportName, string(AppendExport(nil, Row{ID: "w/0/0", Outcome: measure.OK, Start: at(1), End: at(2)})))
	records := write(RecordsName, told("w", "0/1", 0, 5, 0, 1)+told("w", "0/1", 50, 50, 0, 0)+record("w/0/0", 51)+told("w", "0/1", 50, 55, 1, 30))

	write(JSONName, fmt.Sprintf(figures, 31, 30))
	run, err := one((Source{Name: "e", Dir: dir, Files: []string{export}}).Read())
	if err != nil || run.Ledger == nil || run.Ledger.Expected != 31 || run.Ledger.Unsent() != 30 || !run.Cut || run.Settings.Command == "" || run.Partial != nil {
		t.Errorf("%+v, %v", run, err)
	}
	runs, err := Source{Name: "r", Dir: dir, Files: []string{records}}.Read()
	if err != nil || len(runs) != 2 || runs[0].Settings.Command != "" || runs[1].Settings.Command == "" || runs[0].Name != "r, run 1" || runs[1].Name != "r, run 2" {
		t.Errorf("%+v, %v", runs, err)
	}

	write(JSONName, fmt.Sprintf(figures, 7, 30))
	run, err = one((Source{Name: "e", Dir: dir, Files: []string{export}}).Read())
	if err != nil || run.Ledger != nil || len(run.Partial) != 1 || !strings.Contains(run.Partial[0], "want expected = finished + dropped") {
		t.Errorf("%+v, %v", run, err)
	}
}
