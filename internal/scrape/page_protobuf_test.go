package scrape

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/textparse"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

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

// observed returns a histogram with one series per key of values, as client_golang gathers it.
func observed(t testing.TB, o prometheus.HistogramOpts, values map[string][]float64) *dto.MetricFamily {
	t.Helper()
	r := prometheus.NewRegistry()
	h := prometheus.NewHistogramVec(o, []string{"engine"})
	r.MustRegister(h)
	for engine, list := range values {
		for _, v := range list {
			h.WithLabelValues(engine).Observe(v)
		}
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families[0]
}

func TestParseHistogramOfBothKinds(t *testing.T) {
	f := observed(t, prometheus.HistogramOpts{Name: "h", Buckets: []float64{1, 10}, NativeHistogramBucketFactor: 2}, map[string][]float64{"0": {0.5, 3, 100}, "1": {2}})
	body := encoded(t, protobuf, f)
	p, err := Parse(body, protobuf, anyName)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		// Factor 2 gives schema 0: the bucket bounds are powers of two.
		`h_bucket{engine="0", le="+Inf"} 3`, `h_bucket{engine="0", le="1.0"} 1`, `h_bucket{engine="0", le="10.0"} 2`,
		`h_bucket{engine="1", le="+Inf"} 1`, `h_bucket{engine="1", le="1.0"} 0`, `h_bucket{engine="1", le="10.0"} 1`,
		`h_count{engine="0"} 3`, `h_count{engine="1"} 1`, `h_sum{engine="0"} 103.5`, `h_sum{engine="1"} 2`,
		`h{engine="0"} native {count:3, sum:103.5, (0.25,0.5]:1, (2,4]:1, (64,128]:1}`,
		`h{engine="1"} native {count:1, sum:2, (1,2]:1}`,
	}
	if diff := cmp.Diff(want, written(p)); diff != "" {
		t.Error(diff)
	}
	if p.Total != len(want) {
		t.Errorf("want %d samples in all, got %d", len(want), p.Total)
	}
	p, err = Parse(body, protobuf, func(name string) bool { return name == "h" })
	if err != nil || len(p.Samples) != 1 || len(p.Samples["h"]) != 2 || p.Total != len(want) {
		t.Errorf("want the two native ones, got %v and error %v", written(p), err)
	}
}

// TestParseProtobufCut truncates a page at every byte: families before the cut are whole, the family at the cut is
// dropped.
func TestParseProtobufCut(t *testing.T) {
	one := encoded(t, protobuf, observed(t, prometheus.HistogramOpts{Name: "h", Buckets: prometheus.DefBuckets, NativeHistogramBucketFactor: 1.1}, map[string][]float64{"0": {1}, "1": {2}}))
	two := encoded(t, protobuf, observed(t, prometheus.HistogramOpts{Name: "i"}, map[string][]float64{"0": {1}, "1": {2}}))
	body := slices.Concat(one, two)
	for n := len(one) + 1; n < len(body); n++ {
		p, err := Parse(body[:n], protobuf, anyName)
		if reasonOf(t, err) != ReasonParse || !strings.HasPrefix(err.Error(), "family 2: the page ends in it") {
			t.Fatalf("cut at %d: want an error of family 2, got %v", n, err)
		}
		if len(p.Samples["h"]) != 2 || len(p.Samples["h_bucket"]) != 2*12 || len(p.Samples) != 4 {
			t.Fatalf("cut at %d: want all of h alone, got %d names", n, len(p.Samples))
		}
	}
}

