package trace

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// named are columns that the tests name.
var named = Columns{Timestamp: "at", Input: "in", Output: "out", Session: "who"}

func TestTables(t *testing.T) {
	const us = time.Microsecond
	unit := func(unit string) Columns { return Columns{Timestamp: "at", Input: "in", Unit: unit} }
	for _, c := range []struct {
		name, content string
		columns       Columns
		want          []Record // without numbers and lines
		shown         string   // Stats.Columns
		warnings      []string // of Stats
	}{
		{
			"Vidur", "arrived_at,num_prefill_tokens,num_decode_tokens\n5.8926549999999995,91,16\n6.5,381,84",
			Columns{},
			[]Record{{InputTokens: 91, OutputTokens: 16}, {Offset: 607345 * us, InputTokens: 381, OutputTokens: 84}},
			"timestamp=arrived_at,input=num_prefill_tokens,output=num_decode_tokens,unit=s", nil,
		},
		{
			"Vidur without times", "num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio\n3772,54,3826,69.8",
			Columns{},
			[]Record{{InputTokens: 3772, OutputTokens: 54}},
			"input=num_prefill_tokens,output=num_decode_tokens", nil,
		},
		{
			"SplitwiseSim", "request_id,request_type,application_id,arrival_timestamp,batch_size,prompt_size,token_size\n0,2,0,1,1,4096,32\n1,2,0,3,1,2048,8",
			Columns{},
			[]Record{{InputTokens: 4096, OutputTokens: 32}, {Offset: 2000 * ms, InputTokens: 2048, OutputTokens: 8}},
			"timestamp=arrival_timestamp,input=prompt_size,output=token_size,unit=s", nil,
		},
		{
			"RAGPulse", `{"timestamp": "82", "input_length": 3112, "output_length": 192, "hash_ids": {"sys_prompt": [8302], "passages_ids": [7398]}, "session_id": "17-a"}`,
			Columns{},
			[]Record{{Offset: 82 * time.Second, InputTokens: 3112, OutputTokens: 192}},
			"timestamp=timestamp,input=input_length,output=output_length,unit=s",
			[]string{"t.jsonl: the first row is due after 1m22s, for timestamps are read as seconds: from 1m22s on nothing is waited for (--from, trace.from)"},
		},
		{
			"Azure in another order, in quotes, with other columns", `"GeneratedTokens", "x" ,TIMESTAMP,"ContextTokens"` +
				"\n44,,2023-11-16 18:15:46.6805900,374\n\"109\",\"a,b\",\"2023-11-16T18:15:50.9951690Z\",396",
			Columns{},
			[]Record{{InputTokens: 374, OutputTokens: 44}, {Offset: 4314579 * us, InputTokens: 396, OutputTokens: 109}},
			"timestamp=TIMESTAMP,input=ContextTokens,output=GeneratedTokens", nil,
		},
		{
			"Azure with images", "TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n2024-10-15 00:00:00.5,3,20,5",
			Columns{},
			[]Record{{InputTokens: 20, OutputTokens: 5}},
			"timestamp=TIMESTAMP,input=ContextTokens,output=GeneratedTokens",
			[]string{"t.jsonl: column NumImages is not read: images are not sent"},
		},
		{
			"Azure with seconds", azureHeader + "\n2162.0,1,2\n2162.25,3,4",
			Columns{},
			[]Record{{InputTokens: 1, OutputTokens: 2}, {Offset: 250 * ms, InputTokens: 3, OutputTokens: 4}},
			"timestamp=TIMESTAMP,input=ContextTokens,output=GeneratedTokens,unit=s", nil,
		},
		{
			"failed requests", azureHeader + "\n1,5,0\n2,0,0\n3,3,4\n4,4,0.0",
			Columns{},
			[]Record{{InputTokens: 3, OutputTokens: 4}},
			"timestamp=TIMESTAMP,input=ContextTokens,output=GeneratedTokens,unit=s",
			[]string{"t.jsonl: requests that failed, with answers of 0 tokens, are left out: 3"},
		},
		{
			"BOM, CRLF, blanks", "\xef\xbb\xbf who , in , at , out \r\n\r\n a b ,\t5 , 7.0 , 1e1 \r\n,6,7,2\r\n", named,
			[]Record{{InputTokens: 5, OutputTokens: 10, Session: "a b"}, {InputTokens: 6, OutputTokens: 2}},
			"timestamp=at,input=in,output=out,session=who,unit=s", nil,
		},
		{
			"quotes", "in,\"say \"\"what\"\", out\",who,x\n \"5\" ,\"6\",\" q\"\"\"\"r \",7\" disk\n8,9,\"a,b\",\"\"",
			Columns{Input: "in", Session: "who", Output: `say "what", out`},
			[]Record{{InputTokens: 5, OutputTokens: 6, Session: `q""r`}, {InputTokens: 8, OutputTokens: 9, Session: "a,b"}},
			`input=in,"output=say ""what"", out",session=who`, nil,
		},
		{
			"tabs, with an index that has no name, and empty cells at the ends", "\tat\tin\tout\twho\n0\t1\t5\t6\t\n\t2\t7\t8\ta\n", named,
			[]Record{{InputTokens: 5, OutputTokens: 6}, {Offset: time.Second, InputTokens: 7, OutputTokens: 8, Session: "a"}},
			"timestamp=at,input=in,output=out,session=who,unit=s", nil,
		},
		{
			"semicolons and commas", "at;in;a,b,c,d,e;out;who\n1;5;x,y;6;\"a;\"\"b\"\"\"", named,
			[]Record{{InputTokens: 5, OutputTokens: 6, Session: `a;"b"`}},
			"timestamp=at,input=in,output=out,session=who,unit=s", nil,
		},
		{
			"JSON lines", `{"at":0.5,"in":5,"out":"6","who":"a","x":[1]}` + "\n" + `{"who":null,"out":7.0,"in":" 8 ","at":"2.5"}` + "\n" +
				`{"at":3,"in":9,"out":0,"who":17}` + "\n" + `{"at":3e0,"in":9,"out":1,"who":17}`, named,
			[]Record{
				{Offset: 500 * ms, InputTokens: 5, OutputTokens: 6, Session: "a"},
				{Offset: 2500 * ms, InputTokens: 8, OutputTokens: 7},
				{Offset: 3000 * ms, InputTokens: 9, OutputTokens: 1, Session: "17"},
			},
			"timestamp=at,input=in,output=out,session=who,unit=s",
			[]string{"t.jsonl: requests that failed, with answers of 0 tokens, are left out: 1"},
		},
		{"JSON lines of another trace's format", `{"timestamp":1,"input_length":2}`, Columns{Input: "timestamp"}, []Record{{InputTokens: 1}}, "input=timestamp", nil},
		{"a single column", "in\n5\n6", Columns{Input: "in"}, []Record{{InputTokens: 5}, {InputTokens: 6}}, "input=in", nil},
		{
			"dates whatever the unit", "at,in\n2024-02-29T23:59:59.9999999999+01:30,1\n2024-02-29 22:30:00Z,2\n2024-02-29 22:30:00.25 UTC,3\n2024-02-29T20:30:00,4\n2024-02-29 17:31:00 -0500,5\n2024-03-01T00:32:00.5+02,6",
			unit("ns"),
			[]Record{
				{InputTokens: 4},
				{Offset: 2*time.Hour - 1, InputTokens: 1},
				{Offset: 2 * time.Hour, InputTokens: 2},
				{Offset: 2*time.Hour + 250*ms, InputTokens: 3},
				{Offset: 2*time.Hour + time.Minute, InputTokens: 5},
				{Offset: 2*time.Hour + 2*time.Minute + 500*ms, InputTokens: 6},
			},
			"timestamp=at,input=in", nil,
		},
		{"Unix seconds", "at,in\n1731234567.8912345,1\n1731234568.8912346,2", unit(""), []Record{{InputTokens: 1}, {Offset: time.Second + 100, InputTokens: 2}}, "timestamp=at,input=in,unit=s", nil},
		{"seconds with an exponent", "at,in\n1.5e3,1\n15.01E2,2", unit("s"), []Record{{InputTokens: 1}, {Offset: time.Second, InputTokens: 2}}, "timestamp=at,input=in,unit=s", nil},
		{"milliseconds", "at,in\n1696000000123,1\n1696000000123.5,2", unit("ms"), []Record{{InputTokens: 1}, {Offset: 500 * us, InputTokens: 2}}, "timestamp=at,input=in,unit=ms", nil},
		{"microseconds", "at,in\n1696000000123456,1\n1696000000123457.25,2", unit("us"), []Record{{InputTokens: 1}, {Offset: 1250, InputTokens: 2}}, "timestamp=at,input=in,unit=us", nil},
		{"nanoseconds", "at,in\n1753780607550317897,1\n1753780607550317999.5,2", unit("ns"), []Record{{InputTokens: 1}, {Offset: 103, InputTokens: 2}}, "timestamp=at,input=in,unit=ns", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := open(t, c.content, Options{Columns: c.columns})
			got := read(t, f, 0)
			for i := range got {
				got[i].Number, got[i].Line = 0, 0
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if f.Stats.Columns != c.shown {
				t.Errorf("got %q, want %q", f.Stats.Columns, c.shown)
			}
			if diff := cmp.Diff(c.warnings, f.Stats.Warnings); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFormatsOfTables(t *testing.T) {
	for content, want := range map[string]Format{
		azureHeader + "\n1,1,1": Azure, burstHeader + "\n1,m,1,1,1,x": BurstGPT, "num_decode_tokens,num_prefill_tokens\n1,1": Named,
		`{"TIMESTAMP":1,"ContextTokens":1,"GeneratedTokens":1}`: Azure, `{"timestamp":1,"input_length":1}`: Mooncake,
	} {
		for _, named := range []Format{Auto, want} {
			if f := open(t, content, Options{Format: named}); f.Stats.Format != want {
				t.Errorf("%s: got %s, want %s", content, f.Stats.Format, want)
			}
		}
	}
}

func TestFaultsOfTables(t *testing.T) {
	const head = "at,in,out,who\n"
	const when = "or a date such as 2006-01-02 15:04:05.999Z"
	many := strings.Repeat("c,", 25)
	for _, c := range []struct {
		name, content string
		options       Options
		want          string
	}{
		{"a column missing", "at,in,who\n1,1,a", Options{}, `t.csv:1: header: want columns "out" (output), got "at", "in", "who"`},
		{"all columns missing", "a;b\n1;1", Options{}, `t.csv:1: header: want columns "at" (timestamp), "in" (input), "out" (output), "who" (session), got "a", "b"`},
		{"another case", "at,In,out,who\n1,1,1,a", Options{}, `t.csv:1: header: want columns "in" (input), got "at", "In", "out", "who"`},
		{"a column twice", "at,in,out,who,in\n1,1,1,a,1", Options{}, `t.csv:1: header: want columns "in" (input) once, got "at", "in", "out", "who", "in"`},
		{"many other columns", many + "d\n", Options{}, `t.csv:1: header: want columns "at" (timestamp), "in" (input), "out" (output), "who" (session), got ` + strings.Repeat(`"c", `, 19) + `"c" and 6 more`},
		{"no header", "1,2,3,a", Options{}, `t.csv:1: header: want columns "at" (timestamp), "in" (input), "out" (output), "who" (session), got "1", "2", "3", "a"`},
		{"quotes in the header that do not end", "at,in,out,\"who\n1,2,3,a", Options{}, `t.csv:1: header: want columns "who" (session), got "at", "in", "out"`},
		{"only a header", head, Options{}, "t.csv: want at least one row, got none"},
		{"only failed requests", head + "1,1,0,a", Options{}, "t.csv: want at least one row, got none"},
		{"empty cells", head + ",,,\n", Options{}, "t.csv:2: at: want seconds from 0 to 9000000000, " + when + `, got ""` + "\n" +
			`t.csv:2: in: want an integer ≥ 1, got ""` + "\n" + `t.csv:2: out: want an integer ≥ 1, got ""`},
		{"an empty cell in quotes", head + "1,\" \",1,", Options{}, `t.csv:2: in: want an integer ≥ 1, got ""`},
		{"no numbers", head + "1,x,nan,", Options{}, `t.csv:2: in: want an integer ≥ 1, got "x"` + "\n" + `t.csv:2: out: want an integer ≥ 1, got "nan"`},
		{"a fraction of a token", head + "1,1.5,1,", Options{}, `t.csv:2: in: want an integer ≥ 1, got "1.5"`},
		{"a prompt of 0 tokens", head + "1,0,1,", Options{}, `t.csv:2: in: want an integer ≥ 1, got "0"`},
		{"negative", head + "-1,-2,-3,", Options{}, "t.csv:2: at: want seconds from 0 to 9000000000, " + when + `, got "-1"` + "\n" +
			`t.csv:2: in: want an integer ≥ 1, got "-2"` + "\n" + `t.csv:2: out: want an integer ≥ 1, got "-3"`},
		{"too many tokens", head + "1,16777217,99999999999,", Options{}, `t.csv:2: in: want at most 16777216 tokens, got "16777217"` + "\n" +
			`t.csv:2: out: want at most 16777216 tokens, got "99999999999"`},
		{"milliseconds read as seconds", head + "1696000000123,1,1,", Options{}, "t.csv:2: at: want seconds from 0 to 9000000000, " + when + `, got "1696000000123"`},
		{"a day that is none", head + "2023-02-29 00:00:00,1,1,", Options{}, "t.csv:2: at: want seconds from 0 to 9000000000, " + when + `, got "2023-02-29 00:00:00"`},
		{"a date alone", head + "2023-02-28,1,1,", Options{}, "t.csv:2: at: want seconds from 0 to 9000000000, " + when + `, got "2023-02-28"`},
		{"an unknown zone", head + "2023-02-28 00:00:00 CET,1,1,", Options{}, "t.csv:2: at: want seconds from 0 to 9000000000, " + when + `, got "2023-02-28 00:00:00 CET"`},
		{"in milliseconds", "at,in\nx,1", Options{Columns: Columns{Timestamp: "at", Input: "in", Unit: "ms"}}, "t.csv:2: at: want milliseconds from 0 to 9000000000000, " + when + `, got "x"`},
		{"in nanoseconds", "at,in\nx,1", Options{Columns: Columns{Timestamp: "at", Input: "in", Unit: "ns"}}, "t.csv:2: at: want nanoseconds from 0 to 9000000000000000000, " + when + `, got "x"`},
		{"a date among numbers", head + "5,1,1,\n2023-02-28 00:00:00,1,1,", Options{}, "t.csv:3: timestamp: want seconds, as on line 2, got a date"},
		{"a number among dates", head + "2023-02-28 00:00:00,1,1,\n5,1,1,", Options{}, "t.csv:3: timestamp: want a date, as on line 2, got a number"},
		{"a cell too few", head + "1,1,1\n", Options{}, `t.csv:2: row: want 4 columns, as in the header, got "1,1,1"`},
		{"a cell too many", head + "1,1,1,a,b\n", Options{}, `t.csv:2: row: want 4 columns, as in the header, got "1,1,1,a,b"`},
		{"another separator than in the header", head + "1;1;1;a\n", Options{}, `t.csv:2: row: want 4 columns, as in the header, got "1;1;1;a"`},
		{"quotes that do not end", head + "1,1,1,\"a\nb\"", Options{}, `t.csv:2: row: want quotes around a whole cell of one line, got "1,1,1,\"a"` + "\n" +
			`t.csv:3: row: want 4 columns, as in the header, got "b\""`},
		{"quotes around a part", head + "1,\"1\"1,1,a", Options{}, `t.csv:2: row: want quotes around a whole cell of one line, got "1,\"1\"1,1,a"`},
		{"a long session", head + "1,1,1," + strings.Repeat("x", 257), Options{}, "t.csv:2: who: want at most 256 bytes, got 257"},
		{"turns in disorder", head + "5,1,1,a\n4,1,1,a", Options{}, "t.csv:3: timestamp: want ≥ 5, that of the session's turn before on line 2, got 4"},
		{"a key missing", `{"at":1,"out":1,"b":{"in":1}}`, Options{}, `t.csv:1: header: want columns "in" (input), got "at", "b", "out"`},
		{"a key missing later", `{"at":1,"in":1,"out":1}` + "\n" + `{"at":1,"in":null,"out":[]}`, Options{}, "t.csv:2: in: want an integer ≥ 1, got none\n" +
			`t.csv:2: out: want an integer ≥ 1, got "[]"`},
		{"no JSON", `{"at":1,`, Options{}, `t.csv:1: row: want a JSON object, got "{\"at\":1," (unexpected end of JSON input)`},
		{"no JSON later", `{"at":1,"in":1,"out":1}` + "\n[1]", Options{}, `t.csv:2: row: want a JSON object, got "[1]"`},
		{"columns beside a format", "", Options{Format: Azure, Columns: named}, "columns: want format auto or columns, got azure"},
		{"columns that are wrong", "", Options{Columns: Columns{Unit: "min", Output: "a", Session: "a"}}, `columns.input: want the column of the prompts' lengths, got none
columns.unit: want the unit ms, ns, s or us, got "min"
columns.unit: want a timestamp beside the unit, got none
columns.session: want another column for session than for output, got "a" for both`},
		{"no columns", "at,in\n1,1", Options{Format: Named}, `t.csv:1: header: want columns that --columns or trace.columns names, got "at", "in"`},
		{"Azure's columns missing", "TIMESTAMP,ContextTokens\n1,1", Options{Format: Azure}, `t.csv:1: header: want columns "GeneratedTokens" (output), got "TIMESTAMP", "ContextTokens"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !c.options.Columns.Given() && c.options.Format == "" {
				c.options.Columns = named
			}
			_, err := Open(t.Context(), write(t, "t.csv", c.content), c.options)
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// However a table is written, its rows are the same.
func TestTablesInAnyForm(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		rows := make([][]string, 1+rng.IntN(2000))
		at := disordered(rng, len(rows), rng.IntN(20))
		for i := range rows {
			who := ""
			if rng.IntN(3) == 0 {
				who = fmt.Sprintf(`a "%d"; b`, i) // each its own, so that the order of its turns is right
			}
			rows[i] = []string{
				fmt.Sprintf("%d.%03d", 1e9+at[i], rng.IntN(1000)), fmt.Sprint(1 + rng.IntN(1e6)), fmt.Sprint((i + rng.IntN(8)) % 9), who, "x\ty,z",
			}
		}
		head := []string{"at", "in", "out", "who", "other"}
		want := rowsOfTable(t, rng, head, rows, false)
		for range 3 {
			if diff := cmp.Diff(want, rowsOfTable(t, rng, head, rows, true)); diff != "" {
				t.Fatal(diff)
			}
		}
	}
}

// A row that is read alone keeps its empty cells too.
func TestRowOfATable(t *testing.T) {
	f := open(t, "\tat\tin\tout\twho\n0\t1\t5\t6\ta\n\t2\t7\t8\t\n", Options{Columns: named, BySession: true})
	got, err := f.Row(1)
	if want := (Record{Number: 1, Line: 3, Offset: time.Second, InputTokens: 7, OutputTokens: 8}); err != nil || !cmp.Equal(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

// rowsOfTable writes a table and reads it. If mixed, the columns have a random order, and the file
// a random form.
func rowsOfTable(t *testing.T, rng *rand.Rand, head []string, rows [][]string, mixed bool) (all []Record) {
	order, form := []int{0, 1, 2, 3, 4}, 0
	if mixed {
		rng.Shuffle(len(order), func(a, b int) { order[a], order[b] = order[b], order[a] })
		form = rng.IntN(4)
	}
	var text strings.Builder
	line := func(cells []string) {
		moved := make([]string, len(cells))
		for i, from := range order {
			moved[i] = cells[from]
		}
		w := csv.NewWriter(&text)
		w.Comma = []rune(",;\t,")[form]
		if err := w.Write(moved); err != nil {
			t.Fatal(err)
		}
		w.Flush()
	}
	if form < 3 {
		line(head)
	} else {
		line = func(cells []string) { // keys come sorted: their order is that of at, in, other, out, who
			keys := map[string]any{}
			for i, name := range head {
				keys[name] = cells[i]
				if cells[i] == "" {
					keys[name] = nil
				}
			}
			one, err := json.Marshal(keys)
			if err != nil {
				t.Fatal(err)
			}
			text.Write(append(one, '\n'))
		}
	}
	for _, cells := range rows {
		line(cells)
	}
	all = read(t, open(t, text.String(), Options{Columns: named}), 0)
	for i := range all {
		all[i].Line = 0
	}
	return all
}

func TestTextOfColumns(t *testing.T) {
	for text, want := range map[string]Columns{
		"timestamp=arrived_at,input=a,output=b,session=c,unit=ms": {"arrived_at", "a", "b", "c", "ms"},
		"input=Request tokens":              {Input: "Request tokens"},
		`"input=a,b",output="c`:             {},
		`"input=a,b","output=say ""c"""`:    {Input: "a,b", Output: `say "c"`},
		"input=a=b":                         {Input: "a=b"},
		" input = a , unit = s,timestamp=b": {Timestamp: "b", Input: "a", Unit: "s"},
	} {
		got, err := ParseColumns(text)
		if got != want || (err == nil) != want.Given() {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
		if again, err := ParseColumns(got.String()); got.Given() && (again != got || err != nil) {
			t.Errorf("%s: %s is read as %+v, %v", text, got, again, err)
		}
	}
	for text, want := range map[string]string{
		"":                  `want KEY=COLUMN with commas between them, got ""`,
		`input="a`:          `want KEY=COLUMN with commas between them, got "input=\"a"`,
		"arrived_at":        `want KEY=COLUMN, got "arrived_at"`,
		"input=a,":          `want KEY=COLUMN, got ""`,
		"prompt=a":          `want timestamp, input, output, session or unit before the =, got "prompt"`,
		"Input=a":           `want timestamp, input, output, session or unit before the =, got "Input"`,
		"input=a,input=b":   `input: want it once, got "a" and "b"`,
		"input= ,output":    `input: want the name of a column behind the =, got none; want KEY=COLUMN, got "output"`,
		"unit=s,unit=s,x=y": `unit: want it once, got "s" and "s"; want timestamp, input, output, session or unit before the =, got "x"`,
	} {
		if _, err := ParseColumns(text); err == nil || err.Error() != want {
			t.Errorf("%s:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// Dates are read as time.Parse reads them.
func FuzzDate(f *testing.F) {
	for _, s := range []string{
		"2023-11-16 18:15:46.6805900", "2024-05-10T00:00:00Z", "2024-02-29T23:59:59.99999999999+01:30", "1970-01-01 00:00:00+00:01", "2254-12-31 23:59:59.999999999",
		"2023-02-29 00:00:00", "2023-00-10 00:00:00", "2023-04-31 00:00:00", "2023-12-00 00:00:00", "2023-13-01 00:00:00", "2023-12-01 24:00:00", "2023-12-01 23:60:00",
		"2023-12-01 23:00:60", "2023-12-01 23:00:00.", "2023-12-01 23:00:00,5", "2023-12-01 23:00:00-24:00", "2023-12-01 23:00:00+23:60", "2023-12-01 23:00:00 -0500",
		"2023-12-01 23:00:00+1", "2023-12-01 2a:00:00", "x023-12-01 23:00:00", "2023-12-01 23:00:00 UTC", "2023-12-01 23:00:00UTC", "2023-12-01 23:00:00+01", "2023-12-01 23:00:00 ",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) < len(time.DateTime) {
			return
		}
		got, ok := dateOf([]byte(text))
		var want time.Time
		parsed := false
		for _, day := range []string{"2006-01-02 15:04:05", "2006-01-02T15:04:05"} {
			for _, zone := range []string{"", " ", "Z07:00", " Z07:00", "Z0700", " Z0700", "Z07", " Z07", "UTC", " UTC"} {
				if at, err := time.Parse(day+zone, text); err == nil {
					want, parsed = at.UTC(), true
				}
			}
		}
		year := text[:4]
		parsed = parsed && text[13] == ':' && year >= "1970" && year < "2255" && want.UnixNano() >= 0
		if ok != parsed || ok && got != want.UnixNano() {
			t.Fatalf("%q: got %d, %v, want %d, %v", text, got, ok, want.UnixNano(), parsed)
		}
	})
}

func FuzzTables(f *testing.F) {
	for _, s := range []string{
		"at,in,out,who\n1,1,1,a\n0.5,2,0,\n1.5,\"3\",1,\"a\"\"b\"", "\tat\tin\tout\twho\n\t2\t1\t1\t\n0\t1\t1\t1\tb", "who;out;in;at\n;1;1;2024-02-29T23:59:59.5+01:30\n;1;1;2024-02-29T20:59:59Z",
		`{"at":"1","in":5,"out":"6","who":null}` + "\n" + `{"at":0,"in":5,"out":6,"who":17,"x":[{}]}`,
	} {
		f.Add([]byte(s), int64(0))
		f.Add([]byte(s), int64(1e9))
	}
	f.Fuzz(func(t *testing.T, content []byte, from int64) {
		acceptedWith(t, content, Options{Columns: named}, from)
		acceptedWith(t, content, Options{}, from)
	})
}
