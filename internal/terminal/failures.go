package terminal

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"replayd/internal/measure"
)

// Failures keeps the first request of each outcome other than ok, because a count alone does not tell what to fix. It
// is safe for concurrent use.
type Failures struct {
	mu    sync.Mutex
	first map[measure.Outcome]failure // as many as there are outcomes
}

type failure struct{ id, text string }

// Observe takes a finished request. It ignores warm-up requests.
func (f *Failures) Observe(r *measure.Request) {
	if !r.Outcome.Failed() || r.Phase == measure.Warmup {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first == nil {
		f.first = map[measure.Outcome]failure{}
	}
	if _, seen := f.first[r.Outcome]; !seen {
		f.first[r.Outcome] = failure{r.ID, r.Error}
	}
}

// Write prints a line for each outcome that occurred, the most frequent first, wrapped at width; 0: not wrapped. It prints nothing when
// no request failed.
func (f *Failures) Write(w io.Writer, l measure.Ledger, width int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.first) == 0 {
		return nil
	}
	outcomes := slices.SortedFunc(maps.Keys(f.first), func(a, b measure.Outcome) int {
		return cmp.Or(cmp.Compare(l.Outcomes[b], l.Outcomes[a]), cmp.Compare(a, b))
	})
	out := &Table{Columns: width}
	fmt.Fprintln(out, "\nthe first request of each failure")
	for _, o := range outcomes {
		out.Line(string(o), "%s: %s", f.first[o].id, f.first[o].text)
	}
	_, err := io.WriteString(w, out.String())
	return err
}
