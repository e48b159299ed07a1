package comparison

import (
	"math"
	"strings"
	"testing"
	"time"

	"replayd/internal/canary"
)

// The share of other clients in an engine's output is told where both sides differ in it: since the epoch began, and since the pages were read anew.
func TestOtherClients(t *testing.T) {
	engines := [2]Engine{{Generated: 500, Generates: true}, {Generated: 90_000, Generates: true}}
	of := func(side int) func() Engine { return func() Engine { return engines[side] } }
	c := New(Options{Options: canary.Defaults(), Engines: [2]func() Engine{of(0), of(1)}})
	step := func(tokens [2]float64, own [2]int) [2]float64 {
		for side := range tokens {
			engines[side].Generated += tokens[side]
			if own[side] > 0 {
				r := asked(own[side], "stop")
				r.ID = "load/1"
				c.Side(canary.Side(side), "rows", nil).Observe(r)
			}
		}
		c.step(time.Unix(1, 0), func() {})
		return c.Status().Judgment.Others
	}
	if others := step([2]float64{}, [2]int{}); !math.IsNaN(others[0]) || !math.IsNaN(others[1]) {
		t.Errorf("before any tokens: %v", others)
	}
	others := step([2]float64{20_000, 40_000}, [2]int{20_000, 20_000})
	if others != [2]float64{0, 0.5} {
		t.Errorf("got the shares %v, want 0 and 0.5", others)
	}
	j := c.Status().Judgment
	if text := j.Text(c.options.Options); !strings.HasSuffix(text, ". Loads differ: other clients got 50 % of the candidate's output tokens, and 0 % of the baseline's") {
		t.Errorf("got %s", text)
	}
	engines[1].Generates = false // its page cannot be read
	if others := step([2]float64{0, 0}, [2]int{0, 40_000}); others[0] != 0 || !math.IsNaN(others[1]) {
		t.Errorf("while a page is not read: %v", others)
	}
	if j := c.Status().Judgment; j.Unread != [2]bool{false, true} || strings.Contains(j.Text(c.options.Options), "Loads differ") {
		t.Errorf("while a page is not read: %v, %s", j.Unread, j.Text(c.options.Options))
	}
	engines[1].Generates = true // and counts what came meanwhile
	if others := step([2]float64{0, 80_000}, [2]int{}); others[0] != 0 || others[1] != 0.5 || c.Status().Judgment.Unread != [2]bool{} {
		t.Errorf("after the page was read again: %v", others)
	}
	engines[1].Generated = 0 // the target's pages are read anew
	if others := step([2]float64{0, 10}, [2]int{}); others[0] != 0 || !math.IsNaN(others[1]) {
		t.Errorf("after the pages were read anew: %v", others)
	}
	c.Restart("v2")
	if others := c.Status().Judgment.Others; !math.IsNaN(others[0]) || !math.IsNaN(others[1]) {
		t.Errorf("in a new epoch: %v", others)
	}
}
