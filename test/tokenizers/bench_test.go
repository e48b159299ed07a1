//go:build tokenizers

package tokenizers

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"replayd/internal/token"
)

// BenchmarkCount counts long texts: `go test -tags tokenizers -run '^$' -bench . ./test/tokenizers/`.
func BenchmarkCount(b *testing.B) {
	long := func(parts ...string) []byte { return []byte(strings.Repeat(strings.Join(parts, "\n"), 2000)) }
	samples := []struct {
		name string
		text []byte
	}{
		{"English", long(passages[0], passages[1])},
		{"Chinese", long(passages[6])},
		{"code", long(passages[17], passages[18], passages[21])},
		{"all_scripts", long(passages...)},
		{"one_word", bytes.Repeat([]byte("qwertyuiopasdfghjkl"), 20_000)},
		{"spaces", bytes.Repeat([]byte(" "), 400_000)},
	}
	for _, name := range references {
		tok := open(b, name)
		for _, s := range samples {
			b.Run(name+"/"+s.name, func(b *testing.B) {
				b.SetBytes(int64(len(s.text)))
				for b.Loop() {
					tok.Count(s.text)
				}
			})
		}
		b.Run(name+"/cut", func(b *testing.B) { // to a quarter of 20 kB
			text := samples[3].text[:20_000]
			n := tok.Count(text) / 4
			b.SetBytes(int64(len(text) / 4))
			for b.Loop() {
				tok.Cut(text, n)
			}
		})
	}
}

// BenchmarkOpen measures reading the files.
func BenchmarkOpen(b *testing.B) {
	for _, name := range references {
		path := open(b, name).Path()
		b.Run(name, func(b *testing.B) {
			info, err := os.Stat(path)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(info.Size())
			b.ReportAllocs()
			for b.Loop() {
				if _, err := token.Open(path); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
