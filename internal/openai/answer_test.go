package openai

import (
	"context"
	"strings"
	"testing"
	"time"

	"replayd/internal/measure"
)

// The decoding of a long chunk stops when the deadline has passed or the context has ended. A short chunk is always
// decoded.
func TestDecodingIsStopped(t *testing.T) {
	long := []byte(`{"a":[` + strings.Repeat("{},", longData) + `{}],"choices":[{"text":"a"}]}`)
	l := newClient(t, Target{}).Lane()
	defer l.Close()
	ended, end := context.WithCancel(t.Context())
	end()
	for name, c := range map[string]struct {
		ctx   context.Context
		total time.Time
		data  []byte
		late  measure.Outcome
	}{
		"in time":                 {t.Context(), time.Now().Add(time.Hour), long, ""},
		"no limit":                {t.Context(), time.Time{}, long, ""},
		"after timeouts.total":    {t.Context(), time.Now().Add(-1), long, measure.TimeoutTotal},
		"stopped":                 {ended, time.Time{}, long, measure.Aborted},
		"a short one, afterwards": {t.Context(), time.Now().Add(-1), []byte(wholeHello), ""},
	} {
		l.present.total = c.total
		known, late := l.present.find(c.ctx, c.data)
		if known == (late != nil) || late != nil && late.outcome != c.late || late == nil && c.late != "" {
			t.Errorf("%s: want %q, got %v, %v", name, c.late, known, late)
		}
	}
}
