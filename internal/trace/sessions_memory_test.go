package trace

import (
	"fmt"
	"runtime"
	"testing"
)

// While a file is checked, a session takes 32 bytes beside the text of the row that names it: 16 in the table, 16 for its latest turn.
func TestBytesOfASession(t *testing.T) {
	const sessions = 500_000
	p := newPass(&File{name: "made up"}, Options{}, 512)
	names := make([]string, sessions)
	for i := range names {
		names[i] = fmt.Sprintf("session %d", i)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i, name := range names {
		r := row{Record: Record{Number: 2 * i, Line: 2*i + 1, Session: name}}
		p.takeTurn(&r, p.sessionOf(&r))
		r.Number++
		r.Line++
		p.takeTurn(&r, p.sessionOf(&r))
	}
	runtime.ReadMemStats(&after)
	if got := float64(after.TotalAlloc-before.TotalAlloc) / sessions; got < 32 || got > 36 {
		t.Errorf("want 32 bytes a session, got %.2f", got)
	}
	for i := range names {
		if !p.first.has(2*i) || p.first.has(2*i+1) || p.last.has(2*i) || !p.last.has(2*i+1) {
			t.Fatalf("session %d: want its first row first and its second last", i)
		}
	}
}
