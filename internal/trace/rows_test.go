package trace

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// disordered returns n timestamps in which no row is more than reach rows behind a row with a later timestamp.
func disordered(rng *rand.Rand, n, reach int) []int {
	at := make([]int, n)
	for i := range at {
		at[i] = i / 3 * 10 // three rows per tick
	}
	for i := 0; i < n; i += reach + 1 {
		part := at[i:min(i+reach+1, n)]
		rng.Shuffle(len(part), func(a, b int) { part[a], part[b] = part[b], part[a] })
	}
	return at
}

func jsonl(at []int) string {
	var b strings.Builder
	for _, ms := range at {
		fmt.Fprintf(&b, "{\"timestamp\":%d,\"input_length\":1}\n", ms)
	}
	return b.String()
}

func TestSortedAsByStableSort(t *testing.T) {
	starts := 20
	if testing.Short() {
		starts = 2
	}
	for seed, c := range []struct{ rows, reach int }{{1, 0}, {10, 3}, {5000, 0}, {5000, 1}, {5000, 1000}, {9000, Window}, {3000, 3000}, {12289, Window}} {
		rng := rand.New(rand.NewPCG(uint64(seed), 1))
		at := disordered(rng, c.rows, c.reach)
		want := make([]Record, len(at))
		for i, ms := range at {
			want[i] = Record{Number: i, Line: i + 1, Offset: time.Duration(ms) * time.Millisecond, InputTokens: 1}
		}
		sort.SliceStable(want, func(i, j int) bool { return want[i].Offset < want[j].Offset })

		f := open(t, jsonl(at), Options{})
		if sorted := slices.IsSorted(at); f.Stats.Sorted != sorted {
			t.Errorf("%+v: sorted is %v, want %v", c, f.Stats.Sorted, sorted)
		}
		if diff := cmp.Diff(want, read(t, f, 0)); diff != "" {
			t.Fatalf("%+v: %s", c, diff)
		}
		for range starts { // from random offsets
			from := time.Duration(rng.IntN(at[0]+c.rows*4)) * time.Millisecond
			first := sort.Search(len(want), func(i int) bool { return want[i].Offset >= from })
			got := read(t, f, from)
			if !slices.EqualFunc(got, want[first:], sameRow) {
				t.Fatalf("%+v from %v: %d rows, want %d from row %d on", c, from, len(got), len(want)-first, first)
			}
		}
	}
}

func sameRow(a, b Record) bool { return a.Number == b.Number && a.Offset == b.Offset }

