package compare_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"replayd/internal/report"
	"replayd/internal/result"

	"replayd/bench/lab"
	"replayd/test/outside"
)

// said counts the verdicts on the pages of pairs.
type said struct{ pairs, requests, any, better, worse, short int }

func (s *said) add(o said) {
	s.pairs, s.requests, s.any = s.pairs+o.pairs, s.requests+o.requests, s.any+o.any
	s.better, s.worse, s.short = s.better+o.better, s.worse+o.worse, s.short+o.short
}

// read reads the page of two runs as a person does: the last column of the table of differences.
func read(t *testing.T, a, b result.Run) said {
	t.Helper()
	s := said{pairs: 1, requests: len(a.Rows) + len(b.Rows), short: 1}
	for _, section := range report.HTML([]result.Run{a, b}).Sections {
		if section.Short != "Differences" {
			continue
		}
		for _, row := range section.Tables[0].Rows {
			switch verdict := row[len(row)-1]; verdict {
			case "better":
				s.any, s.better, s.short = 1, 1, 0
			case "worse":
				s.any, s.worse, s.short = 1, 1, 0
			case "no difference shown":
				s.short = 0
			case "too short to judge":
			default:
				t.Errorf("a verdict %q", verdict)
			}
		}
		return s
	}
	t.Error("want a section of differences")
	return s
}

// pairs plays n pairs of a load. With onePlan both runs of a pair have the same instants and prompts, as two runs of a
// trace have. Otherwise they have only their rates in common.
func (l load) pairs(t *testing.T, seed uint64, n int, onePlan bool, speed float64) (all said) {
	for range n {
		plan := seed + 1
		if onePlan {
			plan = seed
		}
		a, b := l.play(t, seed, seed, 1), l.play(t, plan, seed+1, speed)
		a.Name, b.Name = "a", "b"
		all.add(read(t, a, b))
		seed += 2
	}
	return all
}

// most is the largest share of pages about equal runs that may have a verdict.
const most = 0.06

// slower is the speed of an engine that takes 10 % more time.
const slower = 1 / 1.1

// At most 6 % of pages about two equal runs have any verdict, by the upper 95 % bound
// of the share at full size, and an engine that is 10 % slower is mostly found.
// COMPARE_PAIRS is the number of pairs; COMPARE_RESULTS is the folder of the table.
func TestEqualRunsHaveNoVerdict(t *testing.T) {
	if testing.Short() {
		t.Skip("it computes for long, and what it runs at once has tests of its own")
	}
	n := outside.Knob(t, "COMPARE_PAIRS", 40, strconv.Atoi)
	all := loads()
	each := max(1, n/len(all))
	kinds := []struct {
		name    string
		onePlan bool
		speed   float64
		pairs   int
	}{
		{"own traffic, equal", false, 1, each},
		{"one trace, equal", true, 1, each},
		{"own traffic, 10 % slower", false, slower, max(1, each/4)},
		{"one trace, 10 % slower", true, slower, max(1, each/4)},
	}
	results := make([][]said, len(all))
	var wait sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, l := range all {
		results[i] = make([]said, len(kinds))
		for k, kind := range kinds {
			wait.Go(func() {
				free <- struct{}{}
				defer func() { <-free }()
				results[i][k] = l.pairs(t, uint64(1_000_000*(i+1)+100_000*k), kind.pairs, kind.onePlan, kind.speed)
			})
		}
	}
	wait.Wait()

	table := &lab.Table{
		Title: fmt.Sprintf("Pages that compare two runs of the simulated engine in virtual time, 2 minutes each if nothing else is said: %d pairs of equal runs and %d with an engine that is 10 %% slower "+
			"for each load, with fixed seeds. Runs of one trace are compared row by row too. “Any”: pages with at least one “better” or “worse”. “Found”: pages with at least one “worse”.", 2*kinds[0].pairs, 2*kinds[2].pairs),
		Head: []string{"load", "requests a run", "own traffic, equal: any", "one trace, equal: any", "own traffic: found", "“better”", "one trace: found", "“better”", "too short to judge"},
	}
	total := make([]said, len(kinds))
	for i, l := range all {
		table.Add(line(l.name, results[i])...)
		for k := range kinds {
			total[k].add(results[i][k])
		}
	}
	table.Add(line("all", total)...)
	for k, kind := range kinds[:2] {
		s := total[k]
		bound := upper(s.any, s.pairs)
		table.Note("%s: %d of %d pages have any verdict, %.2f %%; the upper 95 %% bound of the share is %.2f %%.", kind.name, s.any, s.pairs, 100*share(s.any, s.pairs), 100*bound)
		if s.pairs >= 1000 && bound > most || 1-atMost(s.any-1, s.pairs, most) < 0.01 { // with few pairs: so many are unlikely
			t.Errorf("%s: %d of %d pages have a verdict, want at most 6 %%", kind.name, s.any, s.pairs)
		}
	}
	for k, least := range map[int]float64{2: 0.6, 3: 0.8} {
		if found := share(total[k].worse, total[k].pairs); found < least {
			t.Errorf("%s: found in %.0f %% of pairs, want %.0f %%", kinds[k].name, 100*found, 100*least)
		}
	}
	t.Logf("\n%s", table)
	if dir := os.Getenv("COMPARE_RESULTS"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, "compare.md"), []byte("# compare\n\n"+table.String()), 0o644); err != nil {
			t.Error(err)
		}
	}
}

// line returns a row of the table.
func line(name string, of []said) []string {
	var every said
	for _, s := range of {
		every.add(s)
	}
	percent := func(n, of int) string { return fmt.Sprintf("%.1f %%", 100*share(n, of)) }
	return []string{
		name, strconv.Itoa(every.requests / (2 * every.pairs)), percent(of[0].any, of[0].pairs), percent(of[1].any, of[1].pairs),
		percent(of[2].worse, of[2].pairs), percent(of[2].better, of[2].pairs), percent(of[3].worse, of[3].pairs), percent(of[3].better, of[3].pairs), percent(every.short, every.pairs),
	}
}

func share(n, of int) float64 { return float64(n) / float64(of) }
