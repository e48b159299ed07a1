//go:build daemon

package daemon_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"replayd/internal/sim"

	"replayd/test/outside"
)

// A life of the daemon, from its start to its kill.
type life struct {
	began, ready, killed time.Time
	torn                 string // the id of a torn record
}

// A daemon that is killed and restarted continues at the position of the wall clock in the loop and sends no request
// twice. Its records stay readable.
func TestKill(t *testing.T) {
	const kills = 3
	s := newStage(t, "--ttft", "50ms", "--itl", "20ms", "--chunk-tokens", "2")
	const speed = 2
	p := &plan{Rows: outside.Plain(570, 10, 100, 40, 3), Speed: speed, Every: 30 * time.Second}
	path := filepath.Join(s.Dir, "trace.jsonl")
	outside.Put(t, path, outside.Trace(p.Rows))
	random := rand.New(rand.NewPCG(1, 2))
	var lives []life
	for n := range kills + 1 {
		s.write(t, fmt.Sprintf(`records: {path: %q, max_bytes: 24KiB, keep: 1000, gzip: %v}
workloads: [{name: w, trace: {path: %q}, speed: %v, repeat: {every: 30s}}]
`, s.Records, n >= kills/2, path, speed)) // the second half compresses, including files of the first half
		daemon, ready := s.Serve(t)
		l := life{began: daemon.Began, ready: ready}
		enough := 20 + random.IntN(60)
		at := outside.See(t, s.URL(), fmt.Sprint(enough, " requests that ended"), func(now page) bool {
			return now.Sum("replayd_requests_total", "ok") >= float64(enough) && inMid(p, time.Now())
		})
		s.checkPosition(t, p, at)
		if _, dropped := at.Ended("w"); dropped != 0 {
			t.Errorf("life %d: want nothing expected of before the start, and none dropped, got %v", n, dropped)
		}
		if n == kills {
			daemon.Term(t)
			lives = append(lives, l)
			break
		}
		_, l.killed = daemon.Signal(t, syscall.SIGKILL)
		daemon.Wait(t)
		whole, torn := outside.Records(t, s.Records, true)
		if n%2 == 1 && !torn {
			l.torn = s.tear(t, whole)
		}
		lives = append(lives, l)
	}
	log := s.arrivals(t)
	records, _ := outside.Records(t, s.Records, false)
	s.checkLives(t, p, lives, log)
	s.checkRecords(t, lives, log, records)
}

// tear cuts the last record in the middle, as a kill may do, and returns its id, or "" if the file is empty.
func (s *stage) tear(t *testing.T, records []record) (id string) {
	t.Helper()
	text, err := os.ReadFile(s.Records)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) == 0 {
		return ""
	}
	line := len(text) - 1 - bytes.LastIndexByte(text[:len(text)-1], '\n')
	if err := os.Truncate(s.Records, int64(len(text)-line/2)); err != nil {
		t.Fatal(err)
	}
	return records[len(records)-1].ID
}

// inMid reports whether an instant is away from the ends of a loop, where joining and starting are the same.
func inMid(p *plan, t time.Time) bool {
	at := t.Sub(time.Unix(0, p.LoopAt(t)*int64(p.Every)))
	return at > 2*time.Second && at < p.Every-4*time.Second
}

