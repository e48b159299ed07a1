package scrape

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"google.golang.org/protobuf/proto"
)

// randomFamilies returns a random page of counters, gauges, histograms and summaries.
func randomFamilies(r *rand.Rand) (families []*dto.MetricFamily) {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	value := func() *float64 {
		return proto.Float64([]float64{0, 1, -2.5, 1e-9, 1e300, math.Inf(1), math.NaN(), r.Float64(), float64(r.Uint64())}[r.IntN(9)])
	}
	for i := range r.IntN(6) {
		kind := []dto.MetricType{dto.MetricType_COUNTER, dto.MetricType_GAUGE, dto.MetricType_HISTOGRAM, dto.MetricType_SUMMARY}[r.IntN(4)]
		f := &dto.MetricFamily{Name: proto.String(fmt.Sprintf("%s%d", pick("vllm:x", "a_b", "Z"), i)), Type: kind.Enum()}
		if r.IntN(2) == 0 {
			f.Help = proto.String(pick("what it is", `with \ and "quotes"`, "two\nlines", "é"))
		}
		if kind == dto.MetricType_COUNTER {
			*f.Name += "_total" // OpenMetrics requires the suffix
		}
		for j := range 1 + r.IntN(4) {
			m := &dto.Metric{Label: []*dto.LabelPair{{Name: proto.String("n"), Value: proto.String(fmt.Sprint(j))}}}
			for _, name := range []string{"engine", "A", "model_name"}[:r.IntN(4)] {
				m.Label = append(m.Label, &dto.LabelPair{Name: proto.String(name), Value: proto.String(pick("x", "a b", `"q"`, `\`, "l\nl", "é", "{}", ",", "1", "#"))})
			}
			count := uint64(r.IntN(1000))
			switch kind {
			case dto.MetricType_COUNTER:
				m.Counter = &dto.Counter{Value: value()}
			case dto.MetricType_GAUGE:
				m.Gauge = &dto.Gauge{Value: value()}
			case dto.MetricType_SUMMARY:
				m.Summary = &dto.Summary{SampleCount: &count, SampleSum: value(), Quantile: []*dto.Quantile{{Quantile: proto.Float64(0.5), Value: value()}, {Quantile: proto.Float64(1), Value: value()}}}
			default:
				m.Histogram = &dto.Histogram{SampleCount: &count, SampleSum: value()}
				for b := range r.IntN(5) {
					m.Histogram.Bucket = append(m.Histogram.Bucket, &dto.Bucket{UpperBound: proto.Float64(float64(b) * 0.5), CumulativeCount: proto.Uint64(count * uint64(b) / 10)})
				}
				m.Histogram.Bucket = append(m.Histogram.Bucket, &dto.Bucket{UpperBound: proto.Float64(math.Inf(1)), CumulativeCount: &count})
			}
			f.Metric = append(f.Metric, m)
		}
		families = append(families, f)
	}
	return families
}

// flattened formats families in the format of written.
func flattened(families map[string]*dto.MetricFamily) (lines []string) {
	for name, f := range families {
		for _, m := range f.Metric {
			line := func(suffix string, value float64, more ...string) {
				b := labels.NewScratchBuilder(0)
				for _, l := range m.Label {
					b.Add(l.GetName(), l.GetValue())
				}
				for i := 0; i < len(more); i += 2 {
					b.Add(more[i], more[i+1])
				}
				b.Sort()
				lines = append(lines, fmt.Sprintf("%s%s%s %v", name, suffix, b.Labels(), value))
			}
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				line("", m.Counter.GetValue())
			case dto.MetricType_GAUGE:
				line("", m.Gauge.GetValue())
			case dto.MetricType_UNTYPED:
				line("", m.Untyped.GetValue())
			case dto.MetricType_SUMMARY:
				for _, q := range m.Summary.Quantile {
					line("", q.GetValue(), "quantile", spelled(q.GetQuantile()))
				}
				line("_sum", m.Summary.GetSampleSum())
				line("_count", float64(m.Summary.GetSampleCount()))
			default:
				for _, b := range m.Histogram.Bucket {
					line("_bucket", float64(b.GetCumulativeCount()), "le", spelled(b.GetUpperBound()))
				}
				line("_sum", m.Histogram.GetSampleSum())
				line("_count", float64(m.Histogram.GetSampleCount()))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// spelled formats a bucket bound or a quantile as OpenMetrics does: always with a decimal point.
func spelled(f float64) string {
	s := fmt.Sprint(f)
	if !math.IsInf(f, 0) && !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

// encoded encodes families in the given format.
func encoded(t testing.TB, format expfmt.Format, families ...*dto.MetricFamily) []byte {
	t.Helper()
	var b bytes.Buffer
	e := expfmt.NewEncoder(&b, format)
	for _, f := range families {
		if err := e.Encode(f); err != nil {
			t.Fatal(err)
		}
	}
	if c, ok := e.(expfmt.Closer); ok {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// TestParseAgainstExpfmt parses random pages in both formats and compares the samples with those that
// prometheus/common parses from the text. Its parser returns whole families, so they are flattened first.
func TestParseAgainstExpfmt(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		families := randomFamilies(random)
		text := encoded(t, text004, families...)
		parser := expfmt.NewTextParser(model.LegacyValidation)
		read, err := parser.TextToMetricFamilies(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		want := flattened(read)
		for _, contentType := range []string{text004, openMetrics} {
			body := text
			if contentType != text004 {
				body = encoded(t, expfmt.Format(contentType), families...)
			}
			p, err := Parse(body, contentType, anyName)
			if err != nil {
				t.Fatalf("%v\n%s", err, body)
			}
			if diff := cmp.Diff(want, written(p)); diff != "" {
				t.Fatalf("%s: - expfmt, + Parse:\n%s\n%s", contentType, diff, body)
			}
			if p.Total != len(want) {
				t.Fatalf("%s: want %d samples, got %d", contentType, len(want), p.Total)
			}
		}
	}
}
