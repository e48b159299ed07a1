package live

import (
	"net/url"
	"slices"
	"time"

	"replayd/internal/measure"
	"replayd/internal/metrics"
	"replayd/internal/trace"
)

// WorkloadOptions describe a workload on the page. They do not change while it runs.
type WorkloadOptions struct {
	Name     string `json:"name"` // one line on the page; a later workload of that name replaces it
	Target   string `json:"target"`
	URL      string `json:"url"` // shown without user, password and query
	API      string `json:"api"`
	Model    string `json:"model"`
	Schedule string `json:"schedule"` // in words: "loop on the wall clock, speed 2", "once"
	// Closed: rows are due when a lane is free. There is no position in a plan, and nothing is due in a pause.
	Closed bool `json:"closed,omitempty"`
	Lanes  int  `json:"lanes"`

	SLO       measure.SLO       `json:"-"`
	Objective float64           `json:"-"` // share of the eligible requests that should meet the SLO, between 0 and 1
	Sheds     bool              `json:"-"` // overload: drop; see measure.WorkloadOptions
	Trace     metrics.TraceInfo `json:"-"`
	From, To  time.Duration     `json:"-"` // the part of the trace that is played, in trace time; To 0: to its end
	Length    time.Duration     `json:"-"` // of the whole trace: its last row's offset; 0 if rows do not follow its times
	Curve     trace.Curve       `json:"-"` // of the whole trace; likewise empty

	// State is called once a second, on the goroutine of Run and without a lock, until the workload is removed or
	// replaced. One more call may come just after.
	State func() State `json:"-"`
}

// A Phase is the activity of a workload.
type Phase string

// Phases.
const (
	Waiting  Phase = "waiting" // for the target or for its first instant
	Warming  Phase = "warming" // rows are sent before the plan begins and are not counted
	Running  Phase = "running"
	Paused   Phase = "paused"
	Guarded  Phase = "guarded" // held back by its guard; the reason names the limits
	Draining Phase = "draining"
	Over     Phase = "over"
	Failed   Phase = "failed"
)

// State is the state of a workload at an instant.
type State struct {
	Ledger measure.Ledger
	Phase  Phase
	Reason string // for people, such as why it failed; may be empty

	Loop         int64
	Position     time.Duration // trace time
	LoopDuration time.Duration // from the start of a loop to that of the next; 0: there are no loops
	Next         time.Time     // start of the next loop, or of a workload that waits; zero: unknown or none
	Skew         time.Duration // wall clock − the loop's own time

	TargetUp   bool
	TargetText string // e.g. "answers as qwen3-8b", "does not answer: connection refused"; empty while nothing is known
	Started    time.Time
}

// A Workload is one card on the page.
type Workload struct {
	options WorkloadOptions
	history *history
	state   State   // of the last tick; the Board's lock guards state and verdict
	verdict verdict // of the last tick
}

// Limits of texts that are not from the configuration.
const (
	reasonBytes = 160
	noteBytes   = 240
)

// Workload adds a workload to the page. It replaces a workload of the same name: the new one takes its place and
// continues its history, and both may be observed while the old one drains.
func (b *Board) Workload(o WorkloadOptions) *Workload {
	o.URL = withoutSecrets(o.URL)
	w := &Workload{options: o, history: &history{}, state: State{Phase: Waiting}, verdict: verdict{Text: "waiting"}}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changed()
	i := slices.IndexFunc(b.workloads, func(old *Workload) bool { return old.options.Name == o.Name })
	if i < 0 {
		b.workloads = append(b.workloads, w)
		return w
	}
	old := b.workloads[i]
	w.history = old.history
	if old.options.Target != o.Target || old.options.Model != o.Model {
		w.history.rebase() // another target has other counters
	} else {
		w.state, w.verdict = old.state, old.verdict
	}
	b.workloads[i] = w
	return w
}

// Remove removes a workload from the page, unless a later one of the same name has replaced it.
func (b *Board) Remove(w *Workload) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.workloads, w); i >= 0 {
		b.workloads = slices.Delete(b.workloads, i, i+1)
		b.changed()
	}
}

// Observe takes a finished request. It keeps only the ID and the error of r. It is safe for concurrent use, takes less
// than a microsecond and allocates nothing.
func (w *Workload) Observe(r *measure.Request) { w.history.observe(r) }

// tick takes the state of an instant and returns the rows of
// the slots that are over. The caller holds the Board's lock.
func (w *Workload) tick(now time.Time, slot int, s State) []row {
	w.state = s
	rows := w.history.tick(now, slot, s.Ledger)
	v := judge(&w.options, &s, w.history.minute(), w.history.late)
	v.Since = w.verdict.Since
	if v.Level != w.verdict.Level || v.Since == (instant{}) {
		v.Since = instant(now)
	}
	w.verdict = v
	return rows
}

// withoutSecrets keeps the scheme, host and path of a URL: the user and the query can hold keys.
func withoutSecrets(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, Opaque: u.Opaque}).String()
}
