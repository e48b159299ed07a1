package daemon

import (
	"context"
	"errors"
	"os"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"replayd/internal/canary"
	"replayd/internal/comparison"
	"replayd/internal/config"
	"replayd/internal/fault"
	"replayd/internal/live"
	"replayd/internal/measure"
	"replayd/internal/metrics"
	"replayd/internal/replay"
	"replayd/internal/schedule"
	"replayd/internal/synth"
	"replayd/internal/token"
	"replayd/internal/trace"
)

// A workload has checked rows, their plan and prompts, and, after its start, the runner.
type workload struct {
	config config.Workload
	server *server
	side   side // of a comparison

	changing sync.Mutex  // held by a change of the runners, which waits for their lock; locked before mu
	asked    atomic.Bool // such a change has not come to its end, and neither has
	reached  atomic.Bool // the question whether one is possible

	mu sync.Mutex // guards the next two; nobody waits with it, so pages may take it
	played
	retired bool // a successor takes over from an instant on

	// Set at the start.
	make   func(replay.Handover) *replay.Runner
	reopen func(context.Context) (*rowSource, error)
	before atomic.Pointer[workload] // the predecessor, until it has ended
	count  *metrics.Workload
	shown  atomic.Pointer[live.Workload] // nil: there is no live page
	engine func() string                 // describes the load of the target's engines; "" if they are not scraped
	stop   context.CancelFunc
	workloadEnd
}

// played is what a workload plays. It is another one when its rows were reread.
type played struct {
	rows     *rowSource
	plan     *schedule.Plan
	prompter *synth.Prompter
	runner   *replay.Runner
	earlier  *replay.Runner // the runner of the rows before they were reread; may still drain
}

// A workloadEnd has the ways in which a workload ends.
type workloadEnd struct {
	lost    chan replay.Lost // rows can no longer be read; capacity 1
	quit    chan struct{}    // closed with retired
	over    chan struct{}    // closed when the runner has ended
	leave   chan struct{}    // closed when the workload is removed
	readers sync.WaitGroup   // of its rows, besides the runner
	removed atomic.Bool      // the series are removed at the end
	failure atomic.Pointer[string]
	broken  atomic.Bool // the rows cannot be read, or the workload has failed: a reload opens it again
}

func (w *workload) started() bool { return w.runner != nil }

func (w *workload) fail(err error) {
	text := err.Error()
	w.failure.CompareAndSwap(nil, &text)
	w.broken.Store(true)
	w.count.Fault(true)
}

func (w *workload) ended() bool {
	select {
	case <-w.over:
		return true
	default:
		return false
	}
}

// early returns why a workload that has ended ended early; nil: its plan is over.
func (w *workload) early() error {
	if why := w.failure.Load(); why != nil {
		return errors.New(*why)
	}
	if w.current().Cut() {
		return ErrCut
	}
	return nil
}

// remove removes a workload's series when it has ended.
func (w *workload) remove() {
	w.removed.Store(true)
	close(w.leave)
}

// setFailure reports why nothing comes due, or with nil that rows come due again.
func (w *workload) setFailure(why error) {
	if why == nil {
		w.failure.Store(nil)
	} else {
		text := why.Error()
		w.failure.Store(&text)
	}
	w.count.Fault(why != nil)
}

func (w *workload) now() played {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.played
}

func (w *workload) current() *replay.Runner { return w.now().runner }

// files returns the files of the rows that are played, as they were when they were opened.
func (w *workload) files() []os.FileInfo {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.rows.files)
}

// plays reports whether other rows equal the rows that are played. If so, it remembers their files.
func (w *workload) plays(other *rowSource) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	same := w.rows.digest() == other.digest()
	if same {
		w.rows.files = other.files
	}
	return same
}

// pause pauses or resumes the workload. It reports whether that changed anything.
func (w *workload) pause(paused bool) bool {
	w.changing.Lock()
	defer w.changing.Unlock()
	if earlier := w.now().earlier; earlier != nil {
		earlier.Pause(paused)
	}
	return w.current().Pause(paused)
}

func (w *workload) setDrain(d time.Duration) {
	now := w.now()
	if now.earlier != nil {
		now.earlier.SetDrain(d)
	}
	now.runner.SetDrain(d)
}

