package result

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// MergeShards makes one run of the requests of several shards of it: all rows by when they were sent, sessions numbered anew, so
// that its figures are those of a single process that had sent them all. A request that is there twice is an error, because
// then they are not shards of one run. Ledgers and concurrency add up; other settings are the first one's.
func MergeShards(shards []Run) (Run, error) {
	if len(shards) == 0 {
		return Run{}, errors.New("merge: want the files of at least one shard, got none")
	}
	merged := Run{Name: shards[0].Name, Settings: shards[0].Settings}
	merged.Settings.Concurrency = 0
	from := map[string]int{} // the shard of each request
	twice := 0
	var first error
	rows := 0
	for _, s := range shards {
		rows += len(s.Rows)
	}
	if rows > mostRows {
		return Run{}, fmt.Errorf("merge: want at most %d requests in all, got %d", mostRows, rows)
	}
	for i, s := range shards {
		merged.Settings.Concurrency += s.Settings.Concurrency
		merged.Settings.Streamed = merged.Settings.Streamed || s.Settings.Streamed
		merged.Partial = append(merged.Partial, s.Partial...)
		if merged.Cache = merged.Cache.Add(s.Cache); i == 0 {
			merged.Cache = s.Cache
		}
		merged.ServerSeries = append(merged.ServerSeries, s.ServerSeries...)
		merged.Cut = merged.Cut || s.Cut
		for _, r := range s.Rows {
			key := string(r.Phase) + "\x00" + r.ID
			if before, seen := from[key]; seen && r.ID != "" {
				twice++
				if first == nil {
					first = fmt.Errorf("request %q is in %s and in %s", r.ID, shards[before].Name, s.Name)
				}
			}
			from[key] = i
			merged.Rows = append(merged.Rows, r)
		}
	}
	if first != nil {
		return Run{}, fmt.Errorf("merge: want each request once, got %d twice: %w", twice, first)
	}
	var missing string
	if merged.Ledger, merged.Told, missing = addUp(shards); missing != "" {
		merged.Partial = append(merged.Partial, "merge: not in these files: shard "+missing)
	}
	numberSessions(merged.Rows)
	inOrder(merged.Rows)
	return merged, nil
}

// numberSessions gives each conversation, and each request without one, a number in the order in which their first one ended,
// as a single process would have.
func numberSessions(rows []Row) {
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Or(cmp.Compare(a.End, b.End), cmp.Compare(a.ID, b.ID)) })
	numbers := map[string]int64{}
	next := int64(0)
	for i := range rows {
		key := string(rows[i].Phase) + "/" + rows[i].Correlation
		n, known := numbers[key]
		if !known || rows[i].Correlation == "" {
			n = next
			next++
			numbers[key] = n
		}
		rows[i].Session = n
	}
}
