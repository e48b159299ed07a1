//go:build daemon

package daemon_test

import (
	"slices"
	"testing"
	"time"

	"replayd/internal/sim"

	"replayd/test/outside"
)

// arrivals ends the engine and returns its log in order of arrival, without replayd's own probes.
func (s *stage) arrivals(t *testing.T) (all []sim.LogEntry) {
	t.Helper()
	all = outside.EngineLog[sim.LogEntry](t, s.Sim, s.Log)
	all = slices.DeleteFunc(all, func(e sim.LogEntry) bool { return e.ID == "replayd/probe" })
	slices.SortFunc(all, func(a, b sim.LogEntry) int { return int(a.Arrival - b.Arrival) })
	return all
}

// A sent is one request as both sides saw it.
type sent struct {
	record
	engine sim.LogEntry
	due
}

// join pairs the engine's log with the records: each request must be in both.
func (s *stage) join(t *testing.T, log []sim.LogEntry, records []record) (all []sent) {
	t.Helper()
	byID := map[string][]record{}
	for _, r := range records {
		byID[r.ID] = append(byID[r.ID], r)
	}
	for _, of := range byID {
		slices.SortFunc(of, func(a, b record) int { return int(a.Write - b.Write) })
	}
	for _, e := range log { // in order of arrival
		of := byID[e.ID]
		if len(of) == 0 {
			t.Errorf("%s: the engine saw it once more than there are records", e.ID)
			continue
		}
		x := sent{record: of[0], engine: e}
		_, x.Loop, x.Row = outside.Place(t, e.ID)
		x.At = time.Unix(0, x.Planned)
		byID[e.ID] = of[1:]
		if way := time.Duration(e.Arrival - x.Write); way.Abs() > time.Second {
			t.Errorf("%s: written %v before it arrived", e.ID, way)
		}
		all = append(all, x)
	}
	for id, of := range byID {
		if len(of) > 0 {
			t.Errorf("%s: %d records of what the engine never saw: %s", id, len(of), of[0].Outcome)
		}
	}
	return all
}
