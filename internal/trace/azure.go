package trace

import (
	"bytes"
	"strconv"
	"time"

	"replayd/internal/fault"
)

const azureHeader = "TIMESTAMP,ContextTokens,GeneratedTokens"

// azureTimes are the layouts of instants in the data sets of 2023 and 2024. time.Parse accepts a fraction of a second
// of any length after the seconds.
var azureTimes = []string{"2006-01-02 15:04:05", "2006-01-02 15:04:05Z07:00", time.RFC3339, "2006-01-02T15:04:05"}

func azureLayout(header []byte) (layout, bool) {
	return layout{decode: decodeAzure, rebased: true}, string(header) == azureHeader
}

func decodeAzure(line []byte, r *row) fault.List {
	r.clear()
	columns := bytes.Split(line, []byte(","))
	if len(columns) != 3 {
		return fault.List{fault.New("row", azureHeader, fault.Excerpt(line))}
	}
	var faults fault.List
	if at, ok := azureInstant(string(columns[0])); ok {
		r.at, r.timed = at, true
	} else {
		faults.Add("TIMESTAMP", "want an instant as %s.9999999, got %s", azureTimes[0], fault.Excerpt(columns[0]))
	}
	for i, field := range []struct {
		name string
		to   *int
	}{{"ContextTokens", &r.InputTokens}, {"GeneratedTokens", &r.OutputTokens}} {
		n, err := strconv.Atoi(string(columns[i+1]))
		switch {
		case err != nil || n < 1:
			faults.Add(field.name, "want an integer ≥ 1, got %s", fault.Excerpt(columns[i+1]))
		case n > MaxTokens:
			faults.Add(field.name, "want at most %d tokens, got %s", MaxTokens, fault.Excerpt(columns[i+1]))
		}
		*field.to = n
	}
	return faults
}

func azureInstant(s string) (nanos int64, ok bool) {
	for _, layout := range azureTimes {
		if at, err := time.Parse(layout, s); err == nil {
			return at.UnixNano(), at.Year() >= 1970 && at.Year() < 2255 // UnixNano overflows in 2262
		}
	}
	return 0, false
}
