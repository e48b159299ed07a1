package report

import (
	"time"

	"replayd/internal/measure"
)

// A Run is what reports are made of: the requests of one run, in the order in which they were sent, and what is known beside
// them. It is collected while a run goes on, or read from its files; everything else in this package only reads it.
type Run struct {
	Name     string // of the folder it came from; "" while it goes on
	Settings Settings
	Rows     []Row
	Dropped  map[measure.DropReason]int64 // never sent, by reason; known to the process that ran it
	Partial  []string                     // what was missing from its files, in words: "profile_export.jsonl:812: cut in mid-line"
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
	Goodput     []Bound       // service levels; none: every ok request is goodput
	Percentiles []float64     // beside the usual ones, 0 to 100
	Streamed    bool          // without it there is no first token and no gap
}

// A Bound is one service level: a metric of the export by its name there, and the most (for rates per user the least) that keeps it.
type Bound struct {
	Metric string  // time_to_first_token and so on
	Value  float64 // in the metric's unit
}

// A Row is one finished request. Instants are Unix nanoseconds, 0 where they did not come; times are milliseconds, NaN where
// they are not defined; lengths are tokens, 0 where they are not known.
type Row struct {
	ID           string // x_request_id
	Conversation string // session of the trace; "" for none
	Correlation  string // x_correlation_id: one conversation of one pass
	Session      int64  // session_num: counts conversations, and requests without one, in the order of their first request
	Turn         int
	Worker       string // worker_id
	Processor    string // record_processor_id
	Phase        measure.RunPhase
	Outcome      measure.Outcome
	Status       int
	Error        string

	Due, Credit, Start, Ack, First, End, Cancel int64 // Credit: a lane took it; End: its last content, else when it was over

	TTFT, Latency, ITL float64   // ITL is AIPerf's: (latency − TTFT) / (output − 1), one value a request
	Gaps               []float64 // between content chunks; nil where they were not kept
	Input, Output      int       // input_sequence_length, output_sequence_length
	Reasoning          int       // of Output
}
