package comparison

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"replayd/internal/canary"
	"replayd/internal/measure"
)

// fieldAt returns the field at a path of names and indexes, as text.
func fieldAt(v any, path []string) string {
	for _, name := range path {
		if list, ok := v.([]any); ok {
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(list) {
				return "none"
			}
			v = list[i]
			continue
		}
		v = v.(map[string]any)[name]
	}
	return fmt.Sprint(v)
}

// asked returns an answer of 100 ms with a number of tokens.
func asked(tokens int, finish string) *measure.Request {
	at := time.Unix(100, 0)
	return &measure.Request{
		Outcome: measure.OK, Finish: finish, Usage: measure.Usage{Output: tokens, Source: measure.UsageFinal},
		Timeline: measure.Timeline{Due: at, Ready: at, Write: at, End: at.Add(100 * time.Millisecond), Chunks: []time.Duration{50 * time.Millisecond, 90 * time.Millisecond}},
	}
}

// Each epoch has the chance of an error anew: from the second on /-/comparisons says so. A watch has a rate of alarms
// instead.
func TestComparisonJSONTellsSpentErrors(t *testing.T) {
	for _, c := range []struct {
		mode   canary.Mode
		epochs int64
		want   string
	}{
		{canary.ModeVerdict, 1, "<nil>"},
		{canary.ModeVerdict, 10, "versions judged: 10, each with at most 1 %"},
		{canary.ModeWatch, 10, "<nil>"},
	} {
		o := canary.Defaults()
		o.Mode = c.mode
		text, err := JSON([]Status{{Options: o, Epochs: c.epochs, Version: "7d4b9", Judgment: canary.New(o).Judge()}})
		if err != nil {
			t.Fatal(err)
		}
		var shown []map[string]any
		if err := json.Unmarshal(text, &shown); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintln(c.epochs, "7d4b9", c.want)
		if got := fmt.Sprintln(shown[0]["epochs"], shown[0]["version"], shown[0]["spent"]); got != want {
			t.Errorf("%s, %d epochs: want %s, got %s", c.mode, c.epochs, want, got)
		}
	}
}

// /-/comparisons tells what differs between the answers, what has no value, and a ratio that is only bounded. The log tells answers with the verdict.
func TestComparisonJSONTellsMoreThanTheVerdict(t *testing.T) {
	o := canary.Defaults()
	o.MinPairs, o.MinTime = 1, 0
	c := canary.New(o)
	for i := range 30 {
		p := canary.Pair{At: time.Unix(int64(i), 0)}
		for side, r := range []*measure.Request{asked(98, "stop"), asked(50, "length")} {
			p.Requests[side] = halfOf(r, measure.SLO{}).Request
			p.Requests[side].Sent, p.Requests[side].First, p.Requests[side].End = p.At, p.At.Add(time.Millisecond), p.At.Add(time.Millisecond)
			p.Requests[side].TPOT = time.Millisecond
			p.Requests[side].E2E = []time.Duration{100 * time.Second, time.Second}[side]
		}
		c.Add(&p)
	}
	state := Status{Name: "rollout", Options: o, Judgment: c.Judge()}
	text, err := JSON([]Status{state})
	if err != nil {
		t.Fatal(err)
	}
	var shown []map[string]any
	if err := json.Unmarshal(text, &shown); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"answers.text":                            "answers: the candidate's are 0.51 times as long (median 50 against 98 tokens); stop 0 % against 100 %; length 100 % against 0 %",
		"answers.pairs":                           "30",
		"answers.shorter":                         "30",
		"answers.length_ratio":                    "0.507",
		"answers.baseline.median_output_tokens":   "98",
		"answers.candidate.output_tokens":         "1500",
		"answers.candidate.finish_reasons.length": "30",
		"without_value.0":                         "tail",
		"scope":                                   "pair",
		"reason":                                  "few_pairs",
		"metric":                                  "tail",
		"metrics.2.metric":                        "e2e",
		"metrics.2.ratio_bound":                   "less_than",
		"metrics.0.ratio_bound":                   "<nil>",
	} {
		if got := fieldAt(shown[0], strings.Split(path, ".")); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	told := false
	one := New(Options{Options: canary.Defaults(), News: func(_ slog.Level, got string) {
		told = true
		if want := "; answers: the candidate's are 0.51 times as long"; !strings.HasPrefix(got, "pass: in these ") || !strings.Contains(got, want) {
			t.Errorf("the log says %q, want %q in it", got, want)
		}
	}})
	state.Judgment.Verdict = canary.Pass
	one.reportChange(&canary.Judgment{Verdict: canary.Undecided}, &state.Judgment)
	if !told {
		t.Error("the log says nothing")
	}
}
