package result

import (
	"bufio"
	"bytes"
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
)

// SessionsName is the name of the file of ended sessions in a run's directory.
const SessionsName = "session_export.jsonl"

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
		if s.CacheReported {
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
	err = eachLine(r, func(text []byte, whole, _ bool) error {
		switch {
		case !whole:
			return fmt.Errorf("want a line of at most %d bytes, got more", maxLine)
		case len(bytes.TrimSpace(text)) == 0:
			return nil
		case len(all) >= maxRows:
			return fmt.Errorf("want at most %d sessions, got more", maxRows)
		}
		var line sessionLine
		if err := json.Unmarshal(text, &line); err != nil {
			return jsonFault(err)
		}
		s, err := line.session()
		if err == nil {
			all = append(all, s)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: session %d: %w", name, len(all)+1, err)
	}
	return all, nil
}

func (l *sessionLine) session() (measure.Session, error) {
	s := measure.Session{
		Name: l.Session, Loop: l.Loop, Pass: l.Pass, Outcome: l.Outcome, Begun: time.Unix(0, l.Begun), Time: l.Time, Requests: l.Requests, Prompt: l.Prompt,
	}
	if l.Cached != nil {
		s.Cached, s.CacheReported = *l.Cached, true
	}
	switch {
	case !slices.Contains(measure.SessionOutcomes(), s.Outcome):
		return s, fmt.Errorf("outcome: want one of %v, got %q", measure.SessionOutcomes(), s.Outcome)
	case s.Requests < 0 || s.Cached < 0 || s.Cached > s.Prompt || s.Prompt > maxCounted:
		return s, fmt.Errorf("want 0 ≤ cached_tokens ≤ prompt_tokens and requests ≥ 0, got %d, %d and %d", s.Cached, s.Prompt, s.Requests)
	case slices.Min(s.Time[:]) < 0 || slices.Max(s.Time[:]) > maxSessionTime:
		return s, fmt.Errorf("time_ns: want times from 0 to %v, got %v", maxSessionTime, s.Time)
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
