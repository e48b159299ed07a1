package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name, content string
		format        Format
		want          string
	}{
		{"empty", "\n", SingleTurn, "set: want at least one prompt, got none"},
		{"no object", "[1]\n{\nnull", SingleTurn, `set:1: row: want a JSON object, got "[1]"
set:2: row: want a JSON object, got "{"
set:3: row: want a JSON object, got "null"`},
		{"fields", `{"text": 5, "delay": -1, "output_length": 0.5, "extra": [], "role": "", "image": "x.png"}` + "\n" + `{"texts": [5]}` + "\n" + `{"text": ""}`, SingleTurn, `set:1: image: want text alone, got "\"x.png\""
set:1: delay: want milliseconds from 0 to 86400000, got "-1"
set:1: output_length: want an integer from 1 to 16777216, got "0.5"
set:1: role: want a string that is not empty, got "\"\""
set:1: extra: want an object, got "[]"
set:1: text: want a string, got "5"
set:1: text: want a text, got none
set:2: texts: want a list of strings, or of objects with contents, got "[5]"
set:2: text: want a text, got none
set:3: text: want a string that is not empty, got "\"\""
set:3: text: want a text, got none`},
		{"conversations in the wrong format", `{"turns": [{"text": "x"}]}`, SingleTurn, `set:1: turns: want one prompt a line: conversations are for the format multi_turn, got "[{\"text\": \"x\"}]"`},
		{"no turns", `{"turns": []}` + "\n" + `{"text": "x"}` + "\n" + `{"turns": [{"text": "x"}, {"audio": "x"}]}`, MultiTurn, `set:1: turns: want a list of turns, got "[]"
set:2: turns: want a list of turns, got ""
set:3: turns[1]: audio: want text alone, got "\"x\""
set:3: turns[1]: text: want a text, got none`},
		{"sessions in a pool", `{"text": "x", "delay": 1}`, RandomPool, `set:1: delay: want none in a pool, got "1"`},
		{"an empty pool", "\n", RandomPool, "set: want at least one prompt, got none"},
		{"no list", `{"id": 1}`, ShareGPT, "set: want a JSON list of conversations, got something else"},
		{"nothing", ``, ShareGPT, "set: want a JSON list of conversations, got something else"},
		{"no JSON", `x`, ShareGPT, "set: want a JSON list of conversations, got invalid character 'x' looking for beginning of value"},
		{"wrong types", `[{"id": 5}, {"conversations": [{"value": 5}]}]`, ShareGPT, "set: entry 0: id: want a string, got number\nset: entry 1: conversations.value: want a string, got number"},
		{"cut short", `[{"conversations": [{"value": "a"}, {"value": "b"}]}, {"conv`, ShareGPT, "set: entry 1: byte 53: want a conversation, got unexpected EOF"},
		{"cut between entries", `[{"conversations": [{"value": "a"}, {"value": "b"}]}`, ShareGPT, "set: want a whole JSON list, got EOF"},
		{"none of use", `[{"conversations": [{"value": "a"}]}]`, ShareGPT, "set: want at least one prompt, got none: conversations without a prompt and an answer are left out: 1"},
		{"cut gzip", "\x1f\x8b\x08", SingleTurn, "set: want a whole gzip stream, got unexpected EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Open(t.Context(), c.format, write(t, "set", c.content), Options{})
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestFaultsAreCounted(t *testing.T) {
	_, err := Open(t.Context(), SingleTurn, write(t, "set", strings.Repeat("{}\n", 50)), Options{})
	lines := strings.Split(fmt.Sprint(err), "\n")
	if len(lines) != 21 || lines[19] != "set:20: text: want a text, got none" || lines[20] != "50 errors in all, the first 20 are shown" {
		t.Errorf("got %d lines: %v", len(lines), err)
	}
}

func TestLongEntries(t *testing.T) {
	long := strings.Repeat("x", MaxEntryBytes)
	_, err := Open(t.Context(), SingleTurn, write(t, "set", `{"text":"`+long+`"}`), Options{})
	if want := "set: want lines of at most 8388608 bytes, got a longer one"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = Open(t.Context(), ShareGPT, write(t, "set", `[{"id":"a"},{"id":"`+long+long+`"}]`), Options{})
	if want := "set: entry 1: want at most 8388608 bytes, got more"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	// Blanks after an entry are not part of it.
	last := `{"conversations":[{"value":"` + long[:MaxEntryBytes-150] + `"},{"value":"a"}]}`
	if _, err := Open(t.Context(), ShareGPT, write(t, "set", "["+last+strings.Repeat(" ", 1000)+"]"), Options{}); err != nil {
		t.Errorf("an entry of %d bytes: %v", len(last), err)
	}
}

// The size limit applies while a file is read, because conversations become rows only at the end.
func TestTooMuch(t *testing.T) {
	for name, read := range map[string]func(b *builder) error{
		"conversations": func(b *builder) error {
			return b.lines(strings.NewReader(`{"turns":[{"text":"hello","answer":"well"}]}`), "set", b.multi)
		},
		"prompts": func(b *builder) error { return b.lines(strings.NewReader(`{"text":"hello"}`), "set", b.single) },
		"a pool":  func(b *builder) error { return b.randomPool(write(t, "set", `{"text":"hello"}`)) },
	} {
		b := newBuilder(t.Context(), Options{})
		b.bytes = MaxBytes - 4
		if err, want := read(b), "set: want at most 1073741824 bytes of prompts, with 512 for each row, got more"; err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
}

// A small file with a conversation of very many turns is refused before its rows take the memory. Its rows would have 3 GB.
func TestManyTurns(t *testing.T) {
	line := `{"turns":[` + strings.Repeat(`{"text":"a"},`, 9999) + `{"text":"a"}]}`
	_, err := Open(t.Context(), MultiTurn, write(t, "set", line), Options{})
	want := "set:1: want conversations whose rows are at most 64 times as large as the file, or 67108864 bytes, got more: they have too many turns"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// What a compressed file becomes is bounded.
func TestMuchToRead(t *testing.T) {
	b := &builder{hash: sha256.New(), read: maxRead - 1}
	if n, err := b.Write([]byte("a")); n != 1 || err != nil {
		t.Errorf("the last byte: %d, %v", n, err)
	}
	if n, err := b.Write([]byte("a")); n != 0 || err == nil || err.Error() != "want at most 17179869184 bytes, decompressed, got more" {
		t.Errorf("one more: %d, %v", n, err)
	}
}

func TestPaths(t *testing.T) {
	const source = "(it can be had from https://huggingface.co/datasets/anon8231489123/ShareGPT_Vicuna_unfiltered/resolve/main/ShareGPT_V3_unfiltered_cleaned_split.json)"
	write(t, "set", "")
	if err := os.Mkdir("folder", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		format     Format
		path, want string
	}{
		{ShareGPT, "", "dataset sharegpt: want the path of its file, got none " + source},
		{ShareGPT, "nowhere", "open nowhere: no such file or directory " + source},
		{MultiTurn, "folder", "folder: want a file, got a directory"},
		{RandomPool, "folder", "folder: want 1 to 1024 files, got 0"},
		{RandomPool, "nowhere", "stat nowhere: no such file or directory"},
	} {
		if _, err := Open(t.Context(), c.format, c.path, Options{}); err == nil || err.Error() != c.want {
			t.Errorf("%s %q: got  %v\nwant %s", c.format, c.path, err, c.want)
		}
	}
	if _, err := Open(t.Context(), SingleTurn, "nowhere", Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for format, content := range map[Format]string{SingleTurn: `{"text":"x"}`, ShareGPT: conversations} {
		if _, err := Open(over, format, write(t, "set", content), Options{}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", format, err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	for _, s := range []string{
		conversations, `{"text": "a", "texts": ["b", "c"], "delay": 1e3}`, `{"session_id":"a","turns":[{"role":"system","text":"x"},{"text":"\ud800"}]}`,
		`{"texts": [{"contents": [""]}]}`, `[{"conversations":[{"from":"human","value":"a"},{"from":"human","value":"b"},{"from":"gpt","value":"c"}]}]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "set")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, format := range []Format{ShareGPT, SingleTurn, MultiTurn, RandomPool} {
			for _, turns := range []bool{false, true} {
				s, err := Open(t.Context(), format, path, Options{Turns: turns, Draws: 5})
				if err != nil {
					continue
				}
				for i, r := range s.Records() {
					if r.Number != i || (r.Text == "") == (r.Messages == nil) || r.Messages != nil && !json.Valid(r.Messages) {
						t.Fatalf("%s: row %d is %+v", format, i, r)
					}
				}
			}
		}
	})
}
