package token

import "testing"

// A step that changes nothing leaves the text in the buffer of the step before it. The next step must not write to
// that buffer.
func TestNormalizeWithAStepPassedOver(t *testing.T) {
	w := &walk{t: &Tokenizer{steps: []normalization{{prepend: "▁"}, {old: "\t", new: " "}, {old: " ", new: "▁"}}}}
	for range 2 { // the second time, the buffers have room
		w.begin(5)
		if got, want := string(w.normalize([]byte("a b c"), false)), "▁a▁b▁c"; got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
}
