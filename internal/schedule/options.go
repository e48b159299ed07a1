package schedule

import (
	"math"
	"slices"
	"time"

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
type Shard struct{ Index, Of int }

// TurnDelay changes the time from the end of a row to the rows of its session that come after it: first Scale, then Max. Speed does not
// change it.
type TurnDelay struct {
	Scale float64       // 0 to 1000; 0: no delay
	Max   time.Duration // longest delay; 0: no limit
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
	if !o.timed() {
		return wait
	}
	return time.Duration(min(math.Round(float64(wait)*o.Speed), float64(Longest)))
}

// Options of a plan; the zero value of a field is its default where the comment names one.
type Options struct {
	Arrival  Arrival
	Speed    float64       // trace seconds per wall second, 0.001 to 1000; 1 where the trace's times are not those of its rows
	From, To time.Duration // window of the trace, [From, To); To 0: to the end
	Mode     Mode
	Align    Align         // for Loops, without Concurrency
	Every    time.Duration // loop length; 0: see Plan.Period
	Gap      time.Duration // least pause between the last row of a loop and the next loop
	Offset   time.Duration // shifts loop borders of align wall_clock, by less than Every
	Cron     string        // for mode Cron: minute, hour, day of month, month, day of week
	Timezone string        // of Cron, a name of the IANA database; "": UTC
	Overlap  Overlap       // for mode Cron; "": Skip
	Shard    Shard         // zero value: everything

	// TurnDelay changes the delays between the turns of a session, and the waits after the parents of a row; nil: as in the source.
	TurnDelay *TurnDelay

	Rate       float64 // requests per second, for arrivals at a rate; with Stages the rate at the begin
	Stages     []Stage // for Constant, Poisson and Gamma: how the rate changes; nil: the rate is constant
	Burstiness float64 // for Gamma: the shape of the distribution of gaps, 0.01 to 1000; 1 is Poisson, less is burstier
	RateOf     RateOf  // for Constant, Poisson and Gamma; "": Requests
	Users      int     // for Users: their number

	// SessionsAtOnce is how many sessions are in progress, for Sessions. StartWithin is where the first of them begin.
	SessionsAtOnce int
	StartWithin    StartWithin
	Seed           uint64 // for Poisson and Gamma: seed of the gaps

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

// A StartWithin has sessions begin at a drawn share of their rows, so that a replay does not begin with first turns alone. The rows before
// count as ended. The zero value is the first row.
type StartWithin struct{ From, To float64 }

// closed reports whether rows have no instants.
func (o *Options) closed() bool { return o.Arrival == Concurrency || o.Arrival == Sessions }

// BySession reports whether rows are read session by session.
func (o *Options) BySession() bool { return o.Arrival == Sessions || o.RateOf == Starts }

// timed reports whether rows are due at the trace's own times.
func (o *Options) timed() bool { return o.Arrival == Exact || o.Arrival == Spread }

// byGaps reports whether the gaps between rows follow from a rate.
func (o *Options) byGaps() bool {
	return o.Arrival == Constant || o.Arrival == Poisson || o.Arrival == Gamma
}
