package trace

import (
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Read session by session, a file gives the same rows, each once: sessions in the order of their first rows, and the rows of a session
// in due order.
func TestRowsBySession(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 31))
		rows := randomGraphs(rng, 80)
		content, _ := written(t, Sessions, WriterOptions{BlockTokens: 16}, rows...)
		if seed%2 == 0 {
			content, _ = written(t, Mooncake, WriterOptions{BlockTokens: 16}, randomRows(rng, 80, 16)...)
		}
		f := open(t, content, Options{BySession: true})
		due := read(t, f, 0)
		place := map[int]int{}
		for i, r := range due {
			place[r.Number] = i
		}
		var got []Record
		last := -1
		for _, numbers := range f.Sessions() {
			if first := place[numbers[0]]; first < last {
				t.Fatalf("seed %d: the session of row %d comes after one that begins later", seed, numbers[0])
			} else {
				last = first
			}
			if !slices.IsSortedFunc(numbers, func(a, b int) int { return place[a] - place[b] }) {
				t.Fatalf("seed %d: rows %v are not in due order", seed, numbers)
			}
			var session string
			for i, n := range numbers {
				r, err := f.Row(n)
				if err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					session = r.Session
				}
				if r.Session != session || r.Session == "" && len(numbers) > 1 {
					t.Fatalf("seed %d: rows %v: want session %q, got %q", seed, numbers, session, r.Session)
				}
				if want := r.Session != "" && i == len(numbers)-1; r.Last != want || r.First != (r.Session != "" && i == 0) || r.Offset != f.Offset(n) {
					t.Fatalf("seed %d: row %d: got %+v", seed, n, r)
				}
				r.First, r.Last = false, false
				got = append(got, r)
			}
		}
		slices.SortFunc(got, func(a, b Record) int { return place[a.Number] - place[b.Number] })
		if diff := cmp.Diff(due, got); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
}

func TestRowOfAFileThatIsNotReadBySession(t *testing.T) {
	f := open(t, `{"input_length":1}`, Options{})
	want := f.name + ": row 0: want the number of a row of a file read by session"
	if _, err := f.Row(0); err == nil || err.Error() != want || f.Sessions() != nil {
		t.Errorf("got %v and %v\nwant %s", f.Sessions(), err, want)
	}
	f = open(t, `{"input_length":1}`, Options{BySession: true})
	if err := os.WriteFile(f.name, []byte(`{"input_length":1}`+"\n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Row(0); !errors.Is(err, ErrChanged) {
		t.Errorf("got %v", err)
	}
}
