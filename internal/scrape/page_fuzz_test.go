package scrape

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
)

// FuzzParse parses arbitrary bytes under any content type. It must not panic or exceed a bound, each error has a
// reason, and a valid text page gives the same result with carriage returns and with an empty line at its end.
func FuzzParse(f *testing.F) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 8 {
		families := randomFamilies(random)
		for _, contentType := range []string{text004, openMetrics} {
			body := encoded(f, expfmt.Format(contentType), families...)
			f.Add(body, contentType)
			f.Add(body[:len(body)/2], contentType)
		}
	}
	recorded, err := filepath.Glob(filepath.Join("testdata", "pages", "*.txt"))
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range recorded {
		body, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body, text004)
	}
	for _, body := range []string{
		"", "# EOF", "a 1", "a 1\n", "{\"a\":1}", "<html>", "[1]", "\x00", "a{b=\"\n\"} 1\n", "# HELP \"a\nb\" c\na 1\n", "#\x00\n", "a\x00 1\n",
		"a 1\n# EOF\n# EOF\n", "a 1 # {x=\"y\"} 1\n# EOF\n", "a  1  \n", "\xff\xff", "a{le=\"1\"} NaN 1\n", "process_start_time_seconds 1e300\n",
	} {
		f.Add([]byte(body), "")
		f.Add([]byte(body), openMetrics)
		f.Add([]byte(body), protobuf)
	}
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		given := bytes.Clone(body)
		p, err := Parse(body, contentType, anyName)
		if !bytes.Equal(given, body) {
			t.Fatal("the body has changed")
		}
		reason := reasonOf(t, err)
		if err != nil && (!slices.Contains(reasons[:], reason) || len(err.Error()) > 1000) {
			t.Fatalf("reason %q, %d bytes: %v", reason, len(err.Error()), err)
		}
		if (p == nil) != (reason != "" && reason != ReasonParse) {
			t.Fatalf("a page is %v with reason %q", p, reason)
		}
		if p == nil {
			return
		}
		kept := 0
		for name, list := range p.Samples {
			for _, s := range list {
				if kept++; hostile(s.Labels) || s.Labels.Has("__name__") {
					t.Fatalf("%s%v is kept", name, s)
				}
			}
		}
		if kept > p.Total || p.Total > maxSamples || kept > maxKept {
			t.Fatalf("%d kept of %d", kept, p.Total)
		}
		if err != nil {
			return
		}
		variants := [][]byte{append(bytes.Clone(body), '\n')}
		if !bytes.Contains(body, []byte("\r")) {
			variants = append(variants, bytes.ReplaceAll(body, []byte("\n"), []byte("\r\n")))
		}
		for _, v := range variants {
			again, err := Parse(v, contentType, anyName)
			if err != nil {
				t.Fatalf("%q is read, %q is not: %v", body, v, err)
			}
			if diff := cmp.Diff(written(p), written(again)); diff != "" || p.Total != again.Total {
				t.Fatalf("%q and %q differ:\n%s", body, v, diff)
			}
		}
	})
}