// TestParseProtobufHostile has what takes the parser or the memory down without the bounds.
func TestParseProtobufHostile(t *testing.T) {
	native := func(deltas int, spanLength uint32) *dto.Metric {
		return &dto.Metric{Histogram: &dto.Histogram{
			SampleCount: proto.Uint64(uint64(deltas)), Schema: proto.Int32(0),
			PositiveSpan: []*dto.BucketSpan{{Offset: proto.Int32(0), Length: proto.Uint32(spanLength)}}, PositiveDelta: append([]int64{1}, make([]int64, deltas-1)...),
		}}
	}
	histogram := func(metrics ...*dto.Metric) []byte {
		return encoded(t, protobuf, &dto.MetricFamily{Name: proto.String("h"), Type: dto.MetricType_HISTOGRAM.Enum(), Metric: metrics})
	}
	labeled := func(n, size int) *dto.Metric {
		m := &dto.Metric{Gauge: &dto.Gauge{Value: proto.Float64(1)}}
		for i := range n {
			m.Label = append(m.Label, &dto.LabelPair{Name: proto.String("l" + strconv.Itoa(i)), Value: proto.String(strings.Repeat("x", size))})
		}
		return m
	}
	gauge := func(metrics ...*dto.Metric) []byte {
		return encoded(t, protobuf, &dto.MetricFamily{Name: proto.String("g"), Type: dto.MetricType_GAUGE.Enum(), Metric: metrics})
	}
	// One metric with 60 KB of labels and 2,000 buckets of two bytes: 64 KB expand to 120 MB of labels.
	wide := labeled(60, 1000)
	wide.Gauge, wide.Histogram = nil, &dto.Histogram{Bucket: slices.Repeat([]*dto.Bucket{{}}, 2_000)}
	// 100,000 empty buckets in 200 KB.
	raw := protowire.AppendBytes(protowire.AppendTag(nil, 7, protowire.BytesType), bytes.Repeat([]byte{3<<3 | 2, 0}, 100_000))
	many := slices.Concat([]byte{1<<3 | 2, 1, 'h', 3 << 3, 4}, protowire.AppendBytes(protowire.AppendTag(nil, 4, protowire.BytesType), raw))
	many = append(binary.AppendUvarint(nil, uint64(len(many))), many...)
	for _, c := range []struct {
		name   string
		body   []byte
		reason Reason
		kept   int
	}{
		{"a second native histogram with too few buckets", histogram(native(2, 2), native(2, 9)), "", 0},
		{"a second native histogram with too many buckets", histogram(native(2, 2), native(2, 1)), "", 0},
		{"a wrong first native histogram", histogram(native(2, 9), native(2, 2)), ReasonParse, 0},
		{"a native histogram with a false count", histogram(native(2, 2), &dto.Metric{Histogram: &dto.Histogram{
			SampleCount: proto.Uint64(1), PositiveSpan: []*dto.BucketSpan{{Length: proto.Uint32(1)}}, PositiveDelta: []int64{5},
		}}), "", 0},
		{
			"a native histogram of an unknown schema",
			histogram(&dto.Metric{Histogram: &dto.Histogram{Schema: proto.Int32(99), ZeroThreshold: proto.Float64(1)}}), "", 0,
		},
		{"a native histogram of many buckets", histogram(native(2, 2), native(maxNativeBuckets+1, maxNativeBuckets+1)), "", 0},
		{"16 MB of empty families", make([]byte, maxBodyBytes), ReasonTooLarge, 0},
		{"many families without metrics", bytes.Repeat([]byte{2, 3 << 3, 0}, maxBodyBytes/3), ReasonTooLarge, 0},
		{"many metrics", append(binary.AppendUvarint(nil, 4<<20), bytes.Repeat([]byte{4<<3 | 2, 0}, 2<<20)...), ReasonTooLarge, 0},
		{"buckets of two bytes", many, "", 0},
		{"labels for each bucket", histogram(wide), ReasonTooLarge, 0},
		{"100,000 labels", gauge(labeled(1, 1), labeled(100_000, 1)), "", 0},
		{"64 labels", gauge(labeled(maxLabels, 1)), "", 1},
		{"65 labels", gauge(labeled(maxLabels+1, 1)), "", 0},
		{"a value of 1 KiB", gauge(labeled(1, maxValueBytes)), "", 1},
		{"a value past 1 KiB", gauge(labeled(1, maxValueBytes+1)), "", 0},
		{"a value of 10 MB", gauge(labeled(1, 10<<20), labeled(1, 1)), "", 0},
		{"a label twice", gauge(&dto.Metric{
			Gauge: &dto.Gauge{},
			Label: []*dto.LabelPair{{Name: proto.String("a")}, {Name: proto.String("a")}},
		}), "", 0},
		{"an unknown kind", encoded(t, protobuf,
			&dto.MetricFamily{
				Name: proto.String("x"), Type: dto.MetricType(9).Enum(),
				Metric: []*dto.Metric{{}},
			}), ReasonParse, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			p, err := Parse(c.body, protobuf, anyName)
			runtime.ReadMemStats(&after)
			if reasonOf(t, err) != c.reason {
				t.Errorf("want reason %q, got %v", c.reason, err)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 256<<20 {
				t.Errorf("want at most 256 MiB allocated in all, got %d", used)
			}
			if c.reason == ReasonTooLarge {
				if p != nil {
					t.Error("want no page")
				}
				return
			}
			if len(written(p)) != c.kept {
				t.Errorf("want %d kept, got %d of %d", c.kept, len(written(p)), p.Total)
			}
		})
	}
}

func TestParserPanics(t *testing.T) {
	if _, _, err := nextEntry(struct{ textparse.Parser }{}); err == nil || !strings.Contains(err.Error(), "nil pointer") {
		t.Errorf("want the panic as an error, got %v", err)
	}
}

// TestParseAgainstExpfmt parses random pages in all three formats and compares the samples with those that
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
		for _, contentType := range []string{text004, openMetrics, protobuf} {
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
