package report

import (
	"cmp"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"replayd/internal/measure"
	"replayd/internal/result"
)

type filter struct {
	Phase    string // profiling, warmup, all
	Outcome  measure.Outcome
	From, To float64 // seconds since the first request of the run was sent
	MinInput int     // tokens
	MaxInput int     // 0: no bound
	Session  string  // conversation of the trace, or session number
}

var everything = filter{Phase: "profiling", To: math.Inf(1)}

// readFilter reads the values of the form. It ignores invalid values and describes them in errs.
func readFilter(q url.Values) (f filter, errs []string) {
	wrong := func(name, want string) {
		errs = append(errs, fmt.Sprintf("%s: want %s, got %q", name, want, cutText(q.Get(name), 100)))
	}
	f = everything
	switch phase := q.Get("phase"); phase {
	case "", "profiling":
	case "warmup", "all":
		f.Phase = phase
	default:
		wrong("phase", "profiling, warmup or all")
	}
	if o := measure.Outcome(q.Get("outcome")); o == "" || slices.Contains(measure.Outcomes(), o) {
		f.Outcome = o
	} else {
		wrong("outcome", "one of those listed")
	}
	seconds := func(text string) (float64, error) { return strconv.ParseFloat(text, 64) }
	f.From = amount(q, "from", "seconds", f.From, seconds, wrong)
	f.To = amount(q, "to", "seconds", f.To, seconds, wrong)
	f.MinInput = amount(q, "min_input", "tokens", f.MinInput, strconv.Atoi, wrong)
	f.MaxInput = amount(q, "max_input", "tokens", f.MaxInput, strconv.Atoi, wrong)
	f.Session = strings.TrimSpace(q.Get("session"))
	if f.To <= f.From {
		errs = append(errs, fmt.Sprintf("to: want more seconds than from, %g, got %g", f.From, f.To))
		f.To = math.Inf(1)
	}
	if f.MaxInput > 0 && f.MaxInput < f.MinInput {
		errs = append(errs, fmt.Sprintf("max_input: want at least min_input, %d, got %d", f.MinInput, f.MaxInput))
		f.MaxInput = 0
	}
	return f, errs
}

// amount returns a number of at least 0 that the form has, or else the one that stands for none.
func amount[T int | float64](q url.Values, name, unit string, none T, parse func(string) (T, error),
	wrong func(name, want string),
) T {
	text := strings.TrimSpace(q.Get(name))
	if text == "" {
		return none
	}
	if v, err := parse(text); err == nil && v >= 0 && !math.IsInf(float64(v), 0) {
		return v
	}
	wrong(name, unit+" ≥ 0")
	return none
}

// apply returns the run with only the selected requests. Warm-up requests that the reader selects count as measured.
func (f filter) apply(run result.Run) result.Run {
	if f == everything {
		return run
	}
	first, _ := run.Span()
	zero := first.UnixNano()
	rows := make([]result.Row, 0, len(run.Rows))
	for _, r := range run.Rows {
		at := float64(cmp.Or(r.Start, r.End)-zero) / 1e9
		switch {
		case f.Phase == "profiling" && r.Phase != measure.Profiling, f.Phase == "warmup" && r.Phase != measure.Warmup,
			f.Outcome != "" && r.Outcome != f.Outcome,
			f.From > 0 && at < f.From, !math.IsInf(f.To, 1) && at >= f.To,
			r.Input < f.MinInput, f.MaxInput > 0 && r.Input > f.MaxInput,
			f.Session != "" && r.Conversation != f.Session && strconv.FormatInt(r.Session, 10) != f.Session:
			continue
		}
		r.Phase = measure.Profiling
		rows = append(rows, r)
	}
	run.Rows, run.Ledger, run.Picked = rows, nil, true
	return run
}

type form struct {
	Runs     []choice
	Filter   filter
	Outcomes []measure.Outcome
	Shown    string   // the current selection in words
	Errors   []string // about invalid choices

	typed url.Values
}

type choice struct {
	Name string
	On   bool
}

// Typed returns the first 200 characters of a value as the user typed it.
func (f form) Typed(name string) string { return cutText(f.typed.Get(name), 200) }
