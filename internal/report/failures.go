package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"replayd/internal/measure"
)

// Failures keep the first request of each outcome other than ok: a count alone does not tell what to mend. Their
// methods may be called at once.
type Failures struct {
	mu    sync.Mutex
	first map[measure.Outcome]failure // as many as there are outcomes
}

type failure struct {
	id, text string
	requests int
}

// Observe takes a finished request, unless it was sent to warm the server up.
func (f *Failures) Observe(r *measure.Request) {
	if !r.Outcome.Failed() || r.Phase == measure.Warmup {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first == nil {
		f.first = map[measure.Outcome]failure{}
	}
	one, seen := f.first[r.Outcome]
	if !seen {
		one = failure{id: r.ID, text: r.Error}
	}
	one.requests++
	f.first[r.Outcome] = one
}

// Write prints a line for each outcome that occurred, the most frequent first; nothing when all was well.
func (f *Failures) Write(w io.Writer) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.first) == 0 {
		return nil
	}
	var outcomes []measure.Outcome
	for o := range f.first {
		outcomes = append(outcomes, o)
	}
	slices.SortFunc(outcomes, func(a, b measure.Outcome) int {
		return cmp.Or(f.first[b].requests-f.first[a].requests, cmp.Compare(a, b))
	})
	out := &strings.Builder{}
	fmt.Fprintln(out, "\nthe first request of each failure")
	for _, o := range outcomes {
		fmt.Fprintf(out, "%-26s%s: %s\n", o, f.first[o].id, f.first[o].text)
	}
	_, err := io.WriteString(w, out.String())
	return err
}
