package trace

import (
	"encoding/csv"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"replayd/internal/fault"
	"replayd/internal/spelling"
)

// Columns name the columns of a table that are read, or the keys of JSON lines. The zero value names none.
type Columns struct {
	Timestamp string `koanf:"timestamp"` // "": rows have no times
	Input     string `koanf:"input"`
	Output    string `koanf:"output"`  // "": rows have no length of an answer
	Session   string `koanf:"session"` // "": rows have no session
	Unit      string `koanf:"unit"`    // of a timestamp that is a number, one of units; "": s
}

// units are the units of timestamps by name. Dates need none.
var units = map[string]time.Duration{
	"": time.Second, "s": time.Second, "ms": time.Millisecond, "us": time.Microsecond, "ns": time.Nanosecond,
}

type columnsPart struct {
	key  string
	name *string
}

// parts are the keys of the text form. All but the last stand for a column, by the places of cells.
func (c *Columns) parts() []columnsPart {
	return []columnsPart{
		{"timestamp", &c.Timestamp}, {"input", &c.Input}, {"output", &c.Output}, {"session", &c.Session}, {"unit", &c.Unit},
	}
}

// Given reports whether any column is named.
func (c Columns) Given() bool { return c != Columns{} }

// ParseColumns reads KEY=COLUMN pairs with commas between them, as timestamp=arrived_at,input=prompt,unit=ms. A pair
// with a comma in it is quoted as in CSV.
func ParseColumns(text string) (c Columns, err error) {
	pairs, err := csv.NewReader(strings.NewReader(text)).Read()
	if err != nil {
		return c, fmt.Errorf("want KEY=COLUMN with commas between them, got %q", text)
	}
	parts := c.parts()
	var keys []string
	for _, part := range parts {
		keys = append(keys, part.key)
	}
	var wrong fault.List
	for _, pair := range pairs {
		key, name, pairs := strings.Cut(pair, "=")
		key, name = strings.TrimSpace(key), strings.TrimSpace(name)
		switch i := slices.Index(keys, key); {
		case !pairs:
			wrong.Add("", "want KEY=COLUMN, got %q", pair)
		case i < 0:
			wrong.Add("", "want %s before the =, got %q", spelling.Or(keys), key)
		case name == "":
			wrong.Add(key, "want the name of a column behind the =, got none")
		case *parts[i].name != "":
			wrong.Add(key, "want it once, got %q and %q", *parts[i].name, name)
		default:
			*parts[i].name = name
		}
	}
	if len(wrong) > 0 {
		return c, fmt.Errorf("%s", wrong.Line())
	}
	return c, nil
}

// String returns the text that ParseColumns reads.
func (c Columns) String() string {
	var pairs []string
	for _, part := range c.parts() {
		if *part.name != "" {
			pairs = append(pairs, part.key+"="+*part.name)
		}
	}
	if pairs == nil {
		return ""
	}
	var text strings.Builder
	w := csv.NewWriter(&text)
	_ = w.Write(pairs) // neither this nor Flush can fail
	w.Flush()
	return strings.TrimSuffix(text.String(), "\n")
}

// Check returns what is wrong, by key.
func (c Columns) Check() (wrong fault.List) {
	if !c.Given() {
		return nil
	}
	wrong.If(c.Input == "", "input", "want the column of the prompts' lengths, got none")
	if units[c.Unit] == 0 {
		wrong.Add("unit", "want the unit %s, got %q", spelling.Or(slices.Sorted(maps.Keys(units))[1:]), c.Unit)
	}
	wrong.If(c.Unit != "" && c.Timestamp == "", "unit", "want a timestamp beside the unit, got none")
	parts := c.parts()[:cellCount]
	for i, part := range parts {
		for _, before := range parts[:i] {
			wrong.If(*part.name != "" && *part.name == *before.name,
				part.key, "want another column for %s than for %s, got %q for both", part.key, before.key, *part.name)
		}
	}
	return wrong
}

// A knownTable is a public trace that is recognized by its columns.
type knownTable struct {
	format  Format
	columns Columns
	mark    string // what the first line contains too
}

// knownTables are tried in this order.
var knownTables = []knownTable{
	// Azure/AzurePublicDataset: the traces of 2023 and 2024, and the multimodal one of 2025 with a column azureImages.
	{format: Azure, columns: Columns{Timestamp: "TIMESTAMP", Input: "ContextTokens", Output: "GeneratedTokens"}},
	// HPMLL/BurstGPT, releases v1.1 and v2.0: seconds since midnight of the collection's first day. Only _3.csv has
	// sessions.
	{format: BurstGPT, columns: Columns{"Timestamp", "Request tokens", "Response tokens", "Session ID", "s"}},
	{format: BurstGPT, columns: Columns{"Timestamp", "Request tokens", "Response tokens", "", "s"}},
	// microsoft/vidur, data/processed_traces: seconds, or no times at all.
	{format: Named, columns: Columns{"arrived_at", "num_prefill_tokens", "num_decode_tokens", "", "s"}},
	{format: Named, columns: Columns{Input: "num_prefill_tokens", Output: "num_decode_tokens"}},
	// Mutinifni/splitwise-sim, generate_trace.py: seconds.
	{format: Named, columns: Columns{"arrival_timestamp", "prompt_size", "token_size", "", "s"}},
	// flashserve/RAGPulse, data/0_trace.jsonl: seconds, as text. Its hash_ids are names of parts, not of blocks; and two
	// sessions go back in time, so they are not read.
	{Named, Columns{"timestamp", "input_length", "output_length", "", "s"}, `"passages_ids"`},
}

// azureImages is a column of which only the presence is told: images are not sent.
const azureImages = "NumImages"

// candidates are the tables that a file may be, by the options.
func (o *Options) candidates() (list []knownTable) {
	if o.Columns.Given() {
		return []knownTable{{format: Named, columns: o.Columns}}
	}
	for _, t := range knownTables {
		if o.Format == Auto || o.Format == t.format {
			list = append(list, t)
		}
	}
	return list
}
