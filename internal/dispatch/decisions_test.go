package dispatch_test

import (
	"cmp"
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/limits"
	"replayd/internal/measure"
	"replayd/internal/schedule"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// A decider decides which row is sent when: it stands between the plan and the lanes. Each method reports an event at
// time.Now, and the decider writes its decisions into its score at once.
type decider interface {
	bound(from time.Time) // planned time at which the plan begins
	begin(l schedule.Loop, period time.Duration)
	room(loop int64, planned time.Time) (room, time.Duration)
	hand(d *draft) room // the row was read
	loopRead(loop int64)
	fed(failed bool)
	build() *draft // the row whose message is built next, or nil; called after each event while the builder is free
	built(d *draft)
	written(d *draft)
	ended(d *draft)
	look() // reads the clocks and the engine's load
	pause(on bool)
	retire(planned time.Time)
	stop()
	tick()                            // the time of wake has come
	wake() time.Time                  // zero: never
	rest(now time.Time) time.Duration // until the next look
	done() bool
}

// A room says whether a row may be read.
type room int

const (
	free    room = iota
	full         // enough rows were read for now
	early        // too early: wait for a time
	enough       // no row comes due any more
	another      // the row belongs to another runner
	anew         // the plan is entered again at the current time
)

// Terms configure a decider.
type terms struct {
	closed, hold, carry, dropLate, followsWall bool

	lanes, ahead      int
	maxWait, duration time.Duration
	guard             limits.Guard
	budget            limits.Budget
}

// A score records the decisions. It also gives the decider its clock, the load and the send function.
type score struct {
	origin time.Time
	wall   func() time.Time
	load   func() (limits.Load, error)
	sends  func(*draft) // called for each row that is sent

	text    strings.Builder
	lines   []string // sent rows at this time, in order
	others  []string // other decisions at this time, in no order
	due     int      // rows that came due at this time
	open    map[limits.Limit]bool
	retired bool
	total   struct{ due, sent, dropped, filtered, clipped int }
}

func (s *score) since(at time.Time) time.Duration { return at.Sub(s.origin) }

func (s *score) expected() {
	s.due++
	s.total.due++
}

func (s *score) sent(d *draft, planned, due, ready time.Time, waited bool) {
	s.total.sent++
	s.lines = append(s.lines, fmt.Sprintf("send %s planned %d due %d ready %d waited %t",
		d, s.since(planned), s.since(due), s.since(ready), waited))
	s.sends(d)
}

func (s *score) dropped(d *draft, why measure.DropReason) {
	if why == measure.Filtered {
		s.total.filtered++
	} else {
		s.total.dropped++
	}
	s.note("drop %s %s", d, why)
}

func (s *score) clipped(d *draft) {
	s.total.clipped++
	s.note("clip %s", d)
}

func (s *score) guarded(l limits.Limit, open bool) {
	if s.open[l] != open {
		s.open[l] = open
		s.note("guard %s %t", l, open)
	}
}

// allDue notes that all rows of this runner have come due.
func (s *score) allDue() {
	s.retired = true
}

func (s *score) note(format string, args ...any) {
	s.others = append(s.others, fmt.Sprintf(format, args...))
}

// flush writes all decisions at one time as one line.
func (s *score) flush() {
	if s.due+len(s.lines)+len(s.others) == 0 {
		return
	}
	slices.Sort(s.others)
	fmt.Fprintf(&s.text, "%d: due %d; %s\n", s.since(time.Now()), s.due, strings.Join(slices.Concat(s.lines, s.others), "; "))
	s.due, s.lines, s.others = 0, s.lines[:0], s.others[:0]
}

// decisions is the number of seeds in the golden file.
const decisions = 2000

// TestDecisions plays random events to the dispatcher, one after the other and without goroutines: rows of open and
// closed loops, ends of requests in any order, pauses, the engine's load, handovers, stops, steps of the wall clock,
// and times in which the process does not run. For each seed, the hash of all decisions with their times must equal the
// hash in the golden file.
//
// The golden file has a line for each seed. The first hash is that of the reference: the queue of package replay that
// preceded the dispatcher. A second hash is that of the dispatcher where it differs from the reference. It differs in
// four cases. A closed loop tries again a second after a guard or a budget has held its rows back, and other events
// begin that second anew. And when several events happen at one time, or the process stood still, the dispatcher looks
// for free lanes at more events. And rows that a slow reader brings late are sent late, where the reference took the
// delay for a standstill of the process. A plan that does not follow the wall clock goes on at its pace when that is set.
//
// DECISIONS is the number of seeds (default 2,000), DECISIONS_FROM the first seed (default 0). With a single seed its
// decisions are logged.
func TestDecisions(t *testing.T) {
	path := filepath.Join("testdata", "decisions.txt")
	most := decisions
	if testing.Short() {
		most /= 10
	}
	from, n := seeds(t, "DECISIONS_FROM", 0), seeds(t, "DECISIONS", most)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	golden := strings.Split(strings.TrimSpace(string(data)), "\n")
	var all [16]int
	for seed := from; seed < from+n; seed++ {
		var text string
		synctest.Test(t, func(t *testing.T) { text = playDecisions(t, uint64(seed), newStepper) })
		for i, word := range decided {
			all[i] += strings.Count(text, word)
		}
		if n == 1 {
			t.Log("\n" + text)
		}
		if seed >= len(golden) {
			continue
		}
		h := fnv.New64a()
		_, _ = h.Write([]byte(text)) // it cannot fail
		before, want, differs := strings.Cut(golden[seed], " ")
		if !differs {
			want = before
		}
		switch got := fmt.Sprintf("%016x", h.Sum64()); {
		case *update && got == before:
			golden[seed] = before
		case *update:
			golden[seed] = before + " " + got
		case got != want:
			t.Errorf("seed %d: other decisions: want %s, got %s. DECISIONS_FROM=%d DECISIONS=1 shows them", seed, want, got, seed)
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(strings.Join(golden, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i, word := range decided {
		if n >= decisions && all[i] == 0 {
			t.Errorf("no seed has %q: that was not put to the test", word)
		}
	}
	t.Logf("%d seeds: %v %v", n, decided, all[:len(decided)])
}

// decided lists texts that must occur in the decisions of the seeds.
var decided = []string{
	"send", "clip", "loop", "guard", "stop", "filtered", "overload", "drop", " budget", " paused", " missed", " shutdown", " invalid",
	" session_failed", "waited true", " guard;",
}

func seeds(t *testing.T, name string, otherwise int) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv(name), strconv.Itoa(otherwise)))
	if err != nil {
		t.Fatalf("%s: want a number, got %q", name, os.Getenv(name))
	}
	return n
}
