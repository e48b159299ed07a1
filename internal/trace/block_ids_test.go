package trace

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// blocksIn returns the ids of the rows of a trace.
func blocksIn(t *testing.T, f *File) (all [][]uint64) {
	t.Helper()
	if err := f.Each(t.Context(), func(r *Record) { all = append(all, r.Blocks) }); err != nil {
		t.Fatal(err)
	}
	return all
}

// Recorders write ids as hexadecimal text, as numbers, and with pandas as 1.0.
func TestIDsAreNumbersOrTexts(t *testing.T) {
	one := func(id string) uint64 {
		t.Helper()
		f := open(t, `{"input_length":512,"hash_ids":[`+id+`]}`, Options{})
		return blocksIn(t, f)[0][0]
	}
	for _, equal := range [][]string{
		{"1", "1.0", "1e0", "10E-1"},
		{"-1", "18446744073709551615"},
		{`"9f8a01"`, `"\u0039f8a01"`},
		{"18446744073709551616"},
		{"36893488147419103232"},
		{"1.5", "1.50", "15e-1"},
		{`"1"`},
		{`"1.0"`},
		{`"a]"`},
		{`""`},
		{`"-1"`},
		{`"ü"`, `"\u00fc"`},
		{"1e300"},
	} {
		for _, id := range equal {
			if one(id) != one(equal[0]) {
				t.Errorf("want %s to be %s", id, equal[0])
			}
		}
	}
	distinct := map[uint64]string{}
	for _, id := range []string{"1", "-1", `"9f8a01"`, "18446744073709551616", "36893488147419103232", "1.5", `"1"`, `"1.0"`, `"a]"`, `""`, `"-1"`, `"ü"`, "1e300"} {
		if other, known := distinct[one(id)]; known {
			t.Errorf("want %s and %s to be two", id, other)
		}
		distinct[one(id)] = id
	}
}

// The hash is the same in each process: shards of a replay make the same text of one id. These are the first 8 bytes of SHA-256 of
// "t" and the text, little endian, by Python's hashlib.
func TestTextIDsAreTheSameEverywhere(t *testing.T) {
	f := open(t, `{"input_length":1024,"hash_ids":["9f8a01","77bb02"]}`, Options{})
	if got, want := blocksIn(t, f)[0], []uint64{0x264d4fca7cc10437, 0xdeffe0f00f489237}; !slices.Equal(got, want) {
		t.Errorf("want %#x, got %#x", want, got)
	}
}

func TestWhatIsWrittenOtherwiseIsTold(t *testing.T) {
	for _, c := range []struct {
		name    string
		lines   []string
		options Options
		want    []string
	}{
		{"ids of two kinds", []string{
			`{"input_length":5,"hash_ids":[1]}`, `{"input_length":5,"hash_ids":["1"]}`, `{"input_length":600,"hash_ids":[1,"1"]}`, `{"input_length":5}`,
		}, Options{}, []string{`t.jsonl: hash_ids are texts in 2 rows and numbers in 2: "1" and 1 are two ids`}},
		{"prefixes alone", []string{
			`{"input_length":100,"hash_ids":[1,2,3,4,5,6]}`, `{"input_length":64,"hash_ids":[1,2]}`, `{"input_length":64,"hash_ids":[1,2,3,4]}`,
		}, Options{BlockTokens: 16}, []string{"t.jsonl: rows with fewer ids than blocks: 2 of 3: the rest of such a prompt is text of its own, which no other row has"}},
		{"units", []string{
			`{"timestamp":"1753780607550317897","input_length":5}`, `{"timestamp":1753780607551000000.5,"input_length":5}`,
			`{"timestamp":1753780607552000,"input_length":5}`, `{"timestamp":"2025-07-29T09:16:47.553Z","input_length":5}`, `{"timestamp":1753780607554,"input_length":5}`,
		}, Options{}, []string{
			"t.jsonl: timestamps read as nanoseconds: 2 of 5, for they can be no milliseconds",
			"t.jsonl: timestamps read as microseconds: 1 of 5, for they can be no milliseconds",
			"t.jsonl: timestamps read as dates: 1 of 5, for they can be no milliseconds",
		}},
		{"text", []string{`{"timestamp":"0","input_length":5}`, `{"timestamp":" 12.5 ","input_length":5}`}, Options{}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := open(t, strings.Join(c.lines, "\n"), c.options)
			if !slices.Equal(f.Stats.Warnings, c.want) {
				t.Errorf("want %q, got %q", c.want, f.Stats.Warnings)
			}
		})
	}
}

