package synth

import (
	"strconv"
	"testing"

	"replayd/internal/token"
	"replayd/internal/trace"
)

// The tokens that an infinite cache hits, computed by hand. A block has 16 tokens.
func TestReuse(t *testing.T) {
	words, err := token.List("main")
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(Options{Words: words, Form: Text, BlockTokens: 16})
	if err != nil {
		t.Fatal(err)
	}
	row := func(number, tokens int, blocks ...uint64) *trace.Record {
		return &trace.Record{Number: number, InputTokens: tokens, Blocks: blocks}
	}
	turn := func(number int, parts ...trace.Part) *trace.Record {
		r := &trace.Record{Number: number, Parts: parts}
		for _, part := range parts {
			r.InputTokens += part.Tokens
		}
		return r
	}
	user, answer, next := trace.Part{Role: "user", ID: 1, Tokens: 10}, trace.Part{Role: "assistant", ID: 2, Tokens: 20}, trace.Part{Role: "user", ID: 3, Tokens: 5}
	type sent struct {
		row    *trace.Record
		salt   uint64
		warmup bool
	}
	f := func(name string, want int64, known bool, all ...sent) {
		t.Helper()
		var u Reuse
		for _, s := range all {
			u.Add(p, s.row, s.salt, !s.warmup)
		}
		if got, ok := u.Tokens(); got != want && known || ok != known {
			t.Errorf("%s: %d tokens, known %v, want %d, %v", name, got, ok, want, known)
		}
	}
	f("nothing", 0, true)
	f("texts of their own", 0, true, sent{row: row(0, 40)}, sent{row: row(1, 40)})
	f("a row that comes round", 40, true, sent{row: row(0, 40)}, sent{row: row(0, 40)})
	f("under another salt", 0, true, sent{row: row(0, 40)}, sent{row: row(0, 40), salt: 1})
	f("a shared front", 32, true, sent{row: row(0, 48, 1, 2, 3)}, sent{row: row(1, 48, 1, 2, 4)})
	f("the same block behind another", 0, true, sent{row: row(0, 32, 1, 2)}, sent{row: row(1, 32, 3, 2)})
	f("a shorter last block", 24, true, sent{row: row(0, 32, 1, 2)}, sent{row: row(1, 24, 1, 2)})
	f("a longer last block", 24, true, sent{row: row(0, 24, 1, 2)}, sent{row: row(1, 32, 1, 2)})
	f("behind the blocks a text of its own", 16, true, sent{row: row(0, 40, 1)}, sent{row: row(1, 40, 1)})
	f("a conversation", 30, true, sent{row: turn(0, user)}, sent{row: turn(1, user, answer, next)})
	f("an answer behind what nobody sent", 0, true, sent{row: turn(1, user, answer, next)})
	f("the warm-up is known, and does not count", 40, true, sent{row: row(0, 40), warmup: true}, sent{row: row(0, 40), warmup: true}, sent{row: row(0, 40)})
	f("a given text", 0, false, sent{row: &trace.Record{Text: "hello"}})
}

// Reuse takes a limited amount of memory. Beyond the limit, Tokens reports that the number is unknown.
func TestReuseIsBounded(t *testing.T) {
	words, err := token.List("main")
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(Options{Words: words, Form: Text})
	if err != nil {
		t.Fatal(err)
	}
	var u Reuse
	for i := range maxReused + 2 {
		u.Add(p, &trace.Record{Number: i, InputTokens: 1}, 0, true)
	}
	if n, known := u.Tokens(); known {
		t.Error("known after " + strconv.Itoa(maxReused) + " pieces: " + strconv.FormatInt(n, 10))
	}
}
