// Package result is what one run came to: its requests as rows, what it was told to do, and the figures of both. It collects them
// while a run goes on, reads them back from a run's files, merges shards and cuts slices. It writes no table and no page.
package result

import (
	"cmp"
	"math"
	"slices"
	"time"

	"replayd/internal/measure"
)

// mostRows is how many requests a Run holds at most: with their ids about 500 MiB. What comes beyond them is counted in Partial.
const mostRows = 1 << 20

// A Run is what reports are made of: the requests of one run, in the order in which they were sent, and what is known beside
// them. It is collected while a run goes on, or read from its files; everything else in this package only reads it.
type Run struct {
	Name         string // of the folder it came from; "" while it goes on
	Settings     Settings
	Rows         []Row
	Ledger       *measure.Ledger      // what became of all requests that fell due, without the warm-up's; nil: not known
	Told         []measure.LedgerLine // the last one of each workload in the records, of which Ledger is the sum; nil: it comes from elsewhere
	Cache        *Cache               // what the server had of the prompts; nil: not known
	ServerSeries []ServerSeries       // what the server and the GPUs said of themselves meanwhile
	Cut          bool                 // it was stopped before its end
	Picked       bool                 // Rows are only a selection; the ledger is that of the whole run
	Partial      []string             // what was missing from its files, in words: "profile_export.jsonl:812: cut in mid-line"
}

// Measured are the rows that count in figures: those of the warm-up are no part of it.
func (r Run) Measured() []Row {
	rows := make([]Row, 0, len(r.Rows))
	for _, row := range r.Rows {
		if row.Phase == measure.Profiling {
			rows = append(rows, row)
		}
	}
	return rows
}

// inOrder sorts rows by when they were sent. Those that were not come where they were over.
func inOrder(rows []Row) {
	slices.SortStableFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(cmp.Or(a.Start, a.End), cmp.Or(b.Start, b.End)), cmp.Compare(a.ID, b.ID))
	})
}

// Settings are what a run was told to do, as far as its reports use it.
type Settings struct {
	Command     string // as it was typed, without secrets
	Model       string
	Endpoint    string
	Concurrency int           // of a closed loop; 0: it was none
	Rate        float64       // requests/s asked for; 0: the trace's own times
	GPUs        int           // 0: not known
	Slice       time.Duration // 0: no slices
	SLO         measure.SLO   // empty: every ok request is good
	Percentiles []float64     // beside the usual ones, 0 to 100
	Streamed    bool          // without it there is no first token and no gap
}

// A Row is one finished request. Instants are Unix nanoseconds, 0 where they did not come; times are milliseconds, NaN where
// they are not defined; lengths are tokens, 0 where they are not known.
type Row struct {
	ID           string // x_request_id
	Conversation string // session of the trace; "" for none
	Correlation  string // x_correlation_id: one conversation of one pass
	Session      int64  // session_num: counts conversations, and requests without one, in the order in which their first one ended
	Turn         int    // turn_index, from 0
	Worker       string // worker_id
	Processor    string // record_processor_id
	Phase        measure.RunPhase
	Outcome      measure.Outcome
	Status       int
	Error        string

	Due, Credit, Start, Ack, First, End, Cancel int64 // Credit: a lane took it; End: its last content, else when it was over

	TTFT, Latency, ITL float64   // of ok requests; ITL is AIPerf's: (latency − TTFT) / (output − 1), one value a request
	Second             float64   // time_to_second_token: the second content chunk − the first
	ReadDelay          float64   // time of a read with content − the kernel's receive time, the mean of the request's Reads; 0 without any
	Lateness           float64   // start − max(due, end of the session wait), ≥ 0; of every request that was sent
	Gaps               []float64 // between content chunks; nil where they were not kept
	Input, Output      int       // input_sequence_length: as asked for, else as counted, else as the server says; output_sequence_length of an ok request
	Reasoning          int       // of Output
	Reads, Merged      int       // reads with content that the kernel stamped, and reads that held several content chunks
}

// Values are what service levels judge and distributions show; of a request that did not end ok only the lateness.
func (r Row) Values() measure.Values {
	v := measure.NoValues()
	v[measure.Lateness] = r.Lateness
	if r.Outcome != measure.OK {
		return v
	}
	v[measure.TTFT], v[measure.SecondToken], v[measure.E2E] = r.TTFT, r.Second, r.Latency
	if !math.IsNaN(r.TTFT) { // one answer as a whole has no first token
		v[measure.TTFTFromDue] = r.fromDue(r.First)
	}
	v[measure.E2EFromDue] = r.fromDue(r.End)
	v.SetTPOT(r.ITL)
	v.SetLengths(r.Input, r.Output, r.Reasoning)
	return v
}

// fromDue is the distance of an instant from the due instant in milliseconds; NaN unless both are known.
func (r Row) fromDue(instant int64) float64 {
	if instant == 0 || r.Due == 0 {
		return math.NaN()
	}
	return float64(instant-r.Due) / 1e6
}
