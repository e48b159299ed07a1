package synth

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"replayd/internal/trace"
)

func take(s Synthetic, n int) []trace.Record {
	rows := make([]trace.Record, n)
	next := s.Rows()
	for i := range rows {
		rows[i] = next()
	}
	return rows
}

// moments returns the mean and the standard deviation of f.
func moments(rows []trace.Record, f func(*trace.Record) int) (mean, deviation float64) {
	for i := range rows {
		mean += float64(f(&rows[i]))
	}
	mean /= float64(len(rows))
	for i := range rows {
		d := float64(f(&rows[i])) - mean
		deviation += d * d
	}
	return mean, math.Sqrt(deviation / float64(len(rows)))
}

func TestPlainLengths(t *testing.T) {
	rows := take(Synthetic{Input: Normal{550, 0}}, 5)
	for i, r := range rows {
		if want := (trace.Record{Number: i, Line: i + 1, InputTokens: 550}); !reflect.DeepEqual(r, want) {
			t.Errorf("row %d: %+v, want %+v", i, r, want)
		}
	}
	// For 40,000 draws, four standard errors are 4·σ/200 for the mean and 4·σ/√80,000 for the standard deviation.
	// Rounding adds 1/12 to the variance.
	rows = take(Synthetic{Input: Normal{1000, 100}, Output: Normal{50, 5}, Seed: 3}, 40_000)
	for _, c := range []struct {
		name            string
		f               func(*trace.Record) int
		mean, deviation float64
	}{
		{"input", func(r *trace.Record) int { return r.InputTokens }, 1000, 100},
		{"output", func(r *trace.Record) int { return r.OutputTokens }, 50, math.Sqrt(25 + 1./12)},
	} {
		mean, deviation := moments(rows, c.f)
		if math.Abs(mean-c.mean) > c.deviation/50 || math.Abs(deviation-c.deviation) > c.deviation/70 {
			t.Errorf("%s: %.2f ± %.2f, want %v ± %.2f", c.name, mean, deviation, c.mean, c.deviation)
		}
	}
	for i, r := range take(Synthetic{Input: Normal{1, 50}, Output: Normal{1, 50}}, 2000) {
		if r.InputTokens < 1 || r.OutputTokens < 1 {
			t.Fatalf("row %d: %+v", i, r)
		}
	}
	if r := take(Synthetic{Input: Normal{trace.MaxTokens, trace.MaxTokens}}, 100); slices.ContainsFunc(r, func(r trace.Record) bool { return r.InputTokens > trace.MaxTokens }) {
		t.Error("a row is longer than a trace may hold")
	}
}

func TestRowsAreAFunctionOfTheSeed(t *testing.T) {
	s := Synthetic{
		Input: Normal{100, 30}, Output: Normal{20, 9}, Turns: Normal{4, 2}, System: 10,
		Delay: time.Second, DelayStddev: 100 * time.Millisecond, Users: 7, Seed: 5,
	}
	a := take(s, 500)
	if !reflect.DeepEqual(a, take(s, 500)) {
		t.Error("one seed gives two sequences")
	}
	s.Seed++
	if b := take(s, 500); slices.EqualFunc(a, b, func(a, b trace.Record) bool { return a.InputTokens == b.InputTokens }) {
		t.Error("two seeds give one sequence")
	}
	// The conversations of a user do not depend on the number of users.
	s.Seed, s.Users = 5, 1
	if b := take(s, 4); b[0].InputTokens != a[0].InputTokens || b[0].Session != a[0].Session {
		t.Errorf("%+v, want %+v", b[0], a[0])
	}
}

