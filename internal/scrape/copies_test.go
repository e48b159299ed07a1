package scrape

import (
	"strings"
	"testing"
	"time"
)

// A page is a copy by the cache's Age, by its Date and bytes again, or where it does not count what has ended.
func TestCopies(t *testing.T) {
	const interval = 5 * time.Second
	type page struct {
		age, date, bytes string
		ended            int64
		stale            string // part of why; "": it is not
	}
	many := func(n int, p page) (all []page) {
		for range n {
			all = append(all, p)
		}
		return all
	}
	idle := page{"", "", "a", 7, ""}
	for name, pages := range map[string][]page{
		"of an idle engine":    many(9, idle),
		"a cache's, young":     {{"5", "d1", "a", 0, ""}, {"5", "d2", "a", 0, ""}},
		"a cache's, old":       {{"6", "d1", "a", 0, "6s old"}, {"", "d2", "b", 0, ""}},
		"a cache's, no number": {{"x", "d1", "a", 0, ""}, {"-1", "d2", "a", 0, ""}},
		"a Date again":         {{"", "d1", "a", 0, ""}, {"", "d1", "a", 0, "the one before again, with its Date, 5s later"}, {"", "d1", "a", 0, "again"}, {"", "d2", "a", 0, ""}},
		"a Date again, of several engines": {
			{"", "d1", "a", noRequests, ""}, {"", "d1", "a", noRequests, "the one before again"}, {"", "d2", "a", noRequests, ""},
		},
		"a server's clock stops": {{"", "d1", "a", 0, ""}, {"", "d1", "b", 0, ""}, {"", "d1", "c", 0, ""}},
		"requests are not counted": {
			{"", "", "a", 0, ""},
			{"", "", "a", 4, ""},
			{"", "", "a", 4, ""},
			{"", "", "a", 5, ""},
			{"", "", "a", 6, ""},
			{"", "", "a", 7, "counts the 3 requests that have ended, got the same bytes for the 6th time"},
			{"", "", "b", 8, ""},
			{"", "", "b", 8, ""},
		},
		"one is counted before replayd saw its end": append([]page{{"", "", "a", 0, ""}}, many(9, page{"", "", "a", 1, ""})...),
		"another client counts":                     append(many(4, idle), many(9, page{"", "", "a", 2, ""})...),
		"none that this page must count":            many(9, page{"", "", "a", noRequests, ""}),
	} {
		var c copies
		at := time.Unix(1000, 0)
		for i, p := range pages {
			h := map[string][]string{"Date": {p.date}, "Age": {p.age}}
			err := c.judge(stampOf(h, []byte(p.bytes)), at, interval, p.ended)
			if (err != nil) != (p.stale != "") || err != nil && !strings.Contains(err.Error(), p.stale) {
				t.Errorf("%s, page %d: want %q, got %v", name, i, p.stale, err)
			}
			at = at.Add(interval)
		}
	}
	var c copies
	for i := range 20 { // of a run's end, many in a second
		at := time.Unix(1000, 0).Add(time.Duration(i) * settleEvery / 4)
		if err := c.judge(stampOf(map[string][]string{"Date": {"d"}}, nil), at, interval, int64(i)); err != nil {
			t.Errorf("page %d within a second: %v", i, err)
		}
	}
}
