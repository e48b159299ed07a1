package result

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// However a run's lines are divided among shards, merging restores the run: rows, sessions, spans and every figure.
func TestMergeShards(t *testing.T) {
	_, file := collected(t)
	lines := strings.SplitAfter(strings.TrimSpace(string(file))+"\n", "\n")
	lines = lines[:len(lines)-1]
	want, err := one(ReadExport(strings.NewReader(string(file)), "whole"))
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		shards := make([]Run, 1+random.IntN(4))
		texts := make([]string, len(shards))
		shardOf := map[string]int{}
		for _, line := range lines {
			_, key, _ := strings.Cut(line, `"x_correlation_id"`)
			key, _, _ = strings.Cut(key, ",") // a conversation stays on one shard
			if _, known := shardOf[key]; !known {
				shardOf[key] = random.IntN(len(shards))
			}
			texts[shardOf[key]] += line
		}
		for i := range shards {
			if shards[i], err = one(ReadExport(strings.NewReader(texts[i]), "shard")); err != nil {
				t.Fatal(err)
			}
		}
		got, err := MergeShards(shards)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.Rows, got.Rows, cmpopts.EquateNaNs(), cmpopts.IgnoreFields(Row{}, "Session")); diff != "" {
			t.Fatalf("-whole +merged:\n%s", diff)
		}
		if diff := cmp.Diff(sessions(want.Rows), sessions(got.Rows)); diff != "" {
			t.Fatalf("rows of one session -whole +merged:\n%s", diff)
		}
		if diff := cmp.Diff(Aggregate(want.Rows, settings), Aggregate(got.Rows, settings), cmpopts.EquateNaNs()); diff != "" {
			t.Fatalf("-whole +merged:\n%s", diff)
		}
	}
}

// sessions returns the row ids of each session, in the order of the rows.
func sessions(rows []Row) [][]string {
	by := map[int64][]string{}
	var order []int64
	for _, r := range rows {
		if by[r.Session] == nil {
			order = append(order, r.Session)
		}
		by[r.Session] = append(by[r.Session], r.ID)
	}
	var all [][]string
	for _, n := range order {
		all = append(all, by[n])
	}
	return all
}

func TestMergeRefusesDuplicates(t *testing.T) {
	run, _ := collected(t)
	a, b := run, run
	a.Name, b.Name = "shard0.jsonl", "shard1.jsonl"
	b.Rows = slices.Clone(run.Rows[:2])
	_, err := MergeShards([]Run{a, b})
	if want := `merge: want each request once, got 2 twice: request "w/0/0" is in shard0.jsonl and in shard1.jsonl`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := MergeShards(nil); err == nil {
		t.Error("want an error of no shards")
	}
}

func TestFindRuns(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{
		"a/run/" + ExportName, "b/run/" + RecordsName, "shards/shard0.jsonl", "shards/shard1.jsonl", "one.jsonl",
		"before/20260102T030405Z/" + ExportName, "nested/" + ExportName, "nested/deeper/" + ExportName, "empty/other.txt", ".hidden/" + ExportName,
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f := func(within bool, want []string, paths ...string) {
		t.Helper()
		for i := range paths {
			paths[i] = filepath.Join(dir, paths[i])
		}
		found, err := FindRuns(paths, within)
		if err != nil {
			t.Error(err)
		}
		var names []string
		for _, s := range found {
			names = append(names, s.Name)
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("%q (-want +got):\n%s", paths, diff)
		}
	}
	f(false, []string{"a/run", "b/run", filepath.Base(dir) + "/nested", filepath.Base(dir) + "/shards"}, "")
	f(true, []string{"nested", "deeper"}, "nested")
	f(false, []string{"nested", "one"}, "nested", "one.jsonl", "nested/")
	f(false, []string{"20260102T030405Z"}, "before")
	for path, want := range map[string]string{"empty": "found none", "missing": "no such file"} {
		if _, err := FindRuns([]string{filepath.Join(dir, path)}, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
	shards, err := FindRuns([]string{filepath.Join(dir, "shards")}, false)
	if err != nil || len(shards) != 1 || len(shards[0].Files) != 2 {
		t.Errorf("want one run of two shards, got %+v, %v", shards, err)
	}
}
