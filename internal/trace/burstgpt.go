package trace

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"time"

	"replayd/internal/fault"
)

// burstHeader is the header of BurstGPT_1.csv and _2.csv. In _3.csv, Session ID and Elapsed time follow Timestamp
// (HPMLL/BurstGPT, releases v1.1 and v2.0).
const burstHeader = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type"

// The columns that are read. Other columns are optional and ignored.
const (
	burstTime    = "Timestamp" // seconds since midnight of the collection's first day
	burstInput   = "Request tokens"
	burstOutput  = "Response tokens" // 0: the request failed
	burstSession = "Session ID"      // not in all files
)

// A burst holds the positions of the columns in a BurstGPT file.
type burst struct {
	columns           int
	at, input, output int
	session           int // -1: there is none
}

func burstLayout(header []byte) (layout, bool) {
	names, ok := cells(header)
	if !ok {
		return layout{}, false
	}
	b := burst{
		columns: len(names), at: slices.Index(names, burstTime), input: slices.Index(names, burstInput),
		output: slices.Index(names, burstOutput), session: slices.Index(names, burstSession),
	}
	return layout{decode: b.decode, unit: time.Second, rebased: true}, min(b.at, b.input, b.output) >= 0
}

func (b burst) decode(line []byte, r *row) fault.List {
	r.clear()
	columns, ok := cells(line)
	if !ok || len(columns) != b.columns {
		return fault.List{fault.New("row", fmt.Sprintf("%d columns, as in the header", b.columns), fault.Excerpt(line))}
	}
	var faults fault.List
	if r.at, r.timed = nanos(columns[b.at], time.Second); !r.timed {
		got := fault.Excerpt([]byte(columns[b.at]))
		faults.Add(burstTime, "want seconds ≥ 0 and ≤ %d, got %s", maxMillis/1000, got)
	}
	r.failed = columns[b.output] == "0" || columns[b.output] == "0.0"
	for _, c := range []struct {
		name  string
		value string
		to    *int
	}{{burstInput, columns[b.input], &r.InputTokens}, {burstOutput, columns[b.output], &r.OutputTokens}} {
		if n, err := strconv.ParseFloat(c.value, 64); r.failed && n == 0 && err == nil {
			continue
		}
		n, want := lengthOf(c.value) // pandas writes 12.0
		if *c.to = n; want != "" {
			faults.Add(c.name, "want %s, got %s", want, fault.Excerpt([]byte(c.value)))
		}
	}
	if b.session >= 0 {
		if r.Session = columns[b.session]; len(r.Session) > MaxSessionBytes {
			faults.Add(burstSession, "want at most %d bytes, got %d", MaxSessionBytes, len(r.Session))
		}
	}
	return faults
}

func cells(line []byte) (columns []string, ok bool) {
	if !bytes.ContainsRune(line, '"') { // true for all lines of the published files
		for column := range bytes.SplitSeq(line, []byte(",")) {
			columns = append(columns, string(column))
		}
		return columns, true
	}
	columns, err := csv.NewReader(bytes.NewReader(line)).Read()
	return columns, err == nil
}
