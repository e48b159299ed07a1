package export

import (
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"

	"replayd/internal/result"
)

// page returns a metrics page whose engine metrics were read age before the page.
func page(age time.Duration, tokens, running float64) []*dto.MetricFamily {
	labels := []*dto.LabelPair{{Name: proto.String("replica"), Value: proto.String("r")}, {Name: proto.String("target"), Value: proto.String("t")}}
	gauge := func(name string, v float64) *dto.MetricFamily {
		return &dto.MetricFamily{
			Name: proto.String(name), Type: dto.MetricType_GAUGE.Enum(),
			Metric: []*dto.Metric{{Label: labels, Gauge: &dto.Gauge{Value: &v}}},
		}
	}
	return []*dto.MetricFamily{
		gauge("replayd_engine_age_seconds", age.Seconds()), gauge("replayd_engine_requests_running", running), gauge("go_goroutines", 5),
		{
			Name: proto.String("replayd_engine_generation_tokens_total"), Type: dto.MetricType_COUNTER.Enum(),
			Metric: []*dto.Metric{{Label: labels, Counter: &dto.Counter{Value: &tokens}}},
		},
	}
}

// Rates use the times of readings, not of pages. A page without a new reading adds no sample.
func TestSamplerCountsFromReadings(t *testing.T) {
	s := NewSampler()
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s.Take(begin.Add(2*time.Second), page(2*time.Second, 0, 4))
	s.Take(begin.Add(3*time.Second), page(3*time.Second, 0, 4))
	s.Take(begin.Add(5500*time.Millisecond), page(500*time.Millisecond, 1000, 8))
	all := s.Series()
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
	const looks = 5 * mostSamples
	for i := range looks {
		s.Take(begin.Add(time.Duration(i)*time.Second), page(0, float64(i), 0))
	}
	b := s.Series()[0]
	if n := len(b.Times); n > mostSamples || n < mostSamples/4 {
		t.Errorf("want at most %d samples, got %d", mostSamples, n)
	}
	if last := b.Times[len(b.Times)-1].Sub(begin); b.Times[0].Sub(begin) > 16*time.Second || last < (looks-16)*time.Second {
		t.Errorf("want it covered from end to end, got %v to %v", b.Times[0].Sub(begin), last)
	}
	if f, ok := b.Statistics(); !ok || f.Avg != 1 {
		t.Errorf("want 1/s, got %+v", f)
	}
}
