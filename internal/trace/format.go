package trace

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"replayd/internal/fault"
)

// A Format is the shape of a trace file's rows.
type Format string

// Formats.
const (
	Auto         Format = "auto"          // detected from the first line; VLLM must be named, because it looks like Mooncake
	Mooncake     Format = "mooncake"      // one JSON object a line, as in kvcache-ai/Mooncake and AIPerf; milliseconds
	Azure        Format = "azure"         // Azure/AzurePublicDataset: a table with dates
	BurstGPT     Format = "burstgpt"      // HPMLL/BurstGPT: a table; seconds
	Named        Format = "columns"       // a table with columns of other names, in CSV or JSON lines: see Columns
	VLLM         Format = "vllm"          // the timed_trace of vllm bench serve: Mooncake's lengths and ids; seconds
	Bailian      Format = "bailian"       // alibaba-edu/qwen-bailian-usagetraces-anon: one JSON object a line; seconds
	Weka         Format = "weka"          // callanjfox/kv-cache-tester: a session of an agent in a JSON object, a file or a line each; seconds
	RequestTrace Format = "request_trace" // dynamo.request.trace.v1, what Dynamo's frontend records; milliseconds
	Spans        Format = "spans"         // OpenTelemetry's GenAI spans: OTLP as JSON, and inference-perf's files
	TraceLab     Format = "tracelab"      // uw-syfi/TraceLab: rounds of coding agents, one JSON object a line
	Bodies       Format = "bodies"        // whole request bodies, one a line: bare, of OpenAI's batches, or evalscope's workload_trace; seconds
	Sessions     Format = "sessions"      // replayd's own: a header, then Mooncake's rows with the rows that they wait for; milliseconds
)

// Readable are the names of the formats that can be read, in the order in which errors and help have them.
var Readable = namesOf(Auto, Mooncake, Azure, BurstGPT, Named, VLLM, Bailian, Weka, RequestTrace, Spans, TraceLab, Bodies, Sessions)

// Writable are the names of the formats that can be written.
var Writable = namesOf(Mooncake, Sessions)

func namesOf(formats ...Format) (names []string) {
	for _, f := range formats {
		names = append(names, string(f))
	}
	return names
}

type layout struct {
	decode  decoder
	unit    time.Duration // of a timestamp; 0 if timestamps are dates
	block   int           // tokens of a block if no row tells; 0: 512
	rebased bool          // offset 0 is the earliest instant in the file, not 0 on the file's own clock
	partial bool          // the last block of a prompt needs no id if it is not full
	keys    []string      // of an object that are read; nil: all, or it has none
	tabs    bool          // tabs separate cells
	columns Columns       // of a table, those that are read
	warning string        // what of the file is not read
}

// detect sets the format and the layout from the file's first line. It reports whether that line is a CSV header and
// not a row.
func (p *pass) detect(line []byte, number int) (header bool, err error) {
	if found, header, err := p.detectTable(line, number); found || err != nil {
		return header, err
	}
	named, line := p.options.Format, bytes.TrimSpace(line)
	if block, found, ok := sessionsHeader(line); ok && (named == Auto || named == Sessions) {
		p.begin(block, number, found)
		return true, nil
	}
	switch {
	case named == Sessions:
		return false, fmt.Errorf("%s:%d: header: want {\"schema\":\"%s\", …}, got %s", p.file.name, number, sessionsSchema, fault.Excerpt(line))
	case named != Auto:
		p.format = named
	case line[0] == '[':
		return false, fmt.Errorf("%s:%d: format: want a row a line, got a JSON list: jq -c '.[]' FILE makes lines of it", p.file.name, number)
	case line[0] != '{':
		return false, fmt.Errorf("%s:%d: format: want a row of Mooncake or Bailian ({\"timestamp\": …}), a header of Azure, BurstGPT, Vidur or SplitwiseSim, "+
			"or names of the file's columns (--columns, trace.columns), got %s", p.file.name, number, fault.Excerpt(line))
	default:
		if keys := headers(line)[0]; keys.ofOthers() {
			return false, fmt.Errorf("%s:%d: format: want a row with one of %s, or names of the file's keys (--columns, trace.columns), got keys %s",
				p.file.name, number, strings.Join(promptKinds[:], ", "), keys.shown())
		}
		p.format = Mooncake
	}
	switch p.format {
	case VLLM:
		p.layout = dialect{unit: time.Second, lengths: true}.layout(vllmBlock)
	case Bailian:
		p.layout = dialect{unit: time.Second, lengths: true, chats: true}.layout(bailianBlock)
		p.know(bailianBlock)
	case Bodies:
		p.layout = layout{decode: dialect{unit: time.Second, header: p.options.Header}.body, unit: time.Second, rebased: true, keys: bodyLineKeys}
	default:
		p.layout = dialect{unit: time.Millisecond, header: p.options.Header}.layout(0)
	}
	return false, nil
}

func (f Format) check() error {
	if slices.Contains(Readable, string(f)) {
		return nil
	}
	return fmt.Errorf("trace format: want %s, got %q", strings.Join(Readable, ", "), string(f))
}

func unitName(unit time.Duration) string {
	switch unit {
	case time.Nanosecond:
		return "nanoseconds"
	case time.Microsecond:
		return "microseconds"
	case time.Millisecond:
		return "milliseconds"
	case time.Second:
		return "seconds"
	case dated:
		return "dates"
	}
	return "a date"
}
