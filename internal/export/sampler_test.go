package export

import (
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"replayd/internal/result"
	"replayd/internal/scrape"
)

// values returns what an engine has reported at an instant.
func values(at time.Time, tokens, running float64) []scrape.Values {
	labels := []*dto.LabelPair{scrape.Pair("address", "r"), scrape.Pair("target", "t")}
	gauge := &scrape.Family{Name: "replayd_engine_requests_running", Kind: scrape.Gauge}
	counter := &scrape.Family{Name: "replayd_engine_generation_tokens_total", Kind: scrape.Counter}
	return []scrape.Values{{Target: "t", Up: true, At: at, Series: []*scrape.Series{
		{Family: gauge, Labels: labels, Value: running}, {Family: counter, Labels: labels, Value: tokens},
	}}}
}

// Rates use the times of readings. Without a new reading there is no sample.
func TestSamplerCountsFromReadings(t *testing.T) {
	s := NewSampler()
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s.Take(values(begin, 0, 4))
	s.Take(values(begin, 0, 4))
	s.Take(values(begin.Add(5*time.Second), 1000, 8))
	all := s.Series(begin, begin.Add(5*time.Second))
	if len(all) != 2 || all[0].Name != "replayd_engine_generation_tokens_total" || all[0].Unit != "tokens" || all[1].Kind != result.Gauge {
		t.Fatalf("want the counter and the gauge of the engine, got %+v", all)
	}
	if f, ok := all[0].Statistics(); !ok || f.Avg != 200 {
		t.Errorf("want 1000 tokens in the 5 s between two readings, 200/s, got %+v", f)
	}
	if f, ok := all[1].Statistics(); !ok || f.Of.N() != 2 || f.Of.Mean != 6 {
		t.Errorf("want two readings, 6 at the mean, got %+v", f.Of)
	}
}

// The samples cover a long run from end to end.
func TestSamplerIsBounded(t *testing.T) {
	s := NewSampler()
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const looks = 5 * maxSamples
	for i := range looks {
		s.Take(values(begin.Add(time.Duration(i)*time.Second), float64(i), 0))
	}
	b := s.Series(time.Time{}, time.Time{})[0]
	if n := len(b.Times); n > maxSamples || n < maxSamples/4 {
		t.Errorf("want at most %d samples, got %d", maxSamples, n)
	}
	if last := b.Times[len(b.Times)-1].Sub(begin); !b.Times[0].Equal(begin) || last < (looks-16)*time.Second {
		t.Errorf("want it covered from end to end, got %v to %v", b.Times[0].Sub(begin), last)
	}
	if f, ok := b.Statistics(); !ok || f.Avg != 1 {
		t.Errorf("want 1/s, got %+v", f)
	}
}

// The figures of a run are those from its first send to its last end: the page read before it is its base, and the page
// read after it shows what it did in its last moment. The time that these readings took is not the run's.
func TestSamplerOfARun(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }
	type reading struct {
		ms              int
		tokens, running float64
	}
	for _, c := range []struct {
		name             string
		taken, closing   []reading
		last             int // ms; the first send is at 0
		total, rate      float64
		slowest, fastest float64
		running          float64
	}{
		{
			"shorter than a reading",
			[]reading{{-600, 100, 1}},
			[]reading{{310, 400, 0}},
			200, 300, 1500, 1500, 1500, 1,
		},
		{
			"over several",
			[]reading{{-600, 100, 0}, {-100, 100, 1}, {1000, 1000, 4}, {2000, 1900, 2}, {2300, 2590, 3}},
			[]reading{{2600, 2599, 0}, {2800, 2600, 0}},
			2500, 2500, 1000, 900, 1400, 3,
		},
		{
			"the last page did not come",
			[]reading{{-600, 100, 1}, {1000, 1100, 4}, {2000, 1900, 6}},
			nil,
			2500, 1800, 900, 800, 1000, 5,
		},
		{
			"the first page did not come",
			[]reading{{900, 1000, 4}, {1900, 1900, 6}},
			[]reading{{4000, 2500, 0}},
			3900, 1500, 500, 300, 900, 5,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := NewSampler()
			for _, r := range c.taken {
				s.Take(values(at(r.ms), r.tokens, r.running))
			}
			for _, r := range c.closing {
				s.End(values(at(r.ms), r.tokens, r.running))
			}
			all := s.Series(begin, at(c.last))
			f, ok := all[0].Statistics()
			if !ok || f.Total != c.total || f.Avg != c.rate || f.Of.Min() != c.slowest || f.Of.Max() != c.fastest {
				t.Errorf("want %v tokens, %v/s, %v to %v/s, got %v, %v, %v to %v",
					c.total, c.rate, c.slowest, c.fastest, f.Total, f.Avg, f.Of.Min(), f.Of.Max())
			}
			if g, ok := all[1].Statistics(); !ok || g.Avg != c.running {
				t.Errorf("want %v running, got %v of %v", c.running, g.Avg, all[1].Values)
			}
		})
	}
}

// A counter that an engine shows only from its first request on was 0 on a whole page without it.
func TestSamplerOfACounterThatIsBornLate(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	page := func(ms int, up bool, figures int) []scrape.Values {
		all := values(begin.Add(time.Duration(ms)*time.Millisecond), 600, 1)
		all[0].Up, all[0].Series = up, all[0].Series[:figures]
		return all
	}
	for _, c := range []struct {
		name  string
		first []scrape.Values
		want  float64
	}{
		{"whole", page(-100, true, 1), 600},
		{"a part of a page", page(-100, false, 1), 0},
		{"no page", nil, 0},
	} {
		s := NewSampler()
		s.Take(c.first)
		s.End(page(3100, true, 2))
		all := s.Series(begin, begin.Add(3*time.Second))
		if f, _ := all[0].Statistics(); f.Total != c.want || f.Avg != c.want/3 {
			t.Errorf("%s: want %v tokens in 3 s, got %+v of %+v", c.name, c.want, f, all[0])
		}
	}
}
