package trace

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
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

// decode reads a row below the header.
func (b burst) decode(line []byte, r *row) []fault {
	r.clear()
	columns, ok := cells(line)
	if !ok || len(columns) != b.columns {
		return []fault{{"row", fmt.Sprintf("%d columns, as in the header", b.columns), excerpt(line)}}
	}
	var faults []fault
	if r.at, r.timed = nanos(columns[b.at], time.Second); !r.timed {
		faults = append(faults, fault{burstTime, fmt.Sprintf("seconds ≥ 0 and ≤ %d", maxMillis/1000), excerpt([]byte(columns[b.at]))})
	}
	r.failed = columns[b.output] == "0" || columns[b.output] == "0.0"
	for _, c := range []struct {
		name  string
		value string
		to    *int
	}{{burstInput, columns[b.input], &r.InputTokens}, {burstOutput, columns[b.output], &r.OutputTokens}} {
		n, err := strconv.ParseFloat(c.value, 64) // exact for every whole number up to MaxTokens; pandas writes 12.0
		switch {
		case r.failed && n == 0 && err == nil:
		case err != nil || n != math.Trunc(n) || n < 1:
			faults = append(faults, fault{c.name, "an integer ≥ 1", excerpt([]byte(c.value))})
		case n > MaxTokens:
			faults = append(faults, fault{c.name, fmt.Sprintf("at most %d tokens", MaxTokens), excerpt([]byte(c.value))})
		default:
			*c.to = int(n)
		}
	}
	if b.session >= 0 {
		if r.Session = columns[b.session]; len(r.Session) > MaxSessionBytes {
			faults = append(faults, fault{burstSession, fmt.Sprintf("at most %d bytes", MaxSessionBytes), strconv.Itoa(len(r.Session))})
		}
	}
	return faults
}

// cells splits a line of CSV.
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