// Each prompt of a conversation is the previous prompt, its answer and a new message.
func TestConversationsGrow(t *testing.T) {
	for name, s := range map[string]Synthetic{
		"one after the other": {Input: Normal{100, 30}, Output: Normal{20, 9}, Turns: Normal{4, 2}, System: 50, Delay: time.Second, DelayStddev: time.Second / 10},
		"no output":           {Input: Normal{300, 30}, Turns: Normal{3, 0}, System: 50},
		"in rounds":           {Input: Normal{100, 30}, Output: Normal{20, 9}, Turns: Normal{4, 2}, Users: 5},
		"users":               {Input: Normal{100, 30}, Output: Normal{20, 9}, Turns: Normal{20, 3}, Users: 15, Rate: 1.5, System: 7},
		"pairs":               {Pairs: []Pair{{Normal{10, 0}, Normal{5, 0}, 1}, {Normal{20, 0}, Normal{7, 0}, 1}}, Turns: Normal{3, 0}},
	} {
		if err := s.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		last := map[string]trace.Record{}
		roles := map[uint64]string{}
		for i, r := range take(s, 3000) {
			at := fmt.Sprintf("%s, row %d", name, i)
			total := 0
			for _, p := range r.Parts {
				total += p.Tokens
				if role, known := roles[p.ID]; known && role != p.Role {
					t.Fatalf("%s: part %d is from %s and from %s", at, p.ID, role, p.Role)
				}
				roles[p.ID] = p.Role
			}
			if total != r.InputTokens || r.Blocks != nil || r.Session == "" || r.Number != i || r.Line != i+1 {
				t.Fatalf("%s: %+v", at, r)
			}
			front := 0
			if s.System > 0 {
				if want := (trace.Part{Role: "system", ID: 0, Tokens: s.System}); !reflect.DeepEqual(r.Parts[0], want) {
					t.Fatalf("%s begins with %+v, want %+v", at, r.Parts[0], want)
				}
				front++
			}
			if want := front + 2*r.Turn + 1; len(r.Parts) != want {
				t.Fatalf("%s, turn %d: %d parts, want %d", at, r.Turn, len(r.Parts), want)
			}
			before, later := last[r.Session]
			last[r.Session] = r
			if !later {
				if r.Delay != 0 || r.Gap != 0 || s.Rate == 0 && r.Turn != 0 {
					t.Fatalf("%s is the first of its conversation: %+v", at, r)
				}
				continue
			}
			n := len(before.Parts)
			if r.Turn != before.Turn+1 || len(r.Parts) != n+2 || !reflect.DeepEqual(r.Parts[:n], before.Parts) {
				t.Fatalf("%s: %+v does not go on from %+v", at, r, before)
			}
			answer := before.OutputTokens
			if s.Output.Mean == 0 && s.Pairs == nil {
				answer = max(128, before.Parts[n-1].Tokens/2)
			}
			if r.Parts[n].Role != "assistant" || r.Parts[n].Tokens != answer || r.Parts[n+1].Role != "user" {
				t.Fatalf("%s: %+v, want an answer of %d", at, r.Parts[n:], answer)
			}
			if s.Pairs != nil && (r.OutputTokens != before.OutputTokens) {
				t.Fatalf("%s: a conversation is of two pairs", at)
			}
			if want := s.gap(); r.Gap != want || (r.Delay > 0) != (s.Delay > 0) {
				t.Fatalf("%s: gap %v and delay %v, want %v", at, r.Gap, r.Delay, want)
			}
		}
		if len(last) < 100 {
			t.Errorf("%s: %d conversations", name, len(last))
		}
	}
}

func TestASystemPromptWithoutTurns(t *testing.T) {
	for i, r := range take(Synthetic{Input: Normal{30, 0}, System: 20}, 3) {
		want := []trace.Part{{Role: "system", ID: 0, Tokens: 20}, {Role: "user", ID: uint64(i+1) << 20, Tokens: 30}}
		if !reflect.DeepEqual(r.Parts, want) || r.Session != "" || r.InputTokens != 50 {
			t.Errorf("row %d: %+v, want parts %+v", i, r, want)
		}
	}
}

// The table in the comment of AIPerf's user_centric_rate.py, ordered by time: 15 users, 20 turns, 1 request per
// second.
func TestUsersBeginWhereAIPerfHasThem(t *testing.T) {
	s := Synthetic{Input: Normal{26, 0}, Output: Normal{100, 0}, Turns: Normal{20, 0}, Users: 15, Rate: 1}
	left := []int{20, 6, 11, 16, 2, 7, 12, 17, 3, 8, 13, 18, 4, 9, 14}
	rows := take(s, 15*40)
	for slot, turns := range left {
		r := rows[slot]
		if r.Turn != 20-turns || r.InputTokens != 26+(20-turns)*126 {
			t.Errorf("slot %d begins with turn %d of %d tokens, want %d of %d", slot, r.Turn, r.InputTokens, 20-turns, 26+(20-turns)*126)
		}
		// The user continues without a pause: turn 19 is followed by turn 0 of another conversation.
		for step := 1; step < 40; step++ {
			was, is := rows[slot+15*(step-1)], rows[slot+15*step]
			if is.Turn != (was.Turn+1)%20 || (is.Session == was.Session) != (is.Turn > 0) {
				t.Fatalf("slot %d: turn %d of %s is followed by turn %d of %s", slot, was.Turn, was.Session, is.Turn, is.Session)
			}
			if gap := time.Duration(0); is.Turn > 0 {
				gap = 15 * time.Second
				if is.Gap != gap {
					t.Fatalf("slot %d: a gap of %v, want %v", slot, is.Gap, gap)
				}
			}
		}
	}
}

