package replay

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/schedule"
	"replayd/internal/trace"
)

// stands makes the reading of a source stand still between two instants.
func stands(s schedule.Source, from, to time.Time) schedule.Source {
	rows := s.Rows
	s.Rows = func(at time.Duration) (func() (trace.Record, error), error) {
		next, err := rows(at)
		return func() (trace.Record, error) {
			if now := time.Now(); now.After(from) {
				pass(to.Sub(now))
			}
			return next()
		}, err
	}
	return s
}

// A repetition is one of the ways to repeat a trace.
type repetition struct {
	name    string
	options schedule.Options
	loops   bool // more than one
	follows bool // the wall clock
	epoch   bool // of a plan whose first loop begins at a given instant
}

var fromStart = schedule.Options{
	Repeat: schedule.Repeat{Mode: schedule.Loops, Align: schedule.Start, Every: time.Minute},
}

var repetitions = []repetition{
	{"wall clock", minutes, true, true, false},
	{"cron", schedule.Options{Repeat: schedule.Repeat{Mode: schedule.Cron, Cron: "* * * * *"}}, true, true, false},
	{"start", fromStart, true, false, false},
	{"start at an epoch", fromStart, true, true, true},
	{"once", once, false, false, false},
	{"once at an epoch", once, false, true, true},
}

// After a standstill all rows of the loop in which it began and of the one in which it ends are expected, and those that
// were due in it are missed. The loops between the two are left out, with a line and a count: none of their
// rows is read or expected. The loops after it have the numbers that they would have had. It is the same whether the
// process was stopped or the system slept, where the plan follows the wall clock; where it does not, a sleep of the
// system is a pause.
func TestStandstillOfLoops(t *testing.T) {
	const rows, began = 60, 20*time.Second + 500*time.Millisecond // of each loop, a second apart; into the first loop
	for _, c := range repetitions {
		for how, lengths := range map[string][]float64{
			"slept":                             {0, 1, 2.5, 12, 5000.5},
			"stopped, the reader goes on first": {1, 2.5, 12}, "stopped, the pacer goes on first": {1, 2.5, 12},
		} {
			for _, loops := range lengths {
				length, pacer := time.Duration(loops*float64(time.Minute)), strings.Contains(how, "pacer")
				t.Run(fmt.Sprintf("%s/%s/%v", c.name, how, loops), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						standstill(t, &c, how == "slept", length, began, rows, pacer)
					})
				})
			}
		}
	}
}

func standstill(t *testing.T, c *repetition, slept bool, length, began time.Duration, rows int, pacerFirst bool) {
	w, begins, start := &wallClock{}, time.Now(), lead // the bubble's clock begins at a minute
	if c.options.Mode == schedule.Cron || c.options.Align == schedule.WallClock || c.epoch {
		start = 0
	}
	from := begins.Add(start + began)
	src := every(rows, time.Second)
	s := &sleepy{Timers: NewTimers()}
	switch {
	case slept:
		time.AfterFunc(start+began, func() { w.step(length) })
	case length > 0:
		reader := from.Add(length)
		s.from, s.to = from, reader
		if pacerFirst {
			reader = reader.Add(time.Microsecond)
		} else {
			s.to = reader.Add(time.Microsecond)
		}
		src = stands(src, from, reader)
	}
	var log bytes.Buffer
	b := newBench(t, src, c.options, &fake{ttft: time.Millisecond}, func(o *Workload) {
		o.Wall, o.Pacer.sleeper, o.Log = w.now, s, slog.New(slog.NewTextHandler(&log, nil))
		if c.epoch {
			o.Epoch = w.now()
		}
	})
	ctx, end := context.WithCancel(t.Context())
	pause := slept && !c.follows
	until := began + length + 2*time.Minute // planned, of the last row
	if pause {
		until -= length
	}
	if stop := start + until; slept && !pause {
		time.AfterFunc(stop-length, end)
	} else {
		time.AfterFunc(stop, end)
	}
	b.run(t, ctx, t.Context())

	// What is to be: the seconds of the plan that are sent, those that are missed, and the loops that lie between.
	sent, missed, left, enters := map[int64][]int{}, 0, int64(0), int64(0)
	last := int64((began + length) / time.Minute) // the loop in which the standstill ends
	for second := range int(until/time.Second) + 1 {
		at, loop, row := time.Duration(second)*time.Second, int64(second/rows), second%rows
		switch in := length > 0 && !pause && at > began && at <= began+length; {
		case !c.loops && loop > 0:
		case in && (loop == 0 || loop == last):
			missed++
		case in && row == 0:
			left, enters = left+1, last
		case !in:
			sent[loop] = append(sent[loop], row)
		}
	}
	got := b.sentOnce(t)
	loops := map[int64][]int{}
	for loop, rows := range got {
		if start == 0 && !c.epoch {
			loop -= begins.Unix() / 60
		}
		loops[loop] = rows
	}
	want(t, "rows by loop", loops, sent)
	want(t, "missed", b.counter(t, "replayd_requests_dropped_total", "missed"), float64(missed))
	want(t, "loops left out", b.counter(t, "replayd_loops_skipped_total", ""), float64(left))
	line := regexp.MustCompile(`level=WARN msg="whole loops are left out[^\n]* workload=w loops=(\d+) next=(\d+)\n`)
	lines := line.FindAllStringSubmatch(log.String(), -1)
	if left == 0 {
		want(t, "lines about loops", len(lines), 0)
		return
	}
	if start == 0 && !c.epoch {
		enters += begins.Unix() / 60
	}
	if want := []string{fmt.Sprint(left), fmt.Sprint(enters)}; len(lines) != 1 || !slices.Equal(lines[0][1:], want) {
		t.Errorf("want a line with %q, got %q in\n%s", want, lines, strings.TrimSpace(log.String()))
	}
}
