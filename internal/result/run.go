// Package result holds the result of one run: its requests as rows, its settings, and the figures of both. It collects
// a run while it goes on, reads it back from its files, merges shards, cuts slices and prints the table of figures.
// Other packages write files and pages.
package result

import (
	"cmp"
	"math"
	"slices"
	"time"

	"replayd/internal/measure"
)

// mostRows is the most requests that a Run holds: with their ids about 500 MiB. Further requests are only counted, in
// Partial.
const mostRows = 1 << 20

// A Run is the data of reports: the requests of one run, in the order in which they were sent, with the run's settings
// and results. It is collected while the run goes on, or read from its files.
type Run struct {
	Name         string // of the folder it was read from; "" while the run goes on
	Settings     Settings
	Rows         []Row
	Ledger       *measure.Ledger      // what became of all requests that fell due, without the warm-up; nil: not known
	Told         []measure.LedgerLine // last ledger line of each workload in the records, summed up in Ledger; nil: none
	Sessions     []measure.Session    // that have ended, in the order of their ends; nil: not known
	Cache        *Cache               // prompt tokens in the server's prefix cache; nil: not known
	ServerSeries []ServerSeries       // series of the server and the GPUs during the run
	Cut          bool                 // the run was stopped before its end
	Picked       bool                 // Rows is only a selection; Ledger is that of the whole run
	Partial      []string             // what is missing from the run's files: "profile_export.jsonl:812: cut in mid-line"
}

// Measured returns the rows that count in figures, which are all but the warm-up.
func (r Run) Measured() []Row {
	rows := make([]Row, 0, len(r.Rows))
	for _, row := range r.Rows {
		if row.Phase == measure.Profiling {
			rows = append(rows, row)
		}
	}
	return rows
}

// inOrder sorts rows by start. A request that was never sent is sorted by its end.
func inOrder(rows []Row) {
	slices.SortStableFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(cmp.Or(a.Start, a.End), cmp.Or(b.Start, b.End)), cmp.Compare(a.ID, b.ID))
	})
}

// Settings are the settings of a run, as far as reports use them.
type Settings struct {
	Command     string // as typed, without secrets
	Model       string
	Endpoint    string
	Concurrency int           // of a closed loop; 0: not a closed loop
	Rate        float64       // requested requests/s; 0: the trace's own times
	GPUs        int           // 0: not known
	Slice       time.Duration // 0: no slices
	SLO         measure.SLO   // empty: every ok request is good
	Session     measure.SessionSLO
	Percentiles []float64 // in addition to the usual ones, 0 to 100
	Streamed    bool      // answers were streamed; otherwise there is no first token and no gap
}

// A Row is one finished request. Instants are Unix nanoseconds, 0 if they did not happen. Times are milliseconds, NaN
// if undefined. Lengths are tokens, 0 if unknown.
type Row struct {
	ID           string // x_request_id
	Conversation string // session of the trace; "" for none
	Correlation  string // x_correlation_id: one conversation of one pass
	Session      int64  // session_num: number of the conversation or single request, by the end of its first request
	Turn         int    // turn_index, from 0
	Worker       string // worker_id
	Processor    string // record_processor_id
	Phase        measure.RunPhase
	Outcome      measure.Outcome
	Status       int
	Error        string

	Due, Credit, Start, Ack, First, End, Cancel int64 // Credit: a lane took it; End: last content, else the end of the request

	TTFT, Latency, ITL float64   // of ok requests; ITL is AIPerf's: (latency − TTFT) / (output − 1), one value per request
	TTFAT              float64   // time_to_first_output_token: first content chunk that is not reasoning − write
	Second             float64   // time_to_second_token: second content chunk − first
	ReadDelay          float64   // mean over Reads of: time of the read − the kernel's receive time; 0 without Reads
	Lateness           float64   // start − max(due, end of the session wait), ≥ 0; of every request that was sent
	Gaps               []float64 // between content chunks; nil if not kept
	Input, Output      int       // input_sequence_length: as requested, else counted, else the server's; output_sequence_length if ok
	Reasoning          int       // part of Output
	Opening            int       // output tokens of the first content chunk; 0: unknown, as in exports
	Reads, Merged      int       // reads with content and a kernel timestamp; reads that held several content chunks
}

// Values returns the quantities that SLOs bound and distributions show. A request that did not end ok has only its
// lateness.
func (r Row) Values() measure.Values {
	v := measure.NoValues()
	v[measure.Lateness] = r.Lateness
	if r.Outcome != measure.OK {
		return v
	}
	v[measure.TTFT], v[measure.TTFAT], v[measure.SecondToken], v[measure.E2E] = r.TTFT, r.TTFAT, r.Second, r.Latency
	if !math.IsNaN(r.TTFT) { // an answer that is not streamed has no first token
		v[measure.TTFTFromDue] = r.fromDue(r.First)
	}
	v[measure.E2EFromDue] = r.fromDue(r.End)
	v.SetTPOT(r.ITL)
	v.SetLengths(r.Input, r.Output, r.Reasoning)
	return v
}

// fromDue returns instant − due in milliseconds, or NaN unless both are known.
func (r Row) fromDue(instant int64) float64 {
	if instant == 0 || r.Due == 0 {
		return math.NaN()
	}
	return float64(instant-r.Due) / 1e6
}