// Rows and messages must never change between versions or machines, or replays would not be comparable.
func TestConversationsNeverChange(t *testing.T) {
	s := Synthetic{
		Input: Normal{60, 20}, Output: Normal{30, 10}, Turns: Normal{5, 2}, System: 40,
		Users: 3, Delay: time.Second, DelayStddev: time.Second / 4, Seed: 42,
	}
	p := prompter(t, Options{Seed: 42})
	sum := sha256.New()
	for _, r := range take(s, 50) {
		var parts []any // as a Part was when the sum was taken, without blocks
		for _, part := range r.Parts {
			parts = append(parts, struct {
				Role   string
				ID     uint64
				Tokens int
			}{part.Role, part.ID, part.Tokens})
		}
		fmt.Fprintln(sum, r.InputTokens, r.OutputTokens, r.Session, r.Turn, r.Delay, parts)
		messages, _ := p.AppendMessages(nil, &r, 7, 3, nil)
		sum.Write(messages)
	}
	const want = "d4f600919afa0b05ab51389c89ffdd17b98f9e896b0c8b69bf6b30ae260463bf"
	if got := hex.EncodeToString(sum.Sum(nil)); got != want {
		t.Errorf("sha256 of the conversations: %s, want %s", got, want)
	}
	messages, _ := p.AppendMessages(nil, talk(1, 4, 6), 7, 1, nil)
	const short = `[{"role":"system","content":"because chilling gilt launches"},{"role":"user","content":"after grades coordinator jag custom"}]`
	if string(messages) != short {
		t.Errorf("got %s, want %s", messages, short)
	}
}

// Check considers only the means. Drawn lengths may be far above them, and a conversation ends when its next
// message does not fit into a prompt.
func TestConversationsFitIntoPrompts(t *testing.T) {
	for _, s := range []Synthetic{
		{Input: Normal{1e6, 1e6}, Output: Normal{1e5, 0}, Turns: Normal{10, 500}, System: 99},
		{Input: Normal{1e6, 0}, Output: Normal{1e6, 0}, Turns: Normal{5, 500}, Users: 5, Rate: 1},
		{Input: Normal{trace.MaxTokens - 1, 1e6}, Turns: Normal{1, 0}, System: 1},
	} {
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		next := s.Rows()
		for range 300 {
			r, sum := next(), 0
			for _, p := range r.Parts {
				if sum += p.Tokens; p.Tokens < 1 {
					t.Fatalf("row %d has a part of %d tokens", r.Number, p.Tokens)
				}
			}
			if sum != r.InputTokens || sum > trace.MaxTokens {
				t.Fatalf("%+v: row %d has %d tokens, parts of %d", s, r.Number, r.InputTokens, sum)
			}
		}
	}
}

func TestSyntheticCheck(t *testing.T) {
	for _, c := range []struct {
		s    Synthetic
		want string
	}{
		{Synthetic{Input: Normal{1, 0}}, ""},
		{Synthetic{}, "input: want a mean of 1 to 16777216, got 0"},
		{
			Synthetic{Input: Normal{math.NaN(), -1}, Output: Normal{-1, math.Inf(1)}, System: -1, Turns: Normal{-1, 0}, Delay: -1, Users: -1, Rate: -1},
			"input: want a mean of 1 to 16777216, got NaN\ninput.stddev: want a standard deviation of 0 to 16777216, got -1\n" +
				"output: want a mean of 0 to 16777216, got -1\noutput.stddev: want a standard deviation of 0 to 16777216, got +Inf\n" +
				"system: want 0 to 16777216 tokens, got -1\n" +
				"turns: want a mean of 0 to 10000, got -1\ndelay: want 0s or more, got -1ns and a standard deviation of 0s\n" +
				"users: want 0 to 1048576, got -1\nrate: want 0 or more requests per second, got -1",
		},
		{Synthetic{Input: Normal{1, 0}, Pairs: []Pair{{}}}, "pairs: want none beside input and output, got 1\n" +
			"pairs: pair 1: input length: want a mean of 1 to 16777216, got 0\npairs: pair 1: output length: want a mean of 1 to 16777216, got 0\n" +
			"pairs: shares: want one above 0, got none"},
		{Synthetic{Input: Normal{10_000, 0}, Turns: Normal{2000, 0}}, "turns: want conversations of at most 16777216 tokens, got about 20000000"},
		{
			Synthetic{Input: Normal{1, 0}, Delay: time.Hour, DelayStddev: 25 * time.Hour},
			"delay_stddev: want at most 24h0m0s, got 1h0m0s and a standard deviation of 25h0m0s",
		},
		{Synthetic{Input: Normal{1, 0}, Rate: 1}, "rate: want users too, got none"},
		{Synthetic{Input: Normal{1, 0}, Rate: 1, Users: 2, Delay: time.Second}, "delay: want none with a rate, which sets the time between turns, got 1s"},
	} {
		got := ""
		if err := c.s.Check(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v:\ngot  %s\nwant %s", c.s, strings.ReplaceAll(got, "\n", "\n     "), c.want)
		}
	}
}

func BenchmarkRows(b *testing.B) {
	next := Synthetic{Input: Normal{550, 50}, Output: Normal{100, 10}, Turns: Normal{20, 0}, Users: 15, Rate: 1, System: 1000}.Rows()
	for b.Loop() {
		next()
	}
}
