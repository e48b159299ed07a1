//go:build between

package between_test

import (
	"net/http"
	"testing"
	"time"
)

// Behind a proxy that buffers, one read holds a whole answer. Its TPOT is not 0 then, but unknown.
func TestBuffering(t *testing.T) {
	programs := install(t)
	// A busy machine may read the chunks of one answer together, too. They are too far apart for that in all answers.
	const gap = 200 * time.Millisecond
	rows := trace([]time.Duration{0, 2 * gap, 4 * gap, 6 * gap})
	bound := []string{"--goodput", "tpot:1ms", "--min-goodput", "0.9"}

	e := newEngine(t, stream(gap, gap, tokens))
	p := replay(t, start(t, programs, nginx, e).url(), rows, bound...)
	if p.code != 3 || p.outcomes()["ok"] != 4 {
		t.Errorf("want 4 ok and exit code 3, got %s and %d", counted(p.outcomes()), p.code)
	}
	said(t, p.Process, `^not judged +4 of 4 ok `)
	said(t, p.Process, `^attainment +no data: `)
	said(t, p.Process, `not measured: the time between tokens of 4 of 4 ok answers .*a proxy buffers `+
		`.*proxy_buffering off.*X-Accel-Buffering: no`)
	for _, r := range p.records {
		if r.TPOT != nil {
			t.Errorf("%s: want no TPOT, got %d ns", r.ID, *r.TPOT)
		}
	}

	unbuffered := stream(gap, gap, tokens)
	e = newEngine(t, func(w http.ResponseWriter, r *http.Request, c *call) {
		w.Header().Set("X-Accel-Buffering", "no")
		unbuffered(w, r, c)
	})
	p = replay(t, start(t, programs, nginx, e).url(), rows, bound...)
	if p.code != 3 || p.outcomes()["ok"] != 4 {
		t.Errorf("X-Accel-Buffering: want 4 ok and exit code 3, got %s and %d", counted(p.outcomes()), p.code)
	}
	said(t, p.Process, `slo missed: tpot: [1-4] of [1-4] requests`)
}
