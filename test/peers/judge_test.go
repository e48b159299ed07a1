//go:build peers

package peers_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"replayd/test/machine"
)

// count checks the number of requests, and that all of them ended ok.
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

// rows checks the requests against the lines of a trace: each once, with the lengths of its prompt and its limit.
func (s seen) rows(t *testing.T, want []traceRow) {
	t.Helper()
	s.count(t, len(want))
	for i, r := range byRow(t, s.measured()) {
		if i < len(want) && (r.PromptTokens != want[i].Input || r.MaxTokens != want[i].Output) {
			t.Errorf("row %d: want %d tokens in and a limit of %d, got %d and %d", i, want[i].Input, want[i].Output, r.PromptTokens, r.MaxTokens)
		}
	}
}

// streamed checks that all requests are streamed, or that none is.
func (s seen) streamed(t *testing.T, want bool) {
	t.Helper()
	for _, r := range s.measured() {
		if r.Stream != want {
			t.Fatalf("want streamed: %v, got %+v", want, r)
		}
	}
}

// order checks that requests came in the order of their rows.
func (s seen) order(t *testing.T, inFlight int) {
	t.Helper()
	for _, fault := range disorder(byRow(t, s.measured()), inFlight) {
		t.Error(fault)
	}
}

// oneByOne checks that requests came in the file's order, each after the end of the one before. Rows of a session may
// go before others.
func (s seen) oneByOne(t *testing.T, rows []traceRow) {
	t.Helper()
	s.atMost(t, 1)
	if !slices.ContainsFunc(rows, func(r traceRow) bool { return r.Session != "" }) {
		s.order(t, 1)
	}
}

// disorder finds rows that came before rows that they should follow. Two requests sent at one instant over two
// connections may overtake each other, so it compares rows that are inFlight apart.
func disorder(sorted []request, inFlight int) (faults []string) {
	for i := range sorted {
		if j := i + inFlight; j < len(sorted) && sorted[j].Arrival < sorted[i].Arrival {
			faults = append(faults, sorted[j].ID+" came before "+sorted[i].ID)
		}
	}
	return faults
}

// The lateness that instants allows for the network, for connections and for a busy machine.
const (
	halfWithin = 50 * time.Millisecond
	allWithin  = 500 * time.Millisecond
)

// instants checks that each request came at its row's time.
func (s seen) instants(t *testing.T, want []time.Duration) {
	t.Helper()
	all := byRow(t, s.measured())
	if len(all) != len(want) {
		t.Fatalf("want %d requests, got %d", len(want), len(all))
	}
	late := lateness(all, want)
	median, last := late[len(late)/2], late[len(late)-1]
	t.Logf("after its row's time: %v at the median, %v at most", median, last)
	if (median > halfWithin || last > allWithin) && machine.Measures(t, "the lateness of the requests") {
		t.Errorf("want half of the requests within %v of their rows' times and all within %v, got %v and %v", halfWithin, allWithin, median, last)
	}
}

// lateness returns, sorted, how much later than planned each request came, relative to the earliest. A request cannot
// come before its time, so the earliest tells best when the first row was due.
func lateness(all []request, want []time.Duration) (late []time.Duration) {
	for i, r := range all {
		late = append(late, time.Duration(r.Arrival-all[0].Arrival)-want[i])
	}
	slices.Sort(late)
	for i := len(late) - 1; i >= 0; i-- {
		late[i] -= late[0]
	}
	return late
}

// crowd returns how many requests were in an engine at once, by its log: the most, and the share of time of each number
// between the first and the last tenth of the arrivals.
func crowd(all []request) (most int, share map[int]float64) {
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
	share = map[int]float64{}
	now := 0
	for i, e := range edges {
		now += e.step
		most = max(most, now)
		if i+1 < len(edges) {
			if span := min(to, edges[i+1].at) - max(from, e.at); span > 0 {
				share[now] += float64(span) / float64(to-from)
			}
		}
	}
	return most, share
}

// atMost checks that the most requests in the engine at once were exactly want.
func (s seen) atMost(t *testing.T, want int) {
	t.Helper()
	if most, _ := crowd(s.measured()); most != want {
		t.Errorf("want %d at once at most, got %d", want, most)
	}
}

// shares formats a crowd.
func shares(of map[int]float64) string {
	var text []string
	for _, n := range slices.Sorted(maps.Keys(of)) {
		text = append(text, fmt.Sprintf("%d: %.3f %%", n, 100*of[n]))
	}
	return strings.Join(text, ", ")
}

// prefixes checks that the engine's cache hit, for each prompt, the prefix that its ids share with an earlier row, in
// whole blocks of the engine. The rows must have come one after the other.
func (s seen) prefixes(t *testing.T, rows []traceRow) {
	t.Helper()
	const block = 16 // the engine's
	hits, all := 0, byRow(t, s.measured())
	byArrival := func(a, b request) int { return cmp.Compare(a.Arrival, b.Arrival) }
	if !slices.IsSortedFunc(all, byArrival) && !machine.Measures(t, "hits in the cache, which the order of arrivals decides") {
		return
	}
	for i, r := range all {
		want := 0
		for _, earlier := range rows[:i] {
			same := sameStart(rows[i].IDs, earlier.IDs)
			want = max(want, min(same*512, rows[i].Input-1, earlier.Input)/block*block) // the last token is always computed
		}
		hits += want
		if r.CachedTokens != want {
			t.Errorf("%s: want %d of %d tokens found in the cache, got %d", r.ID, want, r.PromptTokens, r.CachedTokens)
		}
	}
	if hits == 0 {
		t.Error("want rows that share something, there are none")
	}
}

func sameStart(a, b []int64) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// says checks for words on stdout, ignoring blanks.
func (s seen) says(t *testing.T, want ...string) {
	t.Helper()
	text := strings.Join(strings.Fields(s.said), " ")
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("want %q in the report, got\n%s", w, s.said)
		}
	}
}
