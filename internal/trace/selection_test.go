package trace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSelections(t *testing.T) {
	var b strings.Builder
	for i := range 1000 {
		session := ""
		if i%3 == 0 {
			session = fmt.Sprintf(`,"session_id":"s%d"`, i%30)
		}
		fmt.Fprintf(&b, "{\"timestamp\":%d,\"input_length\":%d%s}\n", 10+i, i+1, session)
	}
	f := open(t, b.String(), Options{})
	of := func(s Selection) []Record {
		t.Helper()
		next, err := s.Rows(f)
		if err != nil {
			t.Fatal(err)
		}
		return rest(t, next)
	}
	for _, c := range []struct {
		name        string
		s           Selection
		first, rows int
		at          time.Duration
	}{
		{"all", Selection{Sample: 1}, 0, 1000, 0},
		{"all, at their times", Selection{Sample: 1, KeepTimes: true}, 0, 1000, 10 * ms},
		{"from", Selection{Sample: 1, From: 110*ms - 1}, 100, 900, 0},
		{"from and to", Selection{Sample: 1, From: 110 * ms, To: 120 * ms, KeepTimes: true}, 100, 10, 110 * ms},
		{"rows", Selection{Sample: 1, FirstRow: 5, ToRow: 8}, 5, 3, 0},
		{"both", Selection{Sample: 1, FirstRow: 5, ToRow: 200, From: 110 * ms}, 100, 100, 0},
		{"none", Selection{Sample: 1, From: time.Hour}, -1, 0, 0},
	} {
		got := of(c.s)
		if len(got) != c.rows || c.rows > 0 && (got[0].Number != c.first || got[0].Offset != c.at) {
			t.Errorf("%s: got %d rows, want %d, the first %d at %v", c.name, len(got), c.rows, c.first, c.at)
		}
	}

	all := of(Selection{Sample: 0.3, Seed: 1})
	whole := map[string]int{}
	for _, r := range all {
		whole[r.Session]++
	}
	delete(whole, "")
	for session, turns := range whole {
		if turns < 33 { // each session has 33 or 34 of the 1000 rows
			t.Errorf("session %s: %d turns were kept, want all or none", session, turns)
		}
	}
	if n := len(all); n < 240 || n > 360 { // within 3 standard deviations, for sessions and single rows together
		t.Errorf("a sample of 0.3 has %d of 1000 rows", n)
	}
	if !cmp.Equal(all, of(Selection{Sample: 0.3, Seed: 1})) || cmp.Equal(all, of(Selection{Sample: 0.3, Seed: 2})) {
		t.Error("a sample is not its seed's")
	}
	// A larger sample has all rows of a smaller one.
	larger := of(Selection{Sample: 0.6, Seed: 1, KeepTimes: true})
	for _, r := range of(Selection{Sample: 0.3, Seed: 1, KeepTimes: true}) {
		if !slices.ContainsFunc(larger, func(l Record) bool { return l.Number == r.Number }) {
			t.Fatalf("row %d is in a sample of 0.3 and not in one of 0.6", r.Number)
		}
	}
}

func rest(t testing.TB, next func() (Record, error)) (all []Record) {
	t.Helper()
	for {
		r, err := next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			return all
		}
		all = append(all, r)
	}
}

func TestWrongSelections(t *testing.T) {
	f := open(t, `{"input_length":1}`, Options{})
	for _, c := range []struct {
		s    Selection
		want string
	}{
		{Selection{Sample: 1, From: ms}, "from, to: want a trace with timestamps, t.jsonl has none"},
		{Selection{Sample: 1, FirstRow: 3, ToRow: 3}, "rows: want 0 ≤ first < end, got 3:3"},
		{Selection{Sample: 1.5}, "sample: want a share above 0 and at most 1, got 1.5"},
		{Selection{}, "sample: want a share above 0 and at most 1, got 0"},
	} {
		if _, err := c.s.Rows(f); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	timed := open(t, `{"timestamp":1,"input_length":1}`, Options{})
	want := "from, to: want 0 ≤ from < to, got 2ms and 1ms"
	if _, err := (Selection{Sample: 1, From: 2 * ms, To: ms}).Rows(timed); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// files opens traces in one directory.
func files(t testing.TB, contents ...string) []*File {
	t.Helper()
	dir := t.TempDir()
	var all []*File
	for i, content := range contents {
		path := filepath.Join(dir, fmt.Sprintf("%c.jsonl", 'a'+i))
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Open(context.Background(), path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		f.name = filepath.Base(path)
		t.Cleanup(func() { _ = f.Close() })
		all = append(all, f)
	}
	return all
}

func TestMerge(t *testing.T) {
	a := `{"timestamp":0,"input_length":600,"hash_ids":[0,1],"session_id":"x"}` + "\n" + `{"timestamp":20,"input_length":600,"hash_ids":[0,7]}`
	b := `{"timestamp":10,"input_length":600,"hash_ids":[0,1],"session_id":"x"}` + "\n" + `{"timestamp":20,"input_length":3}`
	merged := func(share bool, contents ...string) []Record {
		t.Helper()
		next, err := Merge(files(t, contents...), share)
		if err != nil {
			t.Fatal(err)
		}
		return rest(t, next)
	}
	want := []Record{
		{Line: 1, InputTokens: 600, Blocks: []uint64{0, 1}, Session: "1:x"},
		{Line: 1, Offset: 10 * ms, InputTokens: 600, Blocks: []uint64{8, 9}, Session: "2:x"},
		{Number: 1, Line: 2, Offset: 20 * ms, InputTokens: 600, Blocks: []uint64{0, 7}},
		{Number: 1, Line: 2, Offset: 20 * ms, InputTokens: 3},
	}
	if diff := cmp.Diff(want, merged(false, a, b)); diff != "" {
		t.Error(diff)
	}
	for i := range want {
		want[i].Session = strings.TrimLeft(want[i].Session, "12:")
	}
	want[1].Blocks = []uint64{0, 1}
	if diff := cmp.Diff(want, merged(true, a, b)); diff != "" {
		t.Error(diff)
	}

	// Ids that are hashes: equal ids within a file stay equal, and different files share none.
	hashed := strings.ReplaceAll(a, "[0,1]", "[9223372036854775807,1]")
	got := merged(false, hashed, hashed, b)
	seen := map[uint64]int{}
	for i, r := range got {
		for _, id := range r.Blocks {
			seen[id] = i
		}
	}
	if len(got) != 6 || len(seen) != 4+4+2 || got[0].Blocks[0] != math64 {
		t.Errorf("got %d rows with %d ids: %v", len(got), len(seen), got)
	}

	long := strings.ReplaceAll(a, `"x"`, `"`+strings.Repeat("x", MaxSessionBytes)+`"`)
	if got := merged(false, a, long); len(got[1].Session) != 66 || !strings.HasPrefix(got[1].Session, "2:") {
		t.Errorf("a long session became %q", got[1].Session)
	}
}

const math64 = 1<<63 - 1

func TestFilesThatCannotBeMerged(t *testing.T) {
	_, err := Merge(files(t, lineOf(6758, 512), `{"timestamp":1,"input_length":1}`, lineOf(6758, 16)), true)
	want := "b.jsonl: want timestamps in all traces or in none, a.jsonl differs\nc.jsonl: want blocks of 512 tokens, as in a.jsonl, got 16"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
