package token

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// allBytes returns a file in tiktoken's format with every byte, "ab", " t", "he" and " the".
func allBytes() string {
	var b strings.Builder
	for i := range 256 {
		fmt.Fprintf(&b, "%s %d\n", base64.StdEncoding.EncodeToString([]byte{byte(i)}), i)
	}
	for i, word := range []string{"ab", " t", "he", " the"} {
		fmt.Fprintf(&b, "%s %d\n", base64.StdEncoding.EncodeToString([]byte(word)), 256+i)
	}
	return b.String()
}

func TestRanks(t *testing.T) {
	opened, err := read("somewhere/cl100k_base.tiktoken", []byte(allBytes()))
	if err != nil {
		t.Fatal(err)
	}
	tok := sure{opened}
	if got, want := tok.Kind(), "tiktoken's cl100k, 260 tokens and 0 added ones"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, c := range []struct {
		text string
		want []int
	}{
		{"", nil},
		{"aabb", []int{'a', 256, 'b'}},
		{" the the", []int{259, 259}},
		{"the", []int{'t', 258}},
		{"<|end|>", []int{'<', '|', 'e', 'n', 'd', '|', '>'}}, // as in tiktoken's encode_ordinary
		{"ab'ab", []int{256, '\'', 256}},
		{"\u00e9", []int{0xc3, 0xa9}},
	} {
		if got := tok.Encode([]byte(c.text)); !slices.Equal(got, c.want) {
			t.Errorf("%q: got %d, want %d", c.text, got, c.want)
		}
	}
}
