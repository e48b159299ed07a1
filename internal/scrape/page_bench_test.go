package scrape

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkParse parses a page of vLLM's size and one at the bounds, with all or none of the samples wanted.
func BenchmarkParse(b *testing.B) {
	rows := func(n, width int) []byte {
		var page strings.Builder
		for i := range n {
			fmt.Fprintf(&page, "vllm:x{engine=\"%d\",id=\"%0*d\"} %d\n", i%8, width, i, i)
		}
		return []byte(page.String())
	}
	for _, c := range []struct {
		name   string
		body   []byte
		wanted bool
	}{
		{"of_100_KB", rows(1_600, 30), true},
		{"of_200,000_unwanted", rows(maxSamples, 30), false},
		{"of_200,000_wanted", rows(maxSamples, 30), true},
		{"of_50,000_wanted_and_16_MB", rows(maxKept, 290), true},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.body)))
			b.ReportAllocs()
			for b.Loop() {
				if p, err := Parse(c.body, text004, func(string) bool { return c.wanted }); p == nil && len(c.body) < 1<<20 {
					b.Fatal(err)
				}
			}
		})
	}
}
