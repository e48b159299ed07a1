package result

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"replayd/internal/measure"
	"replayd/internal/stats"
)

// SessionsName is the name of the file of ended sessions in a run's directory.
const SessionsName = "session_export.jsonl"

// A sessionLine is a line of that file.
type sessionLine struct {
	Session  string                 `json:"session"`
	Loop     int64                  `json:"loop"`
	Pass     int64                  `json:"pass"`
	Outcome  measure.SessionOutcome `json:"outcome"`
	Begun    int64                  `json:"begun_ns"` // Unix time
	Makespan int64                  `json:"makespan_ns"`
	Requests int                    `json:"requests"`
	Prompt   int                    `json:"prompt_tokens"`
	Cached   *int                   `json:"cached_tokens"` // null if the server does not say
	Time     measure.SessionTime    `json:"time_ns"`
}

// WriteSessions writes a line for each session.
func WriteSessions(w io.Writer, all []measure.Session) error {
	out := bufio.NewWriter(w)
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	for i := range all {
		s := &all[i]
		line := sessionLine{
			Session: s.Name, Loop: s.Loop, Pass: s.Pass, Outcome: s.Outcome, Begun: s.Begun.UnixNano(), Makespan: int64(s.Makespan()),
			Requests: s.Requests, Prompt: s.Prompt, Time: s.Time,
		}
		if s.CacheTold {
			line.Cached = &s.Cached
		}
		if err := e.Encode(line); err != nil {
			return err
		}
	}
	return out.Flush()
}

// ReadSessions reads what WriteSessions writes.
func ReadSessions(r io.Reader, name string) (all []measure.Session, err error) {
	in := json.NewDecoder(r)
	for {
		var line sessionLine
		switch err := in.Decode(&line); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("%s: session %d: %w", name, len(all)+1, jsonFault(err))
		case len(all) >= mostRows:
			return nil, fmt.Errorf("%s: want at most %d sessions, got more", name, mostRows)
		}
		s, err := line.session()
		if err != nil {
			return nil, fmt.Errorf("%s: session %d: %w", name, len(all)+1, err)
		}
		all = append(all, s)
	}
}

func (l *sessionLine) session() (measure.Session, error) {
	s := measure.Session{
		Name: l.Session, Loop: l.Loop, Pass: l.Pass, Outcome: l.Outcome, Begun: time.Unix(0, l.Begun), Time: l.Time, Requests: l.Requests, Prompt: l.Prompt,
	}
	if l.Cached != nil {
		s.Cached, s.CacheTold = *l.Cached, true
	}
	switch {
	case !slices.Contains(measure.SessionOutcomes(), s.Outcome):
		return s, fmt.Errorf("outcome: want one of %v, got %q", measure.SessionOutcomes(), s.Outcome)
	case s.Requests < 0 || s.Cached < 0 || s.Cached > s.Prompt || s.Prompt > mostCounted:
		return s, fmt.Errorf("want 0 ≤ cached_tokens ≤ prompt_tokens and requests ≥ 0, got %d, %d and %d", s.Cached, s.Prompt, s.Requests)
	case slices.Min(s.Time[:]) < 0 || slices.Max(s.Time[:]) > mostSessionTime:
		return s, fmt.Errorf("time_ns: want times from 0 to %v, got %v", mostSessionTime, s.Time)
	}
	return s, nil
}

// readSessions adds the sessions of a folder to a run, if it has a file of them.
func (r *Run) readSessions(dir string) {
	f, err := os.Open(filepath.Join(dir, SessionsName))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		defer f.Close()
		r.Sessions, err = ReadSessions(f, f.Name())
	}
	if err != nil {
		r.Partial = append(r.Partial, err.Error())
	}
}

// addSessions adds the figures of sessions: distributions over the ok ones, and the counts of the ledger.
func (f *Statistics) addSessions(all []measure.Session, of measure.Sessions) {
	if of.IsZero() && len(all) == 0 {
		return
	}
	var makespans, requests, cached []float64
	var parts [measure.NumSessionParts][]float64
	for i := range all {
		s := &all[i]
		if s.Outcome != measure.SessionOK {
			continue
		}
		makespans, requests = append(makespans, inSeconds(s.Makespan())), append(requests, float64(s.Requests))
		for p, d := range s.Time {
			parts[p] = append(parts[p], inSeconds(d))
		}
		if ratio, told := s.CachedRatio(); told {
			cached = append(cached, ratio)
		}
	}
	add := func(tag, name, unit string, values []float64) {
		f.add(Metric{Tag: tag, Name: name, Unit: unit, Of: stats.NewDistribution(values)})
	}
	add("session_makespan", "Session Makespan", "sec", makespans)
	add("session_requests", "Session Requests", "requests", requests)
	add("session_cached_ratio", "Session Cached Ratio", "ratio", cached)
	for p, name := range [measure.NumSessionParts]string{"Session Time in Tools", "Session Time Late", "Session Time to First Tokens", "Session Time in Decode"} {
		add("session_time_"+measure.SessionPart(p).String(), name, "sec", parts[p])
	}
	if of.IsZero() {
		return
	}
	f.single("session_count", "Session Count", "sessions", float64(of.Begun))
	f.single("ok_session_count", "Ok Session Count", "sessions", float64(of.Outcomes[measure.SessionOK]))
	f.single("failed_session_count", "Failed Session Count", "sessions", float64(of.Outcomes[measure.SessionNotOK]))
	f.single("cut_session_count", "Cut Session Count", "sessions", float64(of.Outcomes[measure.SessionCut]))
	f.single("good_session_count", "Good Session Count", "sessions", float64(of.Good))
	if share, ok := of.Attainment(); ok {
		f.single("session_attainment", "Session Attainment", "ratio", share)
	}
}

// inSeconds divides once. Duration.Seconds adds whole seconds and the rest, which rounds twice.
func inSeconds(d time.Duration) float64 { return float64(d) / float64(time.Second) }