// An instant is the same in each form that is certain.
func TestInstantsInOtherForms(t *testing.T) {
	var lines []string
	for _, at := range []string{
		`1753780607550`, `"1753780607550"`, `1753780607550.0`, `1753780607550000`, `"1753780607550000000"`,
		`"2025-07-29 09:16:47.55"`, `"2025-07-29T11:16:47.55+02:00"`, `"2025-07-29T09:16:47.550Z"`,
	} {
		lines = append(lines, fmt.Sprintf(`{"timestamp":%s,"input_length":5}`, at))
	}
	f := open(t, strings.Join(lines, "\n"), Options{})
	if f.Stats.Instants != 1 || f.Stats.First != 0 {
		t.Errorf("want one instant at offset 0, got %d from %v on", f.Stats.Instants, f.Stats.First)
	}
	f = open(t, `{"timestamp":"1500","input_length":5}`, Options{})
	if f.Stats.First != 1500*time.Millisecond {
		t.Errorf("want offset 1.5 s, got %v", f.Stats.First)
	}
}

// A trace whose writer gives ids to full blocks alone is read with the size of its blocks, and what is left of a prompt is its own.
func TestBlockSizeOfFullBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 5))
	for _, size := range blockSizes {
		for range 20 {
			var lines []string
			short := 0
			for range 10 + rng.IntN(30) {
				tokens := 1 + rng.IntN(20*size)
				ids := make([]string, tokens/size)
				for i := range ids {
					ids[i] = fmt.Sprintf(`"%x"`, i)
				}
				if len(ids) > 0 && tokens%size > 0 {
					short++
				}
				lines = append(lines, fmt.Sprintf(`{"input_length":%d,"hash_ids":[%s]}`, tokens, strings.Join(ids, ",")))
			}
			f := open(t, strings.Join(lines, "\n"), Options{})
			if f.Stats.BlockTokens != size || f.Stats.ShortRows != short || f.Stats.SurplusRows != 0 {
				t.Errorf("want blocks of %d, %d short rows, got %d, %d, %d with a surplus", size, short,
					f.Stats.BlockTokens, f.Stats.ShortRows, f.Stats.SurplusRows)
			}
		}
	}
}

// Bailian's blocks are documented: they are not guessed.
func TestBailiansBlocksAreKnown(t *testing.T) {
	const row = `{"chat_id":1,"parent_chat_id":-1,"timestamp":1,"input_length":1000,"output_length":1,"hash_ids":[1,2]}`
	if f := open(t, row, Options{}); f.Stats.BlockTokens != 16 || f.Stats.ShortRows != 1 {
		t.Errorf("want blocks of 16 and a short row, got %d, %d", f.Stats.BlockTokens, f.Stats.ShortRows)
	}
}

// llmtrafficlens 0.13.4 writes Bailian's rows with texts as chats and milliseconds.
func TestChatsByText(t *testing.T) {
	const row = `{"chat_id":%q,"parent_chat_id":%s,"turn":%d,"type":"glm-5","timestamp":%d,"input_length":40,"output_length":1,"hash_ids":[1,2]}` + "\n"
	f := open(t, fmt.Sprintf(row, "bfdb", "null", 1, 1753780607550)+fmt.Sprintf(row, "ce1d", `"bfdb"`, 2, 1753780608050)+
		fmt.Sprintf(row, "0e98", "null", 1, 1753780608550), Options{})
	if f.Stats.Format != Bailian || f.Stats.Sessions != 2 || f.Stats.Span != time.Second {
		t.Errorf("got %s, %d sessions, %v", f.Stats.Format, f.Stats.Sessions, f.Stats.Span)
	}
	want := []string{
		"t.jsonl: rows with fewer ids than blocks: 3 of 3: the rest of such a prompt is text of its own, which no other row has",
		`t.jsonl: keys that are not used: "type" (3 rows)`,
		"t.jsonl: timestamps read as milliseconds: 3 of 3, for they can be no seconds",
	}
	if !slices.Equal(f.Stats.Warnings, want) {
		t.Errorf("want %q, got %q", want, f.Stats.Warnings)
	}
}
