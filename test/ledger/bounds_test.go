//go:build real

package ledger_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A bound is one of --slo or --goodput: the most that a time may be, in ns, or the least tokens per second.
type bound struct {
	name  string
	limit float64
}

// bounds parses the bounds of a run. AIPerf's have no unit: they are in milliseconds.
func (c *run) bounds(t *testing.T) (all []bound) {
	t.Helper()
	comma := func(r rune) bool { return r == ',' }
	for _, part := range strings.FieldsFunc(c.flag("--slo")+","+c.flag("--goodput"), comma) {
		name, text, _ := strings.Cut(part, ":")
		b := bound{name: name}
		if v, err := strconv.ParseFloat(text, 64); err == nil {
			b.limit = v
			if name != perUser {
				b.limit *= 1e6
			}
		} else if d, err := time.ParseDuration(text); err == nil {
			b.limit = float64(d)
		} else {
			t.Fatalf("want a bound, got %q", part)
		}
		if _, _, known := b.within(request{}); !known {
			t.Fatalf("want a bound that an account knows, got %q", part)
		}
		all = append(all, b)
	}
	return all
}

// flag returns the value of a flag of the run; "" if it is not given.
func (c *run) flag(name string) string {
	if i := slices.Index(c.args, name); i >= 0 {
		return c.args[i+1]
	}
	return ""
}

const perUser = "output_token_throughput_per_user"

// within reports whether an ok request keeps a bound, and whether that is certain: a time per token lies between two
// values where one read held much of the answer. A request without the value keeps the bound.
func (b bound) within(r request) (kept, certain, known bool) {
	time := map[string]*int64{"ttft": r.TTFT, "time_to_first_token": r.TTFT, "ttfat": r.TTFAT, "e2e": r.E2E}
	if ns, single := time[b.name]; single {
		return ns == nil || float64(*ns) <= b.limit, true, true
	}
	if b.name != "tpot" && b.name != perUser {
		return false, false, false
	}
	perToken := func(ns int64) float64 { return float64(ns) / float64(r.Output-1) }
	keeps := func(ns float64) bool {
		if b.name == perUser {
			return float64(second)/ns >= b.limit
		}
		return ns <= b.limit
	}
	kept = r.TPOT == nil || keeps(perToken(*r.E2E-*r.TTFT))
	return kept, r.TPOTMost == nil || keeps(perToken(*r.E2E)), true
}

// judge reports whether a finished request is good. One that misses a bound is not, whatever is uncertain about others.
func judge(r request, bounds []bound) (isGood, judged bool) {
	if r.Outcome != "ok" {
		return false, true
	}
	judged = true
	for _, b := range bounds {
		kept, certain, _ := b.within(r)
		if !kept {
			return false, true
		}
		judged = judged && certain
	}
	return judged, judged
}

// exits returns the exit code that the documents say: 3 if fewer were good than the run wants, or over 5 % of the ok
// requests are not judged.
func (c *run) exits(t *testing.T, of account) int {
	t.Helper()
	least := 0.0
	if c.flag("--slo") != "" {
		least = 1
	}
	if text := c.flag("--min-goodput"); text != "" {
		var err error
		if least, err = strconv.ParseFloat(text, 64); err != nil {
			t.Fatal(err)
		}
	}
	if least > 0 && (of[good] < least*of[judged] || 20*of[unjudged] > of["ok"]) {
		return 3
	}
	return 0
}
