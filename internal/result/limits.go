package result

import "time"

// Limits on a run and its files.
const (
	maxRows   = 1 << 20  // requests of a Run: with their ids about 500 MiB. Further ones are only counted, in Partial
	maxGaps   = 1 << 24  // gaps between chunks: 128 MiB
	maxLine   = 16 << 20 // bytes in a line: the gaps of half a million chunks
	maxFaults = 10       // bad lines that are listed one by one

	maxSaid = 256 // bytes of a text of a run: why exact lengths were not asked for, the first unusual answers

	maxRunsOfOne = 200    // runs in a file of records
	maxWorkloads = 10_000 // per run

	// These keep differences and sums from overflowing.
	lastInstant    = 1 << 62 // Unix ns: the year 2116
	maxTime        = 1e12    // ms: 31 years
	maxCounted     = 1 << 50 // of each count of a ledger
	maxSessionTime = 50 * 366 * 24 * time.Hour
)
