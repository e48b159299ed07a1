package canary

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// saying gives each side's answers a length and a reason.
func saying(of func(side Side, rng *rand.Rand) Answer) func(p *Pair, rng *rand.Rand) {
	return func(p *Pair, rng *rand.Rand) {
		for side := range p.Requests {
			p.Requests[side].Answer = of(Side(side), rng)
		}
	}
}

// A reliable difference of lengths and reasons is reported; answers that are alike, or of unknown length, are not.
func TestAnswersThatDiffer(t *testing.T) {
	for name, c := range map[string]struct {
		of   func(side Side, rng *rand.Rand) Answer
		want string
	}{
		"half as long": {
			func(side Side, _ *rand.Rand) Answer { return Answer{Tokens: 100 / (1 + int(side))} },
			"answers: the candidate's are 0.50 times as long (median 50 against 100 tokens)",
		},
		"long": {
			func(side Side, _ *rand.Rand) Answer { return Answer{Tokens: 3000 * (1 + int(side)), Finish: NoFinish} },
			"answers: the candidate's are 2.01 times as long (median 5919 against 2960 tokens)",
		},
		"some are shorter": {func(side Side, rng *rand.Rand) Answer {
			return Answer{Tokens: 100 - 60*int(side)*rng.IntN(2)*rng.IntN(2)}
		}, "answers: the candidate's are shorter in "},
		"equal": {func(Side, *rand.Rand) Answer { return Answer{Tokens: 100, Finish: Length} }, ""},
		"alike": {func(_ Side, rng *rand.Rand) Answer {
			return Answer{Tokens: 50 + rng.IntN(100), Finish: Finish(rng.IntN(int(finishes)))}
		}, ""},
		"unknown": {func(side Side, _ *rand.Rand) Answer { return Answer{Tokens: 100 * int(side)} }, ""},
		"different counts": {func(side Side, _ *rand.Rand) Answer {
			return Answer{Tokens: 100 * (1 + int(side)), Chunks: side == Candidate}
		}, ""},
		"another end": {func(side Side, rng *rand.Rand) Answer {
			f := Length
			if rng.IntN(10) < 8-7*int(side) {
				f = Stop
			}
			return Answer{Tokens: 100, Finish: f}
		}, "answers: stop "},
		"one calls tools": {func(side Side, _ *rand.Rand) Answer {
			return Answer{Finish: []Finish{Stop, ToolCalls}[side]}
		}, "answers: stop 0 % against 100 %; tool_calls 100 % against 0 %"},
	} {
		for _, mode := range []Mode{ModeVerdict, ModeWatch} {
			o := Defaults()
			o.Mode = mode
			j := played(o, 1000, 3*time.Second, saying(c.of)).Judge()
			if got := j.Answers.Text(); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
				t.Errorf("%s: got %q, want %q", name, got, c.want)
			}
		}
	}
}

// Answers of equal servers are said to differ in at most Alpha of all comparisons, however often one looks.
func TestAnswersThatAreAlike(t *testing.T) {
	o := Defaults()
	o.Alpha = 0.05
	said, lives := 0, 400
	for seed := range uint64(lives) {
		rng := rand.New(rand.NewPCG(seed, 8))
		a := answers{}
		p := &Pair{}
		for range 300 {
			for side := range p.Requests {
				p.Requests[side] = Request{E2E: 1, Answer: Answer{Tokens: 1 + int(rng.ExpFloat64()*100), Finish: Finish(rng.IntN(int(finishes)))}}
			}
			a.add(p)
			if s := a.state(o.Alpha); s.Text() != "" {
				said++
				break
			}
		}
	}
	if said > int(0.05*float64(lives)) {
		t.Errorf("a difference of equal servers was told in %d of %d comparisons, want at most 5 %%", said, lives)
	}
}

// Only pairs that are judged and have an answer of each side count, in the epoch and in the totals.
func TestAnswersOfJudgedPairs(t *testing.T) {
	c := played(Defaults(), 1000, 3*time.Second, func(p *Pair, rng *rand.Rand) {
		for side := range p.Requests {
			p.Requests[side].Answer = Answer{Tokens: 10 * (1 + side), Finish: Length}
		}
		switch rng.IntN(10) {
		case 0:
			p.Void = VoidLate
		case 1:
			p.Requests[rng.IntN(2)].fails(time.Second)
		}
	})
	a, totals := c.Judge().Answers, c.counters.Totals()
	if n := totals.Pairs.Judged; a.Pairs >= n || a.Pairs < n*4/5 || a.Known != a.Pairs ||
		a.Tokens != [2]int64{10 * a.Pairs, 20 * a.Pairs} {
		t.Errorf("got %+v of %+v", a, totals.Pairs)
	}
	if a.AnswerTotals != totals.Answers {
		t.Errorf("the totals are %+v, want %+v", totals.Answers, a.AnswerTotals)
	}
	c.Restart()
	if a := c.Judge().Answers; a.Pairs != 0 || c.counters.Totals().Answers != totals.Answers {
		t.Errorf("a new epoch begins with %+v", a)
	}
}

// Each length below 256 has a cell of its own. A longer one is shown with an error of at most 2.5 %.
func TestCellsOfLengths(t *testing.T) {
	for n := 1; n < 1<<20; n += 1 + n/300 {
		got := float64(lengthOf(lengthCell(n)))
		if far := got/float64(n) - 1; n < exactLengths && far != 0 || far < -0.025 || far > 0.025 {
			t.Errorf("%d tokens are told as %v", n, got)
		}
	}
	if lengthCell(1<<40) != lengthCells-1 {
		t.Error("the longest answer has no cell")
	}
}

// A reason has its name in the table of meaning.
func TestFinishOf(t *testing.T) {
	for name, want := range map[string]Finish{
		"stop": Stop, "length": Length, "tool_calls": ToolCalls, "content_filter": ContentFilter, "none": NoFinish,
		"other": OtherFinish, "eos": OtherFinish,
	} {
		if got := FinishOf(name); got != want {
			t.Errorf("%q is %v, want %v", name, got, want)
		}
	}
}
