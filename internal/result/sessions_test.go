package result

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"replayd/internal/measure"
	"replayd/internal/metrics"
	"replayd/test/measuretest"
	"replayd/test/outside"

	"github.com/prometheus/client_golang/prometheus"
)

func TestDocumentedFieldsOfSessions(t *testing.T) {
	outside.HoldFields(t, "### session_export.jsonl", fieldsOf(reflect.TypeFor[sessionLine](), ""))
}

// Sessions come back from their file, in a folder too.
func TestSessionsAreReadBack(t *testing.T) {
	want := measuretest.Sessions()
	var text bytes.Buffer
	if err := WriteSessions(&text, want); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, SessionsName), text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	var run Run
	run.readSessions(dir)
	for i := range run.Sessions {
		run.Sessions[i].Begun = run.Sessions[i].Begun.UTC()
	}
	if diff := cmp.Diff(want, run.Sessions); diff != "" || run.Partial != nil {
		t.Errorf("-want +got:\n%s%v", diff, run.Partial)
	}
}

func TestBadSessions(t *testing.T) {
	const good = `{"session":"a","outcome":"ok","begun_ns":1,"requests":1,"prompt_tokens":5,"cached_tokens":4,"time_ns":{"tools":1}}`
	for text, want := range map[string]string{
		good + "\n" + strings.Replace(good, `"ok"`, `"fine"`, 1): `sessions.jsonl: session 2: outcome: want one of [ok failed cut], got "fine"`,
		strings.Replace(good, `:4`, `:6`, 1):                     "sessions.jsonl: session 1: want 0 ≤ cached_tokens ≤ prompt_tokens and requests ≥ 0, got 6, 5 and 1",
		strings.Replace(good, `"tools":1`, `"tools":-1`, 1):      "sessions.jsonl: session 1: time_ns: want times from 0 to 439200h0m0s, got [-1ns 0s 0s 0s]",
		good + "\n{": "sessions.jsonl: session 2: unexpected end of JSON input",
	} {
		if all, err := ReadSessions(strings.NewReader(text), "sessions.jsonl"); err == nil || err.Error() != want {
			t.Errorf("%s:\nwant %s\n got %v, %v", text, want, all, err)
		}
	}
}

// The table of a run with sessions.
func TestTableOfSessions(t *testing.T) {
	bound := measure.SessionSLO{Makespan: 10 * time.Minute}
	s := NewSummary(nil, bound)
	w := metrics.NewMeter(prometheus.NewRegistry()).Workload(metrics.Labels{}, metrics.WorkloadOptions{Sessions: bound})
	for _, of := range measuretest.Sessions() {
		w.SessionBegun()
		w.SessionEnded(&of)
		s.Session(&of)
	}
	w.SessionBegun()
	var b strings.Builder
	if err := s.WriteTable(&b, w.Ledger(), 100); err != nil {
		t.Fatal(err)
	}
	_, sessions, _ := strings.Cut(b.String(), "\n\nsessions")
	golden(t, "table_sessions.golden", []byte("sessions"+sessions))
}

// A line has a limit before it is decoded.
func TestLongSessions(t *testing.T) {
	long := `{"session":"` + strings.Repeat("s", maxLine) + `"}` + "\n"
	_, err := ReadSessions(strings.NewReader(long), "sessions.jsonl")
	if want := "sessions.jsonl: session 1: want a line of at most 16777216 bytes, got more"; err == nil || err.Error() != want {
		t.Errorf("got %.200v, want %s", err, want)
	}
}
