package daemon

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"testing/synctest"
	"time"
)

// A trace that is replaced in place begins a new epoch, once, though each side reads it by itself. Rows of both versions are no pairs, and the state that is
// kept is that of the new rows.
func TestComparisonOfATraceThatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, conf := twoServers(t, 1)
		conf.State.Path = filepath.Join(t.TempDir(), "state")
		identity := func() string {
			w.g.shared.state.Write()
			text, err := os.ReadFile(conf.State.Path)
			if err != nil {
				t.Fatal(err)
			}
			return regexp.MustCompile(`"identity":"[0-9a-f]+"`).FindString(string(text))
		}
		w.start(conf, true)
		pass(30 * time.Second)
		first := w.compared()
		of := identity()
		w.put(paced(40, 45)) // the rows have other lengths and instants, and partly the same numbers
		pass(time.Minute)
		second := w.compared()
		totals := second.Counters.Totals()
		if !second.Epoch.After(first.Epoch) || w.logged("the trace has changed") != 1 {
			t.Errorf("the epoch was %v and is %v; it was told %d times", first.Epoch, second.Epoch, w.logged("the trace has changed"))
		}
		if p := second.Judgment.Pairs; p.Judged < 1000 || p.Void > 0 || p.Bad != [2]int64{} {
			t.Errorf("the new epoch has %+v", p)
		}
		if p := totals.Pairs; totals.Due != p.Judged+p.Void+totals.Open() || totals.Open() > 2 {
			t.Errorf("all pairs: %+v of %d", p, totals.Due)
		}
		if now := identity(); now == of || now == "" {
			t.Errorf("the evidence has the identity %s, and had %s", now, of)
		}
		w.put(paced(20, 100))
		pass(time.Minute)
		if third := w.compared(); !third.Epoch.After(second.Epoch) || third.Judgment.Pairs.Judged < 400 || identity() != of {
			t.Errorf("with the first rows again: epoch %v, %+v", third.Epoch, third.Judgment.Pairs)
		}
		w.end()
		if n := w.compared().Counters.Totals(); n.Open() != 0 {
			t.Errorf("in the end: %+v", n)
		}
	})
}
