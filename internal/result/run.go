// Package result holds the result of one run: its requests as rows, its settings, and the figures of both. It collects
// a run while it goes on, reads it back from its files, merges shards, cuts slices and prints the table of figures.
// Other packages write files and pages.
package result

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"replayd/internal/measure"
)

// A Run is the data of reports: the requests of one run, in the order in which they were sent, with the run's settings
// and results. It is collected while the run goes on, or read from its files.
type Run struct {
	Name         string // of the folder it was read from; "" while the run goes on
	Settings     Settings
	Rows         []Row
	Ledger       *measure.Ledger      // what became of all requests that fell due, without the warm-up; nil: not known
	LedgerLines  []measure.LedgerLine // last ledger line of each workload in the records, summed up in Ledger; nil: none
	Sessions     []measure.Session    // that have ended, in the order of their ends; nil: not known
	Cache        *Cache               // prompt tokens in the server's prefix cache; nil: not known
	Reading      *Reading             // where answers differed from the API; nil: nowhere, or not known
	ServerSeries []ServerSeries       // series of the server and the GPUs during the run
	Cut          bool                 // the run was stopped before its end
	Picked       bool                 // Rows is only a selection; Ledger is that of the whole run
	Partial      []string             // what is missing from the run's files: "profile_export.jsonl:812: cut in mid-line"
}

// Measured returns the rows that count in figures, which are all but the warm-up.
func (r Run) Measured() []Row {
	return slices.DeleteFunc(slices.Clone(r.Rows), func(row Row) bool { return row.Phase != measure.Profiling })
}

// Span returns the first send and the last end of the rows that count in figures.
func (r Run) Span() (first, last time.Time) {
	var f Statistics
	for _, row := range r.Rows {
		if row.Phase == measure.Profiling {
			f.count(row)
		}
	}
	return time.Unix(0, f.First), time.Unix(0, f.Last)
}

// lacks adds a line to Partial if n things are missing from the run.
func (r *Run) lacks(n int, format string, values ...any) {
	if n > 0 {
		r.Partial = append(r.Partial, fmt.Sprintf(format, values...))
	}
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
	NotExact    string    // why no exact lengths are asked of the server; "": they are, or that is not known
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
	Retried      bool // sent a second time; false in AIPerf's exports, which do not say

	Due, Credit, Start, Ack, First, End, Cancel int64 // Credit: a lane took it; End: last content, else the end of the request

	TTFT, Latency, ITL float64   // of ok requests; ITL is AIPerf's: (latency − TTFT) / (output − 1), one value per request
	MostTPOT           float64   // ITL may be anything up to it; 0: it is exact
	TTFAT              float64   // time_to_first_output_token: first content chunk that is not reasoning − write
	Second             float64   // time_to_second_token: second content chunk − first
	ReadDelay          float64   // mean over Reads of: time of the read − the kernel's receive time; 0 without Reads
	Lateness           float64   // start − max(due, end of the session wait) − Connect, ≥ 0; of every request that was sent
	Connect            float64   // time to open its connection; 0: one was open
	Gaps               []float64 // between content chunks; nil if not kept
	Input, Output      int       // input_sequence_length: as measure.Request.Input; output_sequence_length if ok
	Reasoning          int       // part of Output
	Opening            int       // output tokens of the first content chunk; 0: unknown, as in exports
	Reads, Merged      int       // reads with content and a kernel timestamp; reads that held several content chunks

	Prompt, Answer measure.Length
}

// Values returns the quantities that SLOs bound and distributions show. A request that did not end ok has only its
// lateness.
func (r *Row) Values() measure.Values {
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
	if r.MostTPOT > 0 {
		v[measure.MostTPOT] = r.MostTPOT
	}
	v.SetLengths(r.Input, r.Output, r.Reasoning)
	return v
}

// Value returns a quantity, or NaN if it is not defined.
func (r *Row) Value(q measure.Quantity) float64 { return r.Values()[q] }

// fromDue returns instant − due in milliseconds, or NaN unless both are known.
func (r *Row) fromDue(instant int64) float64 {
	if instant == 0 || r.Due == 0 {
		return math.NaN()
	}
	return float64(instant-r.Due) / 1e6
}

// AllThere reports whether a run has as many rows as its ledger counts as finished. There are more rows if a process
// was killed after its last ledger, and fewer if files are missing.
func AllThere(r Run) bool { return r.Ledger.Finished() == int64(len(r.Measured())) }

// A Slice is the requests of a run that were sent in one period of time. Its figures are AIPerf's for these requests
// alone, whenever they ended. Rates are over the time from the slice's first send to its last end.
type Slice struct {
	Index      int   // from 0; periods without a send have an index but no Slice
	Start, End int64 // Unix ns
	Complete   bool  // the run sent requests until the end of the period or later
	Figures    Statistics
	Rows       []Row
}

// Slices cuts a run into periods of Settings.Slice, from the first send on. It returns nil if Settings.Slice is 0.
// AIPerf cuts at multiples of the duration since the Unix epoch, so its first slice is mostly short.
func (r Run) Slices() []Slice {
	length := int64(r.Settings.Slice)
	rows := r.Measured()
	if length <= 0 || len(rows) == 0 {
		return nil
	}
	sent := func(row Row) int64 { return cmp.Or(row.Start, row.End) }
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(sent(a), sent(b)) })
	first, last := sent(rows[0]), sent(rows[len(rows)-1])

	var all []Slice
	for len(rows) > 0 {
		index := (sent(rows[0]) - first) / length
		s := Slice{Index: int(index), Start: first + index*length, End: first + (index+1)*length}
		s.Complete = last >= s.End
		n := 0
		for n < len(rows) && sent(rows[n]) < s.End {
			n++
		}
		s.Rows, rows = rows[:n], rows[n:]
		s.Figures = Aggregate(s.Rows, r.Settings)
		all = append(all, s)
	}
	return all
}
