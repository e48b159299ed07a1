package replay

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
	"replayd/internal/schedule"
	"replayd/internal/synth"
	"replayd/internal/trace"
)

// A diary is an observer that checks that requests are sent on time and once, at the given times. It keeps no requests.
type diary struct {
	t *testing.T

	mu    sync.Mutex
	due   map[time.Time]int // requests still expected at a time of the wall clock
	count int
}

func (d *diary) Observe(r *measure.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := r.Timeline.Planned.UTC().Round(0)
	if d.due[at]--; d.due[at] < 0 || r.Lateness() != 0 || r.Outcome != measure.OK {
		d.t.Errorf("%s: planned at %v, late by %v, %s: want each row once, at its instant", r.ID, at, r.Lateness(), r.Outcome)
	}
	if d.due[at] == 0 {
		delete(d.due, at)
	}
	d.count++
}

// dayOffsets returns the row offsets of the public trace in REPLAYD_TRACES, or of the bundled sample if that is not
// set.
func dayOffsets(t *testing.T) (offsets []time.Duration) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sample.jsonl")
	if err := os.WriteFile(path, synth.Sample, 0o600); err != nil {
		t.Fatal(err)
	}
	if dir := os.Getenv("REPLAYD_TRACES"); dir != "" {
		path = filepath.Join(dir, "mooncake_conversation.jsonl")
	}
	f, err := trace.Open(t.Context(), path, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := f.Rows(0)
	if err != nil {
		t.Fatal(err)
	}
	for {
		rec, err := rows.Next()
		if errors.Is(err, io.EOF) {
			return offsets
		}
		if err != nil {
			t.Fatal(err)
		}
		offsets = append(offsets, rec.Offset)
	}
}

// TestDay plays 25 October 2026 in Berlin in virtual time. The day has 25 hours, because one hour repeats. Loops and
// cron plans must send every request at the time that the test computes itself, to the nanosecond.
func TestDay(t *testing.T) {
	if testing.Short() {
		t.Skip("a day has 900,000 steps of a workload at rest")
	}
	offsets := dayOffsets(t)
	short := make([]trace.Record, len(offsets)) // without texts: the test checks times, and the texts of a day are 22 GB
	for i, offset := range offsets {
		short[i].Offset = offset
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	midnight := time.Date(2026, 10, 25, 0, 0, 0, 0, berlin)
	end := time.Date(2026, 10, 26, 0, 0, 0, 0, berlin)
	utc := func(hour, minute int) time.Time { return time.Date(2026, 10, 25, hour, minute, 0, 0, time.UTC) }
	// 0:10 and 12:10 in Berlin. 2:30 occurs twice; cron runs once, in summer time.
	twice := []time.Time{utc(-2, 10), utc(11, 10)}
	night := []time.Time{utc(0, 30)}
	var hourly []time.Time
	for at := midnight; at.Before(end); at = at.Add(time.Hour) {
		hourly = append(hourly, at)
	}
	for name, c := range map[string]struct {
		options schedule.Options
		starts  []time.Time
	}{
		"loops": {schedule.Options{Repeat: schedule.Repeat{
			Mode: schedule.Loops, Align: schedule.WallClock,
			Every: time.Hour,
		}}, hourly},
		"cron": {schedule.Options{Repeat: schedule.Repeat{
			Mode: schedule.Cron, Cron: "10 */12 * * *",
			Timezone: "Europe/Berlin",
		}}, twice},
		"cron night": {schedule.Options{Repeat: schedule.Repeat{
			Mode: schedule.Cron, Cron: "30 2 * * *",
			Timezone: "Europe/Berlin",
		}}, night},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &diary{t: t, due: map[time.Time]int{}}
				want := 0
				for _, start := range c.starts {
					for _, offset := range offsets {
						if at := start.Add(offset).UTC(); at.Before(end) {
							d.due[at]++
							want++
						}
					}
				}
				ahead := time.Until(midnight)
				b := newBench(t, source(short...), c.options, &fake{ttft: time.Millisecond, itl: time.Millisecond, forgets: true}, func(w *Workload) {
					w.Wall = func() time.Time { return time.Now().Round(0).Add(ahead) }
					w.Observers, w.Lanes = []Observer{shifted{d, ahead}}, 1000
				})
				ctx, stop := context.WithTimeout(t.Context(), end.Sub(midnight)-time.Nanosecond)
				defer stop()
				b.run(t, ctx, t.Context())
				if d.count != want || len(d.due) != 0 {
					t.Errorf("want %d requests, got %d; %d instants had none", want, d.count, len(d.due))
				}
				t.Logf("%d requests in %v", d.count, end.Sub(midnight))
			})
		})
	}
}

// shifted converts the bubble's times to the test's wall clock before it calls diary.
type shifted struct {
	diary *diary
	ahead time.Duration
}

func (s shifted) Observe(r *measure.Request) {
	moved := *r
	t := &moved.Timeline
	for _, at := range []*time.Time{&t.Planned, &t.Due, &t.Ready, &t.Lane, &t.Write} {
		*at = at.Add(s.ahead)
	}
	s.diary.Observe(&moved)
}
