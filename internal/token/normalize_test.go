package token

import "testing"

// A step that has nothing to do leaves the text where the one before put it, and the one behind must not write there.
func TestNormalizeWithAStepPassedOver(t *testing.T) {
	steps := []normalization{{prepend: "▁"}, {old: "\t", new: " "}, {old: " ", new: "▁"}}
	var spare [2][]byte
	for range 2 { // the second time the buffers have room
		if got, want := string(normalize(steps, []byte("a b c"), &spare, false)), "▁a▁b▁c"; got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
}
