package schedule

import (
	"math"
	"slices"
	"time"

	"replayd/internal/scalar"
	"replayd/internal/trace"
)

// Arrival says when rows come due.
type Arrival string

// Arrivals.
const (
	Exact  Arrival = "exact"  // at the trace's own instants, bursts included
	Spread Arrival = "spread" // at the trace's own instants, rows of one tick evenly over the tick

	Constant    Arrival = "constant"    // at a rate, all gaps the same
	Poisson     Arrival = "poisson"     // at a rate, gaps from the exponential distribution
	Gamma       Arrival = "gamma"       // at a rate, gaps from the gamma distribution of shape Burstiness
	Users       Arrival = "users"       // at a rate, from a number of users in turn; see Source.Turns
	Concurrency Arrival = "concurrency" // closed loop: when a lane is free
	Sessions    Arrival = "sessions"    // closed loop of sessions: when another session has ended; their rows when their parents have
)

// RateOf is the unit of a rate.
type RateOf string

// Units of rates.
const (
	Requests RateOf = "requests"
	Starts   RateOf = "sessions" // a session's rows follow its start as their parents allow
)

// Mode says how often the trace is played.
type Mode string

// Modes.
const (
	Once  Mode = "once"
	Loops Mode = "loop"
	Cron  Mode = "cron" // one pass from each activation of an expression
)

// Align says at which instants loops begin.
type Align string

// Alignments.
const (
	WallClock Align = "wall_clock" // at multiples of Every since the Unix epoch, plus Offset
	Start     Align = "start"      // from the epoch of the replay
)

// Overlap says what happens to an activation before the last row of the run before it is due.
type Overlap string

// Overlaps.
const (
	Skip  Overlap = "skip"  // the activation is skipped
	Queue Overlap = "queue" // one run begins when the run before is over, however many activations there were meanwhile
)

// Shard selects the rows of one of several processes: by session, else by record number.
type Shard struct {
	Index scalar.Auto `koanf:"index"` // not auto
	Of    int         `koanf:"of"`
}

// TurnDelay changes the time from the end of a row to the rows of its session that come after it: first Scale, then Max. Speed does not
// change it.
type TurnDelay struct {
	Scale float64       `koanf:"-"`   // 0 to 1000; 0: no delay. Flags of run set it
	Max   time.Duration `koanf:"max"` // longest delay; 0: no limit
}

func (t *TurnDelay) of(delay time.Duration) time.Duration {
	if t == nil || delay == 0 {
		return delay
	}
	scaled := time.Duration(min(math.Round(float64(delay)*t.Scale), float64(Longest)))
	if t.Max > 0 {
		scaled = min(scaled, t.Max)
	}
	return scaled
}

// waits returns the edges of a row with their waits changed.
func (t *TurnDelay) waits(edges []trace.Edge) []trace.Edge {
	if t == nil || len(edges) == 0 || t.Scale == 1 && t.Max == 0 {
		return edges
	}
	edges = slices.Clone(edges) // the source may give the row again
	for i := range edges {
		edges[i].Wait = t.of(edges[i].Wait)
	}
	return edges
}

// Wait returns how long a wait after a parent takes when it is played, in the time of the trace.
func (o *Options) Wait(recorded time.Duration) time.Duration {
	wait := o.TurnDelay.of(recorded)
	if !o.Timed() {
		return wait
	}
	return time.Duration(min(math.Round(float64(wait)*o.Speed), float64(Longest)))
}

// A Pattern says when the rows of a loop are due. The zero value of a field is its default where the comment names one.
type Pattern struct {
	Arrival Arrival `koanf:"arrival"`

	// For arrivals at a rate: requests or sessions per second, with Stages at the begin. Stages change it; nil: it is
	// constant.
	Rate   float64 `koanf:"rate"`
	RateOf RateOf  `koanf:"rate_of"` // for Constant, Poisson and Gamma; "": Requests

	// Burstiness is the shape of Gamma's distribution of gaps, 0.01 to 1000; 1 is Poisson, less is burstier.
	Burstiness float64 `koanf:"burstiness"`
	Stages     []Stage `koanf:"stages"` // for Constant, Poisson and Gamma
	Users      int     `koanf:"users"`  // for Users: their number

	// For Sessions: how many are in progress, and the range of shares of their rows at which the first ones begin.
	AtOnce int           `koanf:"sessions_at_once"`
	Within scalar.Within `koanf:"start_within"`

	// Speed is trace seconds per wall second, 0.001 to 1000; 1 where rows are not due at the trace's own times.
	Speed float64 `koanf:"speed"`
}

// Repeat says when loops begin.
type Repeat struct {
	Mode   Mode          `koanf:"mode"`
	Every  time.Duration `koanf:"every"`  // loop length; 0: see Plan.Period
	Align  Align         `koanf:"align"`  // for Loops, unless they follow each other
	Offset time.Duration `koanf:"offset"` // shifts loop borders of align wall_clock, by less than Every

	Cron     string  `koanf:"cron"`     // for mode Cron: minute, hour, day of month, month, day of week
	Timezone string  `koanf:"timezone"` // of Cron, a name of the IANA database; "": UTC
	Overlap  Overlap `koanf:"overlap"`  // for mode Cron; "": Skip
}

// Options of a plan. Pattern, TurnDelay, Repeat and Shard are parts of a workload's configuration.
type Options struct {
	Pattern
	Repeat
	TurnDelay *TurnDelay // of the waits between the turns of a session and after parents; nil: as in the source
	Shard     Shard      // zero value: everything

	From, To time.Duration // window of the trace, [From, To); To 0: to the end
	Seed     uint64        // for Poisson and Gamma: seed of the gaps

	// Rows is the number of rows of a loop. A source with fewer rows is repeated, except with Exact and Spread, for which that is
	// an error. 0: the number of rows in the window.
	Rows int

	// Duration is the time after a loop's start from which on no rows are due; 0: no limit. With Constant, Poisson and Gamma,
	// whose first row comes after a gap, a row at exactly that time is due. With Concurrency rows have no instants, and the
	// caller enforces Duration.
	Duration time.Duration
}

// Longest bounds every duration of a plan, far below the 292 years that a time.Duration holds.
const Longest = 10 * 365 * 24 * time.Hour

// Closed reports whether rows have no instants: the next one depends on the ends of others.
func (p *Pattern) Closed() bool { return p.Arrival == Concurrency || p.Arrival == Sessions }

// BySession reports whether rows are read session by session.
func (p *Pattern) BySession() bool { return p.Arrival == Sessions || p.RateOf == Starts }

// Timed reports whether rows are due at the trace's own times.
func (p *Pattern) Timed() bool { return p.Arrival == Exact || p.Arrival == Spread }

// byGaps reports whether the gaps between rows follow from a rate, and the first row comes after a gap. Such a loop
// includes the instant of its end instead of the instant of its start: it has the number of rows expected in its length,
// and the last row may be due when the next loop begins.
func (p *Pattern) byGaps() bool {
	return p.Arrival == Constant || p.Arrival == Poisson || p.Arrival == Gamma
}

// ByRate reports whether the instants of rows come from a rate and not from the trace.
func (p *Pattern) ByRate() bool { return p.byGaps() || p.Arrival == Users }
