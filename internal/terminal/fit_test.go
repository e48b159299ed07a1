package terminal

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// A text that is broken to fit has no line that is too long, and all of its letters in their order.
func TestFit(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 2_000 {
		var text strings.Builder
		for range 1 + random.IntN(4) {
			text.WriteString(strings.Repeat("n", random.IntN(24)) + strings.Repeat(" ", random.IntN(4)))
			for range random.IntN(20) {
				text.WriteString(strings.Repeat("wö", random.IntN(40)) + " ")
			}
			text.WriteByte('\n')
		}
		columns := 1 + random.IntN(120)
		got := Fit(text.String(), columns)
		for line := range strings.Lines(got) {
			if n := Width(strings.TrimSuffix(line, "\n")); n > columns {
				t.Fatalf("%d columns: %d in %q of %q", columns, n, line, text.String())
			}
		}
		letters := func(s string) string { return strings.Join(strings.Fields(s), "") }
		if letters(got) != letters(text.String()) {
			t.Fatalf("%d columns: %q became %q", columns, text.String(), got)
		}
		if Fit(text.String(), 0) != text.String() {
			t.Fatal("changed without a limit")
		}
	}
	const want = "timestamps  sorted, 0 ms to\n            3,536,999 ms\n"
	if got := Fit("timestamps  sorted, 0 ms to 3,536,999 ms\n", 30); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
