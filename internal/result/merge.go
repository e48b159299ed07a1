package result

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// MergeShards merges the shards of one run. Rows are in the order in which they were sent and sessions are renumbered,
// so that the figures are those of a single process that sent all requests. A request that occurs twice is an error,
// because then the shards are not of one run. Ledgers and concurrency are added up; other settings are the first
// shard's.
func MergeShards(shards []Run) (Run, error) {
	if len(shards) == 0 {
		return Run{}, errors.New("merge: want the files of at least one shard, got none")
	}
	merged := Run{Name: shards[0].Name, Settings: shards[0].Settings}
	merged.Settings.Concurrency = 0
	from := map[string]int{} // shard of each request
	twice := 0
	var first error
	rows := 0
	for _, s := range shards {
		rows += len(s.Rows)
	}
	if rows > maxRows {
		return Run{}, fmt.Errorf("merge: want at most %d requests in all, got %d", maxRows, rows)
	}
	for i, s := range shards {
		merged.Settings.Concurrency += s.Settings.Concurrency
		merged.Settings.Streamed = merged.Settings.Streamed || s.Settings.Streamed
		merged.Partial = append(merged.Partial, s.Partial...)
		if merged.Cache = merged.Cache.Add(s.Cache); i == 0 {
			merged.Cache = s.Cache
		}
		merged.Reading = merged.Reading.Add(s.Reading)
		merged.ServerSeries = append(merged.ServerSeries, s.ServerSeries...)
		merged.Cut = merged.Cut || s.Cut
		merged.Sessions = append(merged.Sessions, s.Sessions...)
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
	if merged.Ledger, merged.LedgerLines, missing = addUp(shards); missing != "" {
		merged.Partial = append(merged.Partial, "merge: not in these files: shard "+missing)
	}
	numberSessions(merged.Rows)
	inOrder(merged.Rows)
	return merged, nil
}

// numberSessions numbers conversations, and requests without one, in the order in which their first request ended, as a
// single process does.
func numberSessions(rows []Row) {
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Or(cmp.Compare(a.End, b.End), cmp.Compare(a.ID, b.ID)) })
	var sessions numbering
	for i := range rows {
		rows[i].Session = sessions.of(rows[i].Phase, rows[i].Correlation, maxRows)
	}
}
