package measure

import "testing"

// The lengths that the row asks for are compared with those that the server counted, to the token, and with no others.
func TestLengths(t *testing.T) {
	usage := Usage{Prompt: 20, Output: 5, Source: UsageFinal}
	ok := Request{Outcome: OK, InputTokens: 20, OutputTokens: 5, Usage: usage}
	for _, c := range []struct {
		name           string
		change         func(r *Request)
		prompt, answer Length
		other          [2]bool
		input          int
	}{
		{
			"as asked", func(*Request) {},
			Length{20, 20},
			Length{5, 5},
			[2]bool{},
			20,
		},
		{
			"one token off", func(r *Request) { r.Usage.Prompt, r.Usage.Output = 21, 4 },
			Length{20, 21},
			Length{5, 4},
			[2]bool{true, true},
			21,
		},
		{
			"by llama.cpp's timings", func(r *Request) { r.Usage.Output, r.Usage.Source = 2, UsageTimings },
			Length{20, 20},
			Length{5, 2},
			[2]bool{false, true},
			20,
		},
		{
			"chunks, a lower bound", func(r *Request) { r.Usage = Usage{Output: 2, Source: UsageCounted} },
			Length{20, 0},
			Length{5, 0},
			[2]bool{},
			20,
		},
		{
			"a tokenizer's", func(r *Request) { r.Usage = Usage{Output: 2, Source: UsageText} },
			Length{20, 0},
			Length{5, 0},
			[2]bool{},
			20,
		},
		{
			"only the prompt", func(r *Request) { r.Usage = Usage{Prompt: 40, Output: 2, Source: UsageCounted} },
			Length{20, 40},
			Length{5, 0},
			[2]bool{true, false},
			40,
		},
		{
			"nothing asked", func(r *Request) { r.InputTokens, r.OutputTokens = 0, 0 },
			Length{0, 20},
			Length{0, 5},
			[2]bool{},
			20,
		},
		{
			"a text of its own", func(r *Request) { r.InputTokens, r.CountedInput, r.Usage = 0, 11, Usage{} },
			Length{},
			Length{5, 0},
			[2]bool{},
			11,
		},
		{
			"failed", func(r *Request) { r.Outcome, r.Usage.Output = Truncated, 2 },
			Length{20, 0},
			Length{5, 0},
			[2]bool{},
			20,
		},
	} {
		r := ok
		c.change(&r)
		prompt, answer, input := r.PromptLength(), r.AnswerLength(), r.Input()
		if prompt != c.prompt || answer != c.answer || input != c.input {
			t.Errorf("%s: want %v, %v, %d, got %v, %v, %d", c.name, c.prompt, c.answer, c.input, prompt, answer, input)
		}
		if got := [2]bool{prompt.Other(), answer.Other()}; got != c.other {
			t.Errorf("%s: other lengths: want %v, got %v", c.name, c.other, got)
		}
	}
}
