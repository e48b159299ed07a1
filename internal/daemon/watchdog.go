package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"replayd/internal/measure"
)

// Bounds of the watchdog. docs/decisions/0011 has the steps of a well system that is slow, which are all shorter.
const (
	watchdogEvery = time.Second
	stuckAfter    = 5  // seconds without a move until the series, the log line and the alert
	unwellAfter   = 30 // seconds without a move until /-/healthy fails
)

// A watchdog looks every second whether workloads and comparisons move. One whose lock has one holder, who does nothing
// that can be seen, stands still. Only seconds count in which the watchdog ran itself: while the process was stopped,
// suspended or starved, nothing could move. It takes no lock of a workload or a comparison.
type watchdog struct {
	log  *slog.Logger
	note func(level slog.Level, text string)

	unwell atomic.Pointer[error] // why /-/healthy fails; nil: it does not

	mu  sync.Mutex // held for moments
	all map[any]*watched
}

// A watched part of the process.
type watched struct {
	kind, name string        // such as workload "w"
	turn       func() uint64 // identifies what its lock is held for; 0: it is not held
	show       func(stuck bool)
	ledger     func() measure.Ledger // of a workload

	last  uint64 // turn at the last check
	still int    // seconds for which it was the same
}

func newWatchdog(log *slog.Logger, note func(slog.Level, string)) *watchdog {
	return &watchdog{log: log, note: note, all: map[any]*watched{}}
}

func (d *watchdog) watch(key any, w *watched) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all[key] = w
}

func (d *watchdog) forget(key any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.all, key)
}

// left returns the parts of a kind that have not ended.
func (d *watchdog) left(kind string) (all []*watched) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range d.all {
		if w.kind == kind {
			all = append(all, w)
		}
	}
	slices.SortFunc(all, func(a, b *watched) int { return strings.Compare(a.name, b.name) })
	return all
}

func (d *watchdog) run(ctx context.Context) {
	tick := time.NewTicker(watchdogEvery)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-tick.C:
			now := time.Now()
			d.check(now.Sub(last) < 3*watchdogEvery/2)
			last = now
		case <-ctx.Done():
			return
		}
	}
}

// check looks at all parts. ran says whether the process ran in the second before.
func (d *watchdog) check(ran bool) {
	d.mu.Lock()
	all := slices.Collect(maps.Values(d.all))
	d.mu.Unlock()
	slices.SortFunc(all, func(a, b *watched) int { return strings.Compare(a.kind+a.name, b.kind+b.name) })
	var unwell []string
	for _, w := range all {
		d.checkOne(w, ran)
		if w.still >= unwellAfter {
			unwell = append(unwell, fmt.Sprintf("%s %q has stood still for %d s", w.kind, w.name, w.still))
		}
	}
	if len(unwell) == 0 {
		d.unwell.Store(nil)
		return
	}
	err := errors.New(strings.Join(unwell, ", "))
	d.unwell.Store(&err)
}

func (d *watchdog) checkOne(w *watched, ran bool) {
	turn := w.turn()
	if turn == 0 || turn != w.last {
		if w.still >= stuckAfter {
			w.show(false)
			d.log.Warn(w.kind+" moves again", "name", w.name, "stood_still", time.Duration(w.still)*watchdogEvery)
			d.note(slog.LevelWarn, fmt.Sprintf("%s %s moves again: it stood still for %d s", w.kind, w.name, w.still))
		}
		w.last, w.still = turn, 0
		return
	}
	if !ran {
		return
	}
	if w.still++; w.still >= stuckAfter {
		w.show(true)
	}
	switch w.still {
	case stuckAfter:
		d.log.Error(w.kind+" stands still: its lock is held, and nothing moves", "name", w.name, "for", stuckAfter*watchdogEvery)
		d.note(slog.LevelError, w.kind+" "+w.name+" stands still")
	case unwellAfter:
		d.log.Error(w.kind+" still stands still: /-/healthy fails from now on", "name", w.name, "for", unwellAfter*watchdogEvery)
	}
}

// healthy returns why the process is not well.
func (d *watchdog) healthy() error {
	if err := d.unwell.Load(); err != nil {
		return *err
	}
	return nil
}
