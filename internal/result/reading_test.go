package result

import (
	"reflect"
	"strings"
	"testing"

	"replayd/internal/measure"
)

// What was unusual in a run's answers is told in one line for each thing, and the readings of shards add up.
func TestReading(t *testing.T) {
	s := NewSummary(nil, measure.SessionSLO{})
	if s.Reading() != nil {
		t.Errorf("want nothing before the first answer, got %+v", s.Reading())
	}
	for _, r := range []measure.Request{
		{Outcome: measure.OK, Finish: "stop"},
		{
			Outcome: measure.OK, Finish: measure.OtherFinish,
			Usage: measure.Usage{Rules: measure.NoOutput | measure.KeptLarger},
		},
		{Outcome: measure.OK, Finish: measure.OtherFinish, Usage: measure.Usage{Rules: measure.NoOutput}, Unread: 2},
		{Outcome: measure.ErrorEvent, Finish: measure.NoFinish, Usage: measure.Usage{Rules: measure.Clipped}, Unread: 1},
		{Outcome: measure.OK, Phase: measure.Warmup, Finish: measure.OtherFinish, Unread: 5},
	} {
		s.Observe(&r)
	}
	got := s.Reading()
	want := &Reading{Rules: map[string]int64{"no_output": 2, "kept_larger": 1}, Reasons: 2, Unread: 3}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("want %+v, got %+v", want, got)
	}
	other := &Reading{Rules: map[string]int64{"clipped": 1}, Unread: 1, First: `"x":"y"`}
	sum := got.Add(other).Add(nil)
	want = &Reading{
		Rules: map[string]int64{"no_output": 2, "kept_larger": 1, "clipped": 1}, Reasons: 2, Unread: 4, First: `"x":"y"`,
	}
	if !reflect.DeepEqual(sum, want) {
		t.Errorf("want %+v, got %+v", want, sum)
	}
	var text []string
	for _, line := range sum.Lines() {
		text = append(text, line[0]+": "+line[1])
	}
	const lines = "usage: no_output in 2 ok answers, kept_larger in 1 ok answer, clipped in 1 ok answer: " +
		`the server's token counts are partial or cannot be
finish reason: 2 answers with one that is not known: it counts as a good end; the first: ""
not understood: 4 parts of answers without a meaning to replayd; the first: "x":"y"`
	if all := strings.Join(text, "\n"); all != lines {
		t.Errorf("want\n%s\ngot\n%s", lines, all)
	}
}
