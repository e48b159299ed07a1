package trace

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// accepted opens content and, when it is taken for good, holds what is streamed against what was counted.
func accepted(t *testing.T, content []byte, format Format, from int64) {
	path := filepath.Join(t.TempDir(), "t")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(t.Context(), path, Options{Format: format, MaxSpoolBytes: 1 << 20})
	if err != nil {
		return
	}
	defer f.Close()
	if err := f.Stats.WriteTable(io.Discard); err != nil {
		t.Fatal(err)
	}
	all := read(t, f, 0)
	if len(all) != f.Stats.Requests {
		t.Fatalf("%d rows were streamed, %d counted", len(all), f.Stats.Requests)
	}
	seen := make([]bool, len(all))
	var last time.Duration
	var after []Record
	for _, r := range all {
		if seen[r.Number] || r.Offset < last {
			t.Fatalf("row %d comes twice or at %v after %v", r.Number, r.Offset, last)
		}
		seen[r.Number], last = true, r.Offset
		if r.Offset >= time.Duration(from) {
			after = append(after, r)
		}
	}
	if last != f.Stats.Span {
		t.Fatalf("the last row is at %v, want %v", last, f.Stats.Span)
	}
	if got := read(t, f, time.Duration(from)); !cmp.Equal(got, after) {
		t.Fatalf("from %d: %d rows, want %d", from, len(got), len(after))
	}
}

func FuzzMooncake(f *testing.F) {
	mixed, err := os.ReadFile("testdata/mixed.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{
		string(mixed), threeRows, gzipped(f, threeRows), zstded(f, threeRows), "\xef\xbb\xbf" + threeRows + "\r\n",
		`{"input_length":1e3,"hash_ids":[18446744073709551615,-1]}`, `{"input_length":007}`, `{"session_id":"a\u0000","input_length":1}`,
		`{"timestamp":9000000000000,"timestamp":8.5,"input_length":1}` + "\n" + `{"timestamp":8,"session_id":"a","input_length":16777216}`,
	} {
		f.Add([]byte(s), int64(0))
		f.Add([]byte(s), int64(5_000_000))
	}
	f.Fuzz(func(t *testing.T, content []byte, from int64) { accepted(t, content, Auto, from) })
}

func FuzzAzure(f *testing.F) {
	for _, s := range []string{
		"2023-11-16 18:15:46.6805900,374,44\r\n2023-11-16 18:15:50.9951690,396,109\n", "2024-05-10 00:00:00.009930+00:00,1,2",
		"2023-11-16 18:15:47,1,1\n2023-11-16 18:15:46,1,1", "1970-01-01 00:00:00,1,1\n2254-12-31 23:59:59.999999999,16777216,1",
	} {
		f.Add([]byte(azureHeader+"\n"+s), int64(0))
		f.Add([]byte(azureHeader+"\n"+s), int64(1))
	}
	f.Fuzz(func(t *testing.T, content []byte, from int64) { accepted(t, content, Azure, from) })
}

// What the short way takes, encoding/json takes too, and to the same effect.
func FuzzPlainRow(f *testing.F) {
	for _, s := range []string{
		`{"timestamp":0,"input_length":6758,"output_length":500,"hash_ids":[0,1]}`, `{"input_length":5,"session_id":"a b","delay":7}`,
		`{ "input_length" : 5 ,	"hash_ids" : [ ] }`, `{"input_length":5,"input_length":6}`, `{"input_length":18446744073709551616}`,
		`{"input_length":5,}`, `{"input_length":05}`, `{"input_length":5}}`, `{"input_length":5,"hash_ids":[1,]}`, `{"input_length":5,"hash_ids":[18446744073709551615]}`,
		`{"timestamp":8999999999999,"input_length":16777216,"output_length":0,"output_length":1}`, `{"input_length":5,"hash_ids":[1],"hash_ids":[]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var plain, full row
		if !decodePlain(line, &plain) {
			return
		}
		if found := decodeJSON(line, &full); len(found) > 0 {
			t.Fatalf("taken by the short way only: %s: %v", line, found)
		}
		plain.Blocks, full.Blocks = append([]uint64{}, plain.Blocks...), append([]uint64{}, full.Blocks...)
		if diff := cmp.Diff(full, plain, cmp.AllowUnexported(row{})); diff != "" {
			t.Fatalf("%s: %s", line, diff)
		}
	})
}

func BenchmarkOpen(b *testing.B) {
	for _, name := range []string{"mooncake_conversation.jsonl", "azure_2023_conv.csv"} {
		b.Run(name, func(b *testing.B) {
			path := realTrace(b, name)
			for b.Loop() {
				f, err := Open(b.Context(), path, Options{})
				if err := errors.Join(err, f.Close()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkRows(b *testing.B) {
	f, err := Open(b.Context(), realTrace(b, "mooncake_conversation.jsonl"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	for b.Loop() {
		if got := len(read(b, f, 0)); got != f.Stats.Requests {
			b.Fatalf("got %d rows, want %d", got, f.Stats.Requests)
		}
	}
}
