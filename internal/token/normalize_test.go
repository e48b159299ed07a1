package token

import "testing"

// A step that changes nothing leaves the text in the buffer of the step before it. The next step must not write to
// that buffer.
func TestNormalizeWithAStepPassedOver(t *testing.T) {
	steps := []normalization{{prepend: "▁"}, {old: "\t", new: " "}, {old: " ", new: "▁"}}
	var spare [2][]byte
	for range 2 { // the second time, the buffers have room
		if got, want := string(normalize(steps, []byte("a b c"), &spare, false)), "▁a▁b▁c"; got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
}