// checkPosition compares the two gauges with the wall clock, within a second. They are as old as the page.
func (s *stage) checkPosition(t *testing.T, p *plan, was page) {
	t.Helper()
	begin := time.Now()
	now, err := outside.Scrape(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	end := time.Now()
	loop, position := int64(now.Sum("replayd_loop")), time.Duration(now.Sum("replayd_position_seconds")*1e9)
	low, high := p.Position(begin.Add(-time.Second)), p.Position(end.Add(time.Second))
	if loop != p.LoopAt(begin) || position < low || position > high {
		t.Errorf("want loop %d and %v to %v, got %d and %v", p.LoopAt(begin), low, high, loop, position)
	}
	mean := p.Position(begin.Add(end.Sub(begin) / 2))
	t.Logf("loop %d, position %v of the trace, by the wall clock %v; %v expected", loop, position.Round(time.Millisecond),
		mean.Round(time.Millisecond), was.Sum("replayd_requests_expected_total"))
}

// checkLives checks the first request of each life, and that no later request is missing or sent twice.
func (s *stage) checkLives(t *testing.T, p *plan, lives []life, log []sim.LogEntry) {
	t.Helper()
	seen := map[string]int{}
	for _, e := range log {
		if seen[e.ID]++; seen[e.ID] == 2 {
			t.Errorf("%s was sent twice in its loop", e.ID)
		}
	}
	next := 0
	for n, l := range lives {
		var of []sim.LogEntry
		for ; next < len(log) && (n+1 == len(lives) || log[next].Arrival < lives[n+1].began.UnixNano()); next++ {
			of = append(of, log[next])
		}
		if len(of) == 0 {
			t.Errorf("life %d: nothing was sent", n)
			continue
		}
		_, loop, row := outside.Place(t, of[0].ID)
		first := p.At(loop, row)
		// The first row may at the latest be the next row after ready, plus a second for the host.
		latest := p.Between(l.ready.Add(time.Second), l.ready.Add(time.Minute))[0].At
		t.Logf("life %d: started, ready after %v; first row %d of loop %d, planned %v after the start; %d requests", n,
			l.ready.Sub(l.began).Round(time.Millisecond), row, loop, first.Sub(l.began).Round(time.Millisecond), len(of))
		if first.Before(l.began) || first.After(latest) {
			t.Errorf("life %d: want the first row between the start and %v after it, got one of %v", n, latest.Sub(l.began), first.Sub(l.began))
		}
		_, loop, row = outside.Place(t, of[len(of)-1].ID)
		missing := 0
		for _, d := range p.Between(first, p.At(loop, row)) {
			if seen[d.RequestID("w")] == 0 {
				missing++
			}
		}
		if missing > 0 {
			t.Errorf("life %d: %d rows between the first and the last are missing", n, missing)
		}
	}
}

// checkRecords compares the records with the engine's log: every request that ended has one record, except for the last
// second before a kill, which was not written yet.
func (s *stage) checkRecords(t *testing.T, lives []life, log []sim.LogEntry, records []record) {
	t.Helper()
	recorded := map[string]bool{}
	for _, r := range records {
		if recorded[r.ID] {
			t.Errorf("%s: two records", r.ID)
		}
		recorded[r.ID] = true
	}
	torn, lost, oldest, cut := map[string]bool{}, 0, time.Duration(0), 0
	for _, l := range lives {
		if l.torn != "" {
			torn[l.torn] = true
		}
	}
	for _, e := range log {
		switch {
		case e.Outcome != sim.OK && recorded[e.ID]:
			t.Errorf("%s: a record of a request that the kill cut", e.ID)
		case e.Outcome != sim.OK:
			cut++
		case torn[e.ID]:
			if recorded[e.ID] {
				t.Errorf("%s: a record that was torn", e.ID)
			}
		case !recorded[e.ID]:
			lost++
			age := time.Duration(1 << 62)
			for _, l := range lives {
				if before := l.killed.Sub(time.Unix(0, e.End)); !l.killed.IsZero() && before > -time.Second {
					age = min(age, before)
				}
			}
			oldest = max(oldest, age)
		}
		delete(recorded, e.ID)
	}
	for id := range recorded {
		t.Errorf("%s: a record of a request that the engine never saw", id)
	}
	t.Logf("%d kills cut %d requests; %d records were torn; %d requests that had ended had no record yet, the oldest of them %v old",
		len(lives)-1, cut, len(torn), lost, oldest.Round(time.Millisecond))
	if oldest > 3*time.Second { // records are written each second
		t.Errorf("a record was not written for %v", oldest)
	}
}