func TestTooFarOutOfOrder(t *testing.T) {
	at := make([]int, Window+2)
	for i := range at {
		at[i] = 100
	}
	at[Window] = 50 // the first row is Window rows ahead of it
	if f := open(t, jsonl(at), Options{}); read(t, f, 0)[0].Number != Window {
		t.Errorf("the row that stands %d rows late does not come first", Window)
	}
	at[Window], at[Window+1] = 100, 50
	_, err := Open(t.Context(), write(t, "t.jsonl", jsonl(at)), Options{})
	want := "t.jsonl:4098: timestamp: want ≥ 100, that of line 1 more than 4096 rows before, got 50"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestTooFarOutOfOrderAzure(t *testing.T) {
	rows := azureHeader + "\n" + strings.Repeat("2023-11-16 18:15:46.68059,1,1\n", Window+1) + "2023-11-16 18:15:46.58059,1,1\n"
	_, err := Open(t.Context(), write(t, "t.csv", rows), Options{})
	want := "t.csv:4099: timestamp: want ≥ 2023-11-16 18:15:46.6805900, that of line 2 more than 4096 rows before, got 2023-11-16 18:15:46.5805900"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// Later turns without a timestamp keep their place when reading starts in the middle of the file.
func TestTurnsFromTheMiddle(t *testing.T) {
	var b strings.Builder
	const sessions = 2000
	for i := range sessions {
		fmt.Fprintf(&b, "{\"timestamp\":%d,\"session_id\":\"s%d\",\"input_length\":1}\n", i*10, i)
		if i > 0 {
			fmt.Fprintf(&b, "{\"session_id\":\"s%d\",\"input_length\":2}\n", i-1)
		}
	}
	f := open(t, b.String(), Options{})
	all := read(t, f, 0)
	for _, i := range []int{0, 1, 1500, sessions - 1} {
		from := time.Duration(i) * 10 * time.Millisecond
		first := slices.IndexFunc(all, func(r Record) bool { return r.Offset >= from })
		if got := read(t, f, from); !cmp.Equal(got, all[first:]) {
			t.Errorf("from %v: not the rows from %d on", from, first)
		}
	}
	for i := 0; i+1 < len(all); i += 2 { // a session's first turn, then its second, at one instant
		if i < len(all)-2 && (all[i].Session != all[i+1].Session || all[i].Offset != all[i+1].Offset || all[i+1].InputTokens != 2) {
			t.Fatalf("rows %d and %d: %v, %v, want two turns of a session at one instant", i, i+1, all[i], all[i+1])
		}
	}
	if f.Stats.Sessions != sessions {
		t.Errorf("got %d sessions, want %d", f.Stats.Sessions, sessions)
	}
}

func TestSeveralAtOnce(t *testing.T) {
	f := open(t, jsonl(disordered(rand.New(rand.NewPCG(1, 2)), 6000, 50)), Options{})
	want := read(t, f, 0)
	a, err := f.Rows(0)
	if err != nil {
		t.Fatal(err)
	}
	b, err := f.Rows(0)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range want {
		x, errX := a.Next()
		y, errY := b.Next()
		if !cmp.Equal(x, w) || !cmp.Equal(y, w) || errX != nil || errY != nil {
			t.Fatalf("got %v and %v, %v and %v, want twice %v", x, y, errX, errY, w)
		}
	}
}

func TestFileChanges(t *testing.T) {
	const line = `{"timestamp":1000,"input_length":1,"session_id":"a"}` + "\n"
	content := strings.Repeat(line, 5000)
	spaces := strings.Repeat(" ", len(line)-1) + "\n"
	pad := func(s string) string { return s + strings.Repeat(" ", len(line)-1-len(s)) + "\n" }
	at := 3000 * len(line) // far beyond the reader's buffer
	put := func(s string) string { return content[:at] + s + content[at+len(s):] }
	for _, c := range []struct {
		name, first, content string
		want                 string
		touch                bool // change the file's modification time
	}{
		{"longer", content, content + line, "t.jsonl: the trace changed after it was checked: want 265000 bytes, got 265053", false},
		{"written to", content, content, "t.jsonl: the trace changed after it was checked: it was written to at ", true},
		{"no JSON", content, put(pad("oops")), "t.jsonl:3001: the trace changed after it was checked: row: want a JSON object, got ", false},
		{"a row less", content, put(spaces), "t.jsonl: the trace changed after it was checked: it no longer has 5000 rows", false},
		{"a row more", content[:at] + spaces + content[at+len(line):], content, "t.jsonl: the trace changed after it was checked: it no longer has 4999 rows", false},
		{"earlier", content, put(pad(`{"timestamp":5,"input_length":1}`)), "t.jsonl:3001: the trace changed after it was checked: timestamp: want due order, got an earlier row", false},
		{"no timestamp", content, put(pad(`{"input_length":1}`)), "t.jsonl:3001: the trace changed after it was checked: timestamp: want milliseconds, got none", false},
		{"a line too long", content, content[:at] + strings.ReplaceAll(content[at:], "\n", " "), "t.jsonl:3001: the trace changed after it was checked: row: want a JSON object, got ", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := open(t, c.first, Options{})
			rows, err := f.Rows(0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := rows.Next(); err != nil {
				t.Fatal(err)
			}
			overwrite(t, f, c.content, c.touch)
			for err == nil {
				_, err = rows.Next()
			}
			if !errors.Is(err, ErrChanged) || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, want %s…", err, c.want)
			}
			if c.touch {
				if _, err := f.Rows(0); !errors.Is(err, ErrChanged) {
					t.Errorf("Rows: got %v, want ErrChanged", err)
				}
			}
		})
	}
}

// overwrite writes content into the same file.
func overwrite(t *testing.T, f *File, content string, touch bool) {
	t.Helper()
	if err := os.WriteFile("t.jsonl", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	when := f.modified
	if touch {
		when = when.Add(time.Second)
	}
	if err := os.Chtimes("t.jsonl", when, when); err != nil {
		t.Fatal(err)
	}
}

func TestUnsortedFileChanges(t *testing.T) {
	content := jsonl([]int{300, 200, 400})
	f := open(t, content, Options{})
	rows, err := f.Rows(0)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := rows.Next(); err != nil || r.Number != 1 {
		t.Fatalf("got %v, %v, want row 1", r, err)
	}
	overwrite(t, f, strings.ReplaceAll(content, "{", "["), false)
	if _, err := rows.Next(); !errors.Is(err, ErrChanged) || !strings.HasPrefix(err.Error(), "t.jsonl:1: ") {
		t.Errorf("got %v, want ErrChanged on line 1", err)
	}
}

func TestClosed(t *testing.T) {
	for _, at := range [][]int{{1, 2, 3}, {3, 2, 1}} {
		f := open(t, jsonl(at), Options{})
		rows, err := f.Rows(0)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := rows.Next(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("Next: %v", err)
		}
		if _, err := f.Rows(0); !errors.Is(err, os.ErrClosed) {
			t.Errorf("Rows: %v", err)
		}
	}
}
