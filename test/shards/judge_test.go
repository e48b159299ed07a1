//go:build real

package shards_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"replayd/internal/sim"

	"replayd/test/outside"
)

// A record is a line of replayd's file of records.
type record struct {
	Loop    int64
	Row     int
	Outcome string
	TTFT    int64  `json:"ttft_ns"`
	TPOT    *int64 `json:"tpot_ns"`
	Chunks  int
	Merged  int `json:"merged_reads"`
}

// gaps returns how many answers came in several reads, and the least and the most gaps between reads in all answers.
func gaps(all []record) (answers, least, most int) {
	for _, r := range all {
		if r.TPOT == nil {
			continue
		}
		answers++
		most += r.Chunks - 1 - r.Merged // a merged read hides one gap or more
		if r.Merged == 0 {
			least += r.Chunks - 1
		} else {
			least += max(1, r.Merged-1)
		}
	}
	return answers, least, most
}

// recorded returns the requests of one loop that a process has finished.
func (r *replica) recorded(t *testing.T, loop int64) []record {
	t.Helper()
	all, _ := outside.Lines[record](t, r.records) // the process may still run
	return slices.DeleteFunc(all, func(r record) bool { return r.Loop != loop })
}

// arrivals returns the arrivals of one loop in an engine's log, by row.
func arrivals(t *testing.T, log string, loop int64) map[int][]time.Time {
	t.Helper()
	entries, _ := outside.Lines[sim.LogEntry](t, log) // the engine still runs
	came := map[int][]time.Time{}
	for _, e := range entries {
		if e.ID == "replayd/probe" {
			continue
		}
		workload, n, i := outside.Place(t, e.ID)
		if workload != "canary" || e.Outcome != sim.OK {
			t.Errorf("%s: want a row of canary, answered, got %s", e.ID, e.Outcome)
		}
		if n == loop {
			came[i] = append(came[i], time.Unix(0, e.Arrival))
		}
	}
	return came
}

// wantOnce checks that exactly the wanted rows came, each once, and none before its instant.
func wantOnce(t *testing.T, came map[int][]time.Time, loopStart time.Time, wanted func(row int) bool) {
	t.Helper()
	for i, r := range trace() {
		want := 0
		if wanted(i) {
			want = 1
		}
		if len(came[i]) != want {
			t.Errorf("row %d: want it %d times, it came at %v", i, want, came[i])
		}
		for _, at := range came[i] {
			if early := loopStart.Add(r.offset).Sub(at); early > time.Millisecond {
				t.Errorf("row %d came %v early", i, early)
			}
		}
	}
}

// owners returns the shard of each row, by the records. Each row has a shard, and a session has one shard.
func owners(t *testing.T, records [][]record) []int {
	t.Helper()
	owner := slices.Repeat([]int{-1}, rows)
	for shard, all := range records {
		for _, r := range all {
			if owner[r.Row] != -1 || r.Outcome != "ok" {
				t.Errorf("row %d: want it once and ok, shard %d had it, then shard %d: %s", r.Row, owner[r.Row], shard, r.Outcome)
			}
			owner[r.Row] = shard
		}
	}
	sessions := map[string]int{}
	for i, r := range trace() {
		if owner[i] == -1 {
			t.Errorf("row %d is nobody's", i)
		}
		if r.session == "" {
			continue
		}
		if s, known := sessions[r.session]; known && s != owner[i] {
			t.Errorf("%s: want it on one shard, it is on %d and %d", r.session, s, owner[i])
		}
		sessions[r.session] = owner[i]
	}
	return owner
}

// quantile returns the observation whose bucket Prometheus' histogram_quantile looks for: the smallest one that is at
// least as large as a share q of all.
func quantile(q float64, records []record) time.Duration {
	var all []int64
	for _, r := range records {
		all = append(all, r.TTFT)
	}
	slices.Sort(all)
	return time.Duration(all[max(0, int(math.Ceil(q*float64(len(all))))-1)])
}

// apart returns how far the TTFTs of a row differ between the two replays: the median and the maximum.
func apart(a, b []record) (median, worst time.Duration) {
	byRow := map[int]int64{}
	for _, r := range a {
		byRow[r.Row] = r.TTFT
	}
	var all []time.Duration
	for _, r := range b {
		all = append(all, time.Duration(r.TTFT-byRow[r.Row]).Abs())
	}
	slices.Sort(all)
	return all[len(all)/2], all[len(all)-1]
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.2f ms", d.Seconds()*1000) }
