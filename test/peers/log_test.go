//go:build peers

package peers_test

import (
	"cmp"
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
	CachedTokens int    `json:"cached_tokens"`
	MaxTokens    int    `json:"max_tokens"`
	OutputTokens int    `json:"output_tokens"`
	Messages     int    `json:"messages"`
	Body         string `json:"body_sha256"`
	Status       int    `json:"status"`
	Outcome      string `json:"outcome"`
	End          int64  `json:"end"`
}

// requests reads the log, in order of arrival. Requests without an id of replayd's are probes.
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

// measured returns the requests that count.
func (s seen) measured() []request { return slices.DeleteFunc(slices.Clone(s.all), request.warmup) }

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

// place returns the pass and the row of an id, workload/loop/row or workload/loop/row.pass.
func place(t interface{ Fatalf(string, ...any) }, id string) [2]int {
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

func distinct(all []request) int {
	bodies := map[string]bool{}
	for _, r := range all {
		bodies[r.Body] = true
	}
	return len(bodies)
}
