package measure

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"replayd/internal/stats"
)

// An SLO is what a request must keep to count as goodput. A bound of 0 is none; a latency equal to its bound keeps it.
type SLO struct {
	TTFT time.Duration // time to first token, from the write
	TPOT time.Duration // time per output token; a request for which it is undefined keeps it
	E2E  time.Duration // last content chunk, from the write
}

// The values of the label slo, in the order of a violations array.
const (
	sloTTFT = iota
	sloTPOT
	sloE2E
	sloError
	sloKinds
)

var sloNames = [sloKinds]string{"ttft", "tpot", "e2e", "error"}

// violations tells which bounds a finished request broke. One that failed has no latency to judge: it broke error, and
// nothing else. One that the workload itself cancelled breaks nothing and is no goodput either: nobody judges it.
func (s SLO) violations(r *Request) (broken [sloKinds]bool) {
	if r.Outcome == Cancelled {
		return broken
	}
	if r.Outcome != OK {
		broken[sloError] = true
		return broken
	}
	over := func(d time.Duration, defined bool, bound time.Duration) bool {
		return defined && bound > 0 && d > bound
	}
	ttft, hasTTFT := r.TTFT()
	tpot, hasTPOT := r.TPOT()
	e2e, hasE2E := r.E2E()
	broken[sloTTFT] = over(ttft, hasTTFT, s.TTFT)
	broken[sloTPOT] = over(tpot, hasTPOT, s.TPOT)
	broken[sloE2E] = over(e2e, hasE2E, s.E2E)
	return broken
}

// bounds are the thresholds in the order of sloNames; error has none.
func (s SLO) bounds() [sloKinds]time.Duration {
	return [sloKinds]time.Duration{s.TTFT, s.TPOT, s.E2E, 0}
}

// A Miss is one bound of an SLO that requests of a run broke, or, as error, that requests did not end ok.
type Miss struct {
	SLO        string        // ttft, tpot, e2e or error
	Requests   int64         // of the judged ones; under error also those that were never sent
	Bound      time.Duration // 0 of error
	P99, Worst time.Duration // of all ok requests, those within the bound too; 0 of error
}

// misses are the bounds that were broken, in the order of sloNames. Ok requests broke what is in broken.
func (f Figures) misses(broken [sloKinds]int64) (misses []Miss) {
	broken[sloError] = f.Judged() - f.Outcomes[OK]
	kept := [sloKinds]stats.Durations{f.TTFT, f.TPOT, f.E2E, {}}
	for i, bound := range f.SLO.bounds() {
		if broken[i] > 0 {
			misses = append(misses, Miss{sloNames[i], broken[i], bound, kept[i].P99, kept[i].Max})
		}
	}
	return misses
}

// String is the form that ParseSLO reads: "ttft:500ms,tpot:50ms"; "" when nothing is bounded.
func (s SLO) String() string {
	var parts []string
	for i, d := range s.bounds() {
		if d > 0 {
			parts = append(parts, sloNames[i]+":"+d.String())
		}
	}
	return strings.Join(parts, ",")
}

// ParseSLO reads bounds such as "ttft:500ms,tpot:50ms,e2e:10s", also with = in place of the colon; blanks around
// the parts do not count, and an empty string bounds nothing. The error names every part that is wrong.
func ParseSLO(text string) (SLO, error) {
	var slo SLO
	if strings.TrimSpace(text) == "" {
		return slo, nil
	}
	into := map[string]*time.Duration{"ttft": &slo.TTFT, "tpot": &slo.TPOT, "e2e": &slo.E2E}
	var errs []error
	for part := range strings.SplitSeq(text, ",") {
		i := strings.IndexAny(part, ":=")
		if i < 0 {
			errs = append(errs, fmt.Errorf("slo: want NAME:DURATION such as ttft:500ms, got %q", part))
			continue
		}
		name, value := strings.TrimSpace(part[:i]), strings.TrimSpace(part[i+1:])
		bound, known := into[name]
		if !known {
			errs = append(errs, fmt.Errorf("slo: want ttft, tpot or e2e, got %q", name))
			continue
		}
		d, err := time.ParseDuration(value)
		switch {
		case *bound != 0:
			errs = append(errs, fmt.Errorf("slo: %s: want it once, got it again with %q", name, value))
		case err != nil:
			errs = append(errs, fmt.Errorf("slo: %s: want a duration with its unit such as 500ms, got %q: %w", name, value, err))
		case d <= 0:
			errs = append(errs, fmt.Errorf("slo: %s: want a duration above 0, got %q", name, value))
		default:
			*bound = d
		}
	}
	if len(errs) > 0 {
		return SLO{}, errors.Join(errs...)
	}
	return slo, nil
}
