package result

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"replayd/internal/measure"
)

// lengthened returns a request whose row asks for 20 tokens and an answer of 5, and for which the server counts others.
func lengthened(prompt, answer int) *measure.Request {
	r := example()[10]
	r.ID, r.InputTokens, r.OutputTokens = "w/0/0", 20, 5
	r.Usage = measure.Usage{Prompt: prompt, Output: answer, Source: measure.UsageFinal}
	return r
}

func TestLengthLines(t *testing.T) {
	const more = "; the server counted none of 1; no length was asked for in 1"
	without := lengthened(0, 5)
	without.Usage.Source = measure.UsageCounted
	unasked := lengthened(20, 5)
	unasked.InputTokens, unasked.OutputTokens = 0, 0
	failed := lengthened(1, 1)
	failed.Outcome = measure.ErrorEvent
	warmup := lengthened(1, 1)
	warmup.Phase = measure.Warmup
	exact, short := lengthened(20, 5), lengthened(20, 2)
	three := []*measure.Request{exact, exact, exact}
	for name, c := range map[string]struct {
		all  []*measure.Request
		why  string
		want []string
	}{
		"none": {nil, "output is max", nil},
		"all as asked": {[]*measure.Request{exact, failed, warmup}, "", []string{
			"prompts: 1 of 1 have the length asked (20 tokens asked, 20 counted)",
			"answers: 1 of 1 have the length asked (5 tokens asked, 5 counted)",
		}},
		"2 of 5": {[]*measure.Request{short, short, short}, "it refuses them", []string{
			"prompts: 3 of 3 have the length asked (60 tokens asked, 60 counted)",
			"! answers: 3 of 3 have other lengths than asked, −60 % in the median (15 tokens asked, 6 counted)",
			"! exact lengths: not asked for, because it refuses them",
		}},
		"9 of 5, and a prompt of twice the tokens": {[]*measure.Request{lengthened(40, 9)}, "", []string{
			"! prompts: 1 of 1 have other lengths than asked, +100 % in the median (20 tokens asked, 40 counted)",
			"! answers: 1 of 1 have other lengths than asked, +80 % in the median (5 tokens asked, 9 counted)",
		}},
		"the median is of those that differ": {append(three, short, lengthened(20, 4), lengthened(20, 1)), "", []string{
			"prompts: 6 of 6 have the length asked (120 tokens asked, 120 counted)",
			"! answers: 3 of 6 have other lengths than asked, −60 % in the median (30 tokens asked, 22 counted)",
		}},
		"not counted, not asked for": {[]*measure.Request{without, unasked, short}, "", []string{
			"prompts: 1 of 1 have the length asked (20 tokens asked, 20 counted)" + more,
			"! answers: 1 of 1 have other lengths than asked, −60 % in the median (5 tokens asked, 2 counted)" + more,
		}},
		"exact lengths of nothing": {[]*measure.Request{unasked}, "output is max", []string{
			"prompts: no length was asked for in 1", "answers: no length was asked for in 1",
		}},
	} {
		s := NewSummary(nil, measure.SessionSLO{})
		var run Run
		var clock wallClock
		for _, r := range c.all {
			s.Observe(r)
			run.Rows = append(run.Rows, clock.row(r, "p", false))
		}
		observed := s.Lengths()
		observed.NotExact, run.Settings.NotExact = c.why, c.why
		if diff := cmp.Diff(observed, run.Lengths()); diff != "" {
			t.Errorf("%s: -observed +rows\n%s", name, diff)
		}
		var got []string
		for _, l := range observed.Lines() {
			text := l[0] + ": " + l[1]
			if slices.Contains(observed.Warnings(), text) {
				text = "! " + text
			}
			got = append(got, text)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}

// An export and the records of a run have the lengths of the run.
func TestLengthsReadBack(t *testing.T) {
	all := example()
	all[20].Usage.Source, all[30].Usage.Prompt, all[40].OutputTokens = measure.UsageCounted, 0, 0
	var export []byte
	var live Run
	var clock wallClock
	for _, r := range all {
		row := clock.row(r, "p", false)
		live.Rows, export = append(live.Rows, row), AppendExport(export, row)
	}
	records := recorded(t, func(observe func(*measure.Request)) {
		for _, r := range all {
			observe(r)
		}
	})
	l := live.Lengths()
	if l.Answers.Uncounted != 1 || l.Prompts.Uncounted != 1 || l.Answers.Unasked != 1 || l.Answers.Other == 0 {
		t.Errorf("%+v", l)
	}
	for name, file := range map[string][]byte{"export": export, "records": records} {
		run, err := one(ReadExport(bytes.NewReader(file), name))
		if diff := cmp.Diff(live.Lengths(), run.Lengths()); err != nil || diff != "" {
			t.Errorf("%s: %v -live +read back\n%s", name, err, diff)
		}
	}
}

// The texts that come with the figures of a run are bounded.
func TestTextsOfFiguresAreBounded(t *testing.T) {
	long := strings.Repeat("x", 2*maxSaid)
	file := fmt.Sprintf(`{"lengths":{"not_exact":%q},"reading":{"first_other_finish_reason":%q,"first_unread_event":%q}}`,
		long, long, long)
	run, err := ReadJSON(strings.NewReader(file), "x.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{run.Settings.NotExact, run.Reading.Reason, run.Reading.First} {
		if len(text) != maxSaid {
			t.Errorf("want %d bytes, got %d", maxSaid, len(text))
		}
	}
}
