package live

import (
	"net/url"
	"slices"
	"time"

	"replayd/internal/measure"
	"replayd/internal/metrics"
	"replayd/internal/trace"
)

// WorkloadOptions are what the page says about a workload that does not change while it runs.
type WorkloadOptions struct {
	Name     string // one line on the page; a later workload of that name takes its place
	Target   string
	URL      string // shown without user, password and query
	API      string
	Model    string
	Schedule string // in words: "loop on the wall clock, speed 2", "once"
	Closed   bool   // rows are due when a lane is free: there is no place in a plan, and nothing falls due in a pause
	Lanes    int
	SLO      measure.SLO
	Sheds    bool // overload: drop; see measure.WorkloadOptions
	Trace    metrics.TraceInfo
	From, To time.Duration // the part of the trace that is played, in trace time; To 0: to its end
	Length   time.Duration // of the whole trace: the offset of its last row; 0 where rows do not go by its times
	Curve    trace.Curve   // of the same; empty likewise

	// State is asked once a second, from the goroutine that Run is called on and without a lock held, until the
	// workload is removed or replaced; once more may come just after.
	State func() State
}

// Phase is what a workload does.
type Phase string

// Phases.
const (
	Waiting  Phase = "waiting" // for the target or for its first instant
	Warming  Phase = "warming" // rows go out before the plan begins, and count nowhere
	Running  Phase = "running"
	Paused   Phase = "paused"
	Guarded  Phase = "guarded" // held back by its guard; the reason says by which limits
	Draining Phase = "draining"
	Over     Phase = "over"
	Failed   Phase = "failed"
)

// State is what a workload does at an instant.
type State struct {
	Ledger measure.Ledger
	Phase  Phase
	Reason string // for people, such as why it failed; may be empty

	Loop         int64
	Position     time.Duration // trace time
	LoopDuration time.Duration // from the start of a loop to that of the next; 0: there are no loops
	Next         time.Time     // when the next loop, or a workload that waits, begins; zero: that is not known, or there is none
	Skew         time.Duration // wall clock − the loop's own time

	TargetUp   bool
	TargetText string // e.g. "answers as qwen3-8b", "does not answer: connection refused"; empty while nothing is known
	Started    time.Time
}

// A Workload is one card on the page.
type Workload struct {
	options WorkloadOptions
	history *history
	state   State   // of the last tick; guarded, as the verdict is, by the Board's lock
	verdict verdict // from the last tick, too
}

// Bounds on texts that are not from the configuration.
const (
	reasonBytes = 160
	noteBytes   = 240
)

// Workload puts one on the page. Where one of the same name is there, it is replaced: the new one takes its place and
// goes on with its history, and both may be observed while the old one drains.
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
		w.history.rebase() // its series are others
	} else {
		w.state, w.verdict = old.state, old.verdict
	}
	b.workloads[i] = w
	return w
}

// Remove takes a workload off the page, unless a later one of its name has taken its place.
func (b *Board) Remove(w *Workload) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.workloads, w); i >= 0 {
		b.workloads = slices.Delete(b.workloads, i, i+1)
		b.changed()
	}
}

// Observe takes a request that has finished. It keeps nothing of r but its ID and its error. It may be called from
// several goroutines at once, takes less than a microsecond and allocates nothing.
func (w *Workload) Observe(r *measure.Request) { w.history.observe(r) }

// tick takes the state of an instant and returns the slots that are over. The Board's lock is held.
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

// withoutSecrets leaves scheme, host and path of an address: a user and a query can hold keys.
func withoutSecrets(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, Opaque: u.Opaque}).String()
}