// retire leaves the rows due from an instant on to a successor.
func (w *workload) retire(at replay.Instant) {
	w.mu.Lock()
	w.retired = true
	w.mu.Unlock()
	close(w.quit)
	w.changing.Lock()
	defer w.changing.Unlock()
	w.current().Retire(at)
}

// reach waits until the runners can be changed.
func (w *workload) reach() {
	w.changing.Lock()
	defer w.changing.Unlock()
	w.current().Reach()
}

func traceInfo(s trace.Stats) metrics.TraceInfo {
	return metrics.TraceInfo{
		Path: s.Path, Format: string(s.Format), SHA256: s.SHA256, Requests: s.Requests, Sessions: s.Sessions,
		BlockTokens: s.BlockTokens, PrefixHitRatio: s.Prefix.HitTokenRatio,
	}
}

// open makes the plan and the prompts.
func (w *workload) open(at string) fault.List {
	c := w.config
	var err error
	plan := c.Plan()
	if c.Trace.FromFirst && c.Timed() {
		plan.From = w.rows.stats.First
	}
	if w.plan, err = schedule.New(w.rows.source, plan); err != nil {
		return fault.At(at, err)
	}
	words, err := token.List(c.Prompt.Words)
	if err != nil {
		return fault.At(at+".prompt.words", err)
	}
	w.prompter, err = synth.New(synth.Options{
		Words: words, Form: c.Prompt.Form, Seed: c.Prompt.Seed, BlockTokens: w.rows.stats.BlockTokens,
		Texts: w.rows.texts,
	})
	return fault.At(at+".prompt", err)
}

// calibrates reports whether a server may add tokens to a workload's prompts: those of a chat template, or the token
// that some models put at the begin of a text. Servers add nothing to token ids.
func calibrates(w config.Workload) bool { return w.Prompt.Calibrate && w.Prompt.Form == synth.Text }

// comparedSides are the two workloads of a comparison, with their servers.
type comparedSides struct {
	*comparison.Comparison
	config    config.Comparison
	workloads [2]config.Workload
	servers   [2]*server
	runners   *replay.Sides
	equal     bool               // both sides get equal texts
	part      func() int         // of both plans, if they begin anew
	asked     atomic.Bool        // a change has not come to its end
	end       context.CancelFunc // nil: the comparison does not run yet
}

// A side is a workload's side of a comparison.
type side struct {
	of *comparedSides // nil: the workload is in no comparison
	is canary.Side
}

// mirrored returns the name of the workload that sends the candidate's requests. No configured name has an @.
func mirrored(c config.Comparison) string { return c.Workload + "@" + c.Candidate }

// evidenceOf returns everything that the evidence depends on besides the rows: options, and how both servers are
// asked; nil: it cannot be told. Options with their defaults are left out, so that the evidence lasts over an update of
// replayd that has further options.
func evidenceOf(c config.Comparison, sides [2]config.Workload, servers [2]*server) (given []any) {
	parts := [][2]any{{c, config.DefaultComparison()}}
	for i, s := range servers {
		target := s.config
		target.HTTP = config.DefaultTarget().HTTP // another key is no other server
		parts = append(parts, [2]any{sides[i], config.DefaultWorkload()}, [2]any{target, config.DefaultTarget()})
	}
	for _, p := range parts {
		one, err := config.Differences(p[0], p[1])
		if err != nil {
			return nil
		}
		given = append(given, one)
	}
	return given
}

// join makes a runner one of the sides. rows is the digest of its rows.
func (s side) join(w *replay.Workload, slo measure.SLO, rows string) {
	w.Sides, w.Candidate = s.of.runners, s.is == canary.Candidate
	if s.of.equal {
		w.SaltName = s.of.config.Workload
	}
	to := s.of.Side(s.is, rows, slo)
	w.Observers = append(slices.Clip(w.Observers), to)
	w.Due, w.Unsent = to.Due, to.Unsent
}

func (c *comparedSides) same(with config.Comparison, sides [2]config.Workload, servers [2]*server) bool {
	return c.config == with && reflect.DeepEqual(c.workloads, sides) && c.servers == servers
}
