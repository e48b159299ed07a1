package scrape

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
)

// FuzzRead checks that replayd's page stays valid and bounded for any engine page.
func FuzzRead(f *testing.F) {
	pages, _ := filepath.Glob("testdata/pages/*.txt")
	for _, path := range pages {
		body, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body[:min(len(body), 3<<10)], contentType(path))
	}
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		for _, role := range []*Role{Engines, Routers} {
			readsWell(t, role, body, contentType)
		}
	})
}

func readsWell(t *testing.T, role *Role, body []byte, contentType string) {
	v := vocabularyOf(t, role, Row{Family: "x", Quantity: "ttft_seconds"}, Row{Family: "y", Quantity: "requests_waiting"})
	wanted, told := v.Recognizer()
	p, _ := Parse(body, contentType, wanted)
	if p == nil {
		return
	}
	r := v.Read(p, told())
	if len(r.Figures) > len(role.quantities)*maxRanks {
		t.Fatalf("want at most %d figures, got %d", len(role.quantities)*maxRanks, len(r.Figures))
	}
	for _, f := range r.Figures {
		if upper, counts := bucketsOf(f.Buckets); len(upper) > maxBuckets || !slices.IsSorted(upper) || !slices.IsSorted(counts) {
			t.Fatalf("want sorted buckets, at most %d, got %v with %v", maxBuckets, upper, counts)
		}
	}
	registry := prometheus.NewRegistry()
	c := NewCollector(registry, role)
	a := address{"t", "r"}
	c.use(a, nil, 0).state = state{scraped: true, series: role.series(a, new(places).show(r, time.Now(), nil))}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []expfmt.Format{expfmt.NewFormat(expfmt.TypeTextPlain), expfmt.NewFormat(expfmt.TypeOpenMetrics)} {
		var page bytes.Buffer
		encoder := expfmt.NewEncoder(&page, format)
		for _, family := range families {
			if err := encoder.Encode(family); err != nil {
				t.Fatal(err)
			}
		}
		if closer, ok := encoder.(expfmt.Closer); ok {
			if err := closer.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Parse(page.Bytes(), string(format), func(string) bool { return true }); err != nil {
			t.Fatalf("%s: %v", format, err)
		}
	}
}
