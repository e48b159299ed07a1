// Package schedule decides when each row of a trace is due. It reads no clock and starts no goroutine.
package schedule

import (
	"time"

	"replayd/internal/trace"
)

// A Due is a trace row and the instant at which the first byte of its request should leave.
type Due struct {
	trace.Record
	At   time.Time // the planned instant; carries the loop start's monotonic reading
	Loop Loop
}

// A Loop is one pass over the trace.
type Loop struct {
	Number int64     // floor((start − offset) / every) with phase wall, from 0 with phase start and once
	Start  time.Time // the instant of trace offset 0 (of the window's From)
}

// Arrival places rows that share a timestamp.
type Arrival string

// Arrivals.
const (
	Exact  Arrival = "exact"  // at the trace's own instants, bursts included
	Spread Arrival = "spread" // the rows of a tick evenly over it
)

// Mode says how often the trace is played.
type Mode string

// Modes.
const (
	Once  Mode = "once"
	Loops Mode = "loop"
)

// Phase says where loop borders lie.
type Phase string

// Phases.
const (
	Wall  Phase = "wall"  // at multiples of Every since the Unix epoch, plus Offset
	Start Phase = "start" // from the epoch that the replay was given
)

// Shard picks the rows of one of several replayers: by session, else by record number.
type Shard struct{ Index, Of int }

// Options of a plan; the zero value of a field is its default where the comment names one.
type Options struct {
	Arrival  Arrival
	Speed    float64       // trace seconds per wall second, 0.001 to 1000
	From, To time.Duration // window of the trace, [From, To); To 0: to the end
	Mode     Mode
	Phase    Phase         // for Loops
	Every    time.Duration // loop length; 0: the shortest of a fixed ladder that holds span / speed + gap
	Gap      time.Duration // least pause between the last row of a loop and the next loop
	Offset   time.Duration // shifts loop borders of phase wall
	Shard    Shard         // zero value: everything
}
