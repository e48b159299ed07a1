package trace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// A Format is the shape of a trace file's rows.
type Format string

// Formats.
const (
	Auto            Format = "auto"             // detected from the first line; VLLM and MooncakeDelta must be named, because they look like Mooncake
	Mooncake        Format = "mooncake"         // one JSON object a line, as in kvcache-ai/Mooncake and AIPerf; milliseconds
	Azure           Format = "azure"            // Azure/AzurePublicDataset: CSV with the header TIMESTAMP,ContextTokens,GeneratedTokens
	BurstGPT        Format = "burstgpt"         // HPMLL/BurstGPT: CSV; seconds
	VLLM            Format = "vllm"             // the timed_trace of vllm bench serve: Mooncake's lengths and ids; seconds
	Bailian         Format = "bailian"          // alibaba-edu/qwen-bailian-usagetraces-anon: one JSON object a line; seconds
	Weka            Format = "weka"             // callanjfox/kv-cache-tester: a session of an agent in a JSON object, a file or a line each; seconds
	AgenticMooncake Format = "agentic_mooncake" // Dynamo's, version 2: a header, then requests with dependencies; milliseconds
	MooncakeDelta   Format = "mooncake_delta"   // Dynamo's mooncake-delta: Mooncake's rows, but those of a session say only what is new; milliseconds
	RequestTrace    Format = "request_trace"    // dynamo.request.trace.v1, what Dynamo's frontend records; milliseconds
	Sessions        Format = "sessions"         // replayd's own: a header, then Mooncake's rows with the rows that they wait for; milliseconds
)

// formats lists the formats that a file can have, in the order in which errors name them.
var formats = []Format{Mooncake, Azure, BurstGPT, VLLM, Bailian, Weka, AgenticMooncake, MooncakeDelta, RequestTrace, Sessions}

// A layout says how to read a file.
type layout struct {
	decode  decoder
	unit    time.Duration // of a timestamp; 0 if timestamps are dates
	block   int           // tokens of a block if no row tells; 0: 512
	rebased bool          // offset 0 is the earliest instant in the file, not 0 on the file's own clock
	partial bool          // the last block of a prompt needs no id if it is not full
}

// detect sets the format and the layout from the file's first line. It reports whether that line is a CSV header and
// not a row.
func (p *pass) detect(line []byte, number int) (header bool, err error) {
	named := p.options.Format
	csv := map[Format]func([]byte) (layout, bool){Azure: azureLayout, BurstGPT: burstLayout}
	for _, format := range []Format{Azure, BurstGPT} {
		if named != Auto && named != format {
			continue
		}
		if l, ok := csv[format](line); ok {
			p.format, p.layout = format, l
			return true, nil
		}
	}
	if named == Auto || named == Sessions {
		if block, found, ok := sessionsHeader(line); ok {
			p.begin(block, number, found)
			return true, nil
		}
	}
	switch {
	case named == Azure || named == BurstGPT || named == Sessions:
		return false, fmt.Errorf("%s:%d: header: want %s, got %s", p.file.name, number, headerOf(named), excerpt(line))
	case named != Auto:
		p.format = named
	case line[0] != '{':
		return false, fmt.Errorf("%s:%d: format: want a row of Mooncake or Bailian ({\"timestamp\": …}), Azure's header %s or BurstGPT's %s, got %s",
			p.file.name, number, azureHeader, burstHeader, excerpt(line))
	case hasChat(line):
		p.format = Bailian
	default:
		p.format = Mooncake
	}
	p.layout = map[Format]layout{
		Mooncake: {decode: decodeMooncake, unit: time.Millisecond},
		VLLM:     {decode: decodeVLLM, unit: time.Second, block: vllmBlock},
		Bailian:  {decode: decodeBailian, unit: time.Second, block: bailianBlock},
	}[p.format]
	return false, nil
}

func headerOf(f Format) string {
	return map[Format]string{Azure: azureHeader, BurstGPT: burstHeader, Sessions: `{"schema":"` + sessionsSchema + `", …}`}[f]
}

// hasChat reports whether the line is a row of Bailian's format, by the two fields that link its chats.
func hasChat(line []byte) bool {
	if !bytes.Contains(line, []byte(`"parent_chat_id"`)) { // true for most files
		return false
	}
	var o map[string]json.RawMessage
	if json.Unmarshal(line, &o) != nil {
		return false
	}
	return o["chat_id"] != nil && o["parent_chat_id"] != nil
}

func (f Format) check() error {
	if f == Auto {
		return nil
	}
	var names []string
	for _, known := range formats {
		if f == known {
			return nil
		}
		names = append(names, string(known))
	}
	return fmt.Errorf("trace format: want auto, %s, got %q", strings.Join(names, ", "), string(f))
}

// unitName names the unit of the timestamps.
func (l layout) unitName() string { return unitName(l.unit) }

func unitName(unit time.Duration) string {
	switch unit {
	case time.Millisecond:
		return "milliseconds"
	case time.Second:
		return "seconds"
	}
	return "an instant"
}
