//go:build peers

package peers_test

import (
	"cmp"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"replayd/test/outside"
)

// A request is a line of the simulated engine's log.
type request struct {
	ID           string `json:"id"`
	API          string `json:"api"`
	Stream       bool   `json:"stream"`
	Arrival      int64  `json:"arrival"`
	PromptTokens int    `json:"prompt_tokens"`
	MaxTokens    int    `json:"max_tokens"`
	OutputTokens int    `json:"output_tokens"`
	Messages     int    `json:"messages"`
	Body         string `json:"body_sha256"`
	Outcome      string `json:"outcome"`
	End          int64  `json:"end"`
}

// requests reads the log. What carries no id of replayd's is a probe.
func requests(t *testing.T, log string) (all []request) {
	t.Helper()
	lines, _ := outside.Lines[request](t, log)
	for _, r := range lines {
		if strings.Count(r.ID, "/") >= 2 {
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b request) int { return cmp.Compare(a.Arrival, b.Arrival) })
	return all
}

func (r request) warmup() bool { return strings.Contains(r.ID, "/warmup/") }

// measured are the requests that count.
func (s seen) measured() []request {
	return slices.DeleteFunc(slices.Clone(s.all), request.warmup)
}

// count demands so many requests, all of which ended well.
func (s seen) count(t *testing.T, want int) {
	t.Helper()
	got := s.measured()
	if len(got) != want {
		t.Errorf("want %d requests, the engine received %d", want, len(got))
	}
	for _, r := range got {
		if r.Outcome != "ok" {
			t.Errorf("%s: want it ok, got %s", r.ID, r.Outcome)
		}
	}
}

// lengths demands each prompt's and each limit's length, in order of the rows.
func (s seen) lengths(t *testing.T, want [][2]int) {
	t.Helper()
	for i, r := range byRow(t, s.measured()) {
		if i < len(want) && (r.PromptTokens != want[i][0] || r.MaxTokens != want[i][1]) {
			t.Errorf("row %d: want %d tokens in and a limit of %d, got %d and %d", i, want[i][0], want[i][1], r.PromptTokens, r.MaxTokens)
		}
	}
}

// byRow sorts requests by pass and row.
func byRow(t *testing.T, all []request) []request {
	t.Helper()
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b request) int {
		aPlace, bPlace := place(t, a.ID), place(t, b.ID)
		return slices.Compare(aPlace[:], bPlace[:])
	})
	return sorted
}

// place takes an id apart: its pass, workload/loop/row or workload/loop/row.pass, and its row.
func place(t *testing.T, id string) [2]int {
	t.Helper()
	row, pass, again := strings.Cut(id[strings.LastIndexByte(id, '/')+1:], ".")
	n, err := strconv.Atoi(row)
	p := 0
	if again && err == nil {
		p, err = strconv.Atoi(pass)
	}
	if err != nil {
		t.Fatalf("want workload/loop/row or workload/loop/row.pass, got %q", id)
	}
	return [2]int{p, n}
}

// order demands that requests came in the order of their rows. Two that went out at one instant over two connections may
// change places on the way: so it looks at those that are apart by as many as are in flight.
func (s seen) order(t *testing.T, apart int) {
	t.Helper()
	sorted := byRow(t, s.measured())
	for i := range sorted {
		if j := i + apart; j < len(sorted) && sorted[j].Arrival < sorted[i].Arrival {
			t.Errorf("%s came before %s", sorted[j].ID, sorted[i].ID)
		}
	}
}

// concurrency is how many requests were in the engine at once, by its own log: the most, and the share of the time between the
// first tenth and the last tenth of the requests in which it was that many or, for an instant, one fewer.
func concurrency(all []request) (most int, steady float64) {
	type edge struct {
		at   int64
		step int
	}
	var edges []edge
	for _, r := range all {
		edges = append(edges, edge{r.Arrival, 1}, edge{r.End, -1})
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.step, b.step)) })
	from, to := all[len(all)/10].Arrival, all[len(all)*9/10-1].Arrival
	held := map[int]int64{}
	now := 0
	for i, e := range edges {
		now += e.step
		most = max(most, now)
		if i+1 < len(edges) && e.at >= from && edges[i+1].at <= to {
			held[now] += edges[i+1].at - e.at
		}
	}
	var all64 int64
	for _, ns := range held {
		all64 += ns
	}
	return most, float64(held[most]) / float64(max(1, all64))
}

// instants demands that each request came at its row's time, in milliseconds since the first one's, within a tolerance for the
// way to the engine: the median is near 0, and none is far.
func (s seen) instants(t *testing.T, want []float64) {
	t.Helper()
	all := byRow(t, s.measured())
	if len(all) != len(want) {
		t.Fatalf("want %d requests, got %d", len(want), len(all))
	}
	var off []float64
	for i, r := range all {
		off = append(off, float64(r.Arrival-all[0].Arrival)/1e6-(want[i]-want[0]))
	}
	slices.Sort(off)
	if m := off[len(off)/2]; math.Abs(m) > 50 {
		t.Errorf("half of the requests are off by more than %.1f ms from their rows' times", m)
	}
	t.Logf("off their rows' times by %.2f ms at the median, %.2f to %.2f", off[len(off)/2], off[0], off[len(off)-1])
}

// artifact reads a JSON file of the run.
func artifact[T any](t *testing.T, dir, name string) (v T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}

// An exported is a line of profile_export.jsonl.
type exported struct {
	Metadata struct {
		Phase        string `json:"benchmark_phase"`
		RequestID    string `json:"x_request_id"`
		Conversation string `json:"conversation_id"`
		Turn         int    `json:"turn_index"`
		Cancelled    bool   `json:"was_cancelled"`
		Start        int64  `json:"request_start_ns"`
		CancelledAt  int64  `json:"cancellation_time_ns"`
	} `json:"metadata"`
	Metrics map[string]struct {
		Value float64 `json:"value"`
		Unit  string  `json:"unit"`
	} `json:"metrics"`
}

func export(t *testing.T, dir string) []exported {
	t.Helper()
	all, torn := outside.Lines[exported](t, filepath.Join(dir, "artifacts", "profile_export.jsonl"))
	if torn {
		t.Error("profile_export.jsonl: want whole lines")
	}
	return all
}

// says demands words on stdout, blanks apart.
func (s seen) says(t *testing.T, want ...string) {
	t.Helper()
	text := strings.Join(strings.Fields(s.said), " ")
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("want %q in the report, got\n%s", w, s.said)
		}
	}
}

// has demands files in a folder.
func has(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("want a file %s, got %v", name, err)
		}
	}
}
