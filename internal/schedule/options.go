package schedule

import "time"

// Arrival says what makes rows due.
type Arrival string

// Arrivals.
const (
	Exact  Arrival = "exact"  // at the trace's own instants, bursts included
	Spread Arrival = "spread" // likewise, the rows of a tick evenly over it

	Constant    Arrival = "constant"    // at a rate, all gaps the same
	Poisson     Arrival = "poisson"     // at a rate, gaps from the exponential distribution
	Gamma       Arrival = "gamma"       // at a rate, gaps from the gamma distribution of shape Burstiness
	Users       Arrival = "users"       // at a rate, by so many users in turn; see Source.Turns
	Concurrency Arrival = "concurrency" // a closed loop: when a lane is free
)

// Mode says how often the trace is played.
type Mode string

// Modes.
const (
	Once  Mode = "once"
	Loops Mode = "loop"
	Cron  Mode = "cron" // one pass from each activation of an expression
)

// Align says where loop borders lie.
type Align string

// Phases.
const (
	WallClock Align = "wall_clock" // at multiples of Every since the Unix epoch, plus Offset
	Start     Align = "start"      // from the epoch that the replay was given
)

// Overlap says what becomes of an activation that falls into a run: one that comes before the run's last row is due.
type Overlap string

// Overlaps.
const (
	Skip  Overlap = "skip"  // it is skipped
	Queue Overlap = "queue" // its run begins when the other is over; more of them meanwhile make no second one
)

// Shard picks the rows of one of several replayers: by session, else by record number.
type Shard struct{ Index, Of int }

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

	Rate       float64 // requests per second, for the arrivals that have a rate; with Stages what it is at first
	Stages     []Stage // for Constant, Poisson and Gamma: how the rate changes; nil: it does not
	Burstiness float64 // for Gamma: the shape of the distribution of gaps, 0.01 to 1000; 1 is Poisson, less is burstier
	Users      int     // for Users: how many
	Seed       uint64  // for Poisson and Gamma: other gaps for other seeds

	// Rows is how many rows a loop has; where the source has fewer they come round again, except with Exact and Spread, which
	// refuse that. 0: so many as are in its window.
	Rows int

	// Duration is how long after a loop's start no more rows are due; 0: there is no such time. With Constant, Poisson and
	// Gamma, whose first row comes after a gap, a row at that very instant still is. With Concurrency, where rows have no
	// instants, it is the caller's to hold to it.
	Duration time.Duration
}

// Longest bounds every duration of a plan, far below the 292 years that a time.Duration holds.
const Longest = 10 * 365 * 24 * time.Hour

// timed says whether the trace's own times are those of its rows.
func (o *Options) timed() bool { return o.Arrival == Exact || o.Arrival == Spread }

// byGaps says whether the gaps between rows follow from a rate.
func (o *Options) byGaps() bool {
	return o.Arrival == Constant || o.Arrival == Poisson || o.Arrival == Gamma
}
