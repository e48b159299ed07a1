package chart

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestTicks(t *testing.T) {
	f := func(a Axis, lo, hi float64, round bool, want string) {
		t.Helper()
		var texts []string
		for _, tick := range ticksOf(a, scaleOf(a, []float64{lo, hi}, round)) {
			texts = append(texts, tick.Text)
		}
		if got := strings.Join(texts, ", "); got != want {
			t.Errorf("%+v from %v to %v: %s, want %s", a, lo, hi, got, want)
		}
	}
	f(Axis{Unit: "ms", Zero: true}, 3, 87, true, "0, 20 ms, 40 ms, 60 ms, 80 ms, 100 ms")
	f(Axis{Unit: "ms", Zero: true}, 0, 2300, true, "0, 0.5 s, 1 s, 1.5 s, 2 s, 2.5 s")
	f(Axis{Unit: "s"}, 0, 915, false, "0, 5 min, 10 min, 15 min")
	f(Axis{Unit: "s"}, 0, 100_000, false, "0, 6 h, 12 h, 18 h, 24 h")
	f(Axis{Unit: "tokens/s", Zero: true}, 0, 24_300, true, "0, 5k, 10k, 15k, 20k, 25k")
	f(Axis{Unit: "ms", Log: true}, 61, 4900, false, "50 ms, 100 ms, 200 ms, 500 ms, 1 s, 2 s, 5 s")
	f(Axis{Unit: "tokens", Log: true}, 12, 90_000, false, "10, 100, 1k, 10k, 100k")
	f(Axis{Unit: "%"}, -12, 31, true, "−20 %, −10 %, 0 %, 10 %, 20 %, 30 %, 40 %")
	f(Axis{Names: []string{"a", "b"}}, 0, 1, true, "a, b")
	f(Axis{Unit: "tokens/s per user"}, 200.04, 200.12, false, "200.04, 200.06, 200.08, 200.1, 200.12")
	f(Axis{Unit: "requests", Whole: true, Zero: true}, 0, 2, true, "0, 1, 2")
	f(Axis{Ticks: []float64{1, 2, 32, 64}}, 1, 64, false, "2, 32, 64") // 1 would touch 2
	f(Axis{Log: true, Ticks: []float64{4, 16, 32, 64}}, 4, 64, false, "4, 16, 32, 64")
	f(Axis{}, math.Inf(1), math.Inf(-1), true, "0, 0.2, 0.4, 0.6, 0.8, 1")
}

// On every scale the values and the ticks lie within the scale, and at and value are inverse functions.
func TestScales(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 9))
	for range 20_000 {
		lo := math.Exp(40*random.Float64()-20) * float64(1-2*random.IntN(2))
		hi := lo + math.Exp(40*random.Float64()-20)
		a := Axis{Log: random.IntN(2) == 0 && lo > 0, Unit: []string{"", "ms", "s", "%"}[random.IntN(4)]}
		a.Zero, a.Whole = random.IntN(2) == 0, random.IntN(2) == 0
		s := scaleOf(a, []float64{lo, hi}, random.IntN(2) == 0)
		if n := len(s.ticks); n > 40 {
			t.Fatalf("%v to %v: %d ticks", lo, hi, n)
		}
		for _, v := range append([]float64{lo, hi}, s.ticks...) {
			at := s.at(v)
			if !(at > -2 && at < 1002) {
				t.Fatalf("%+v: %v to %v on %+v: %v is at %v", a, lo, hi, s, v, at)
			}
			if back := s.value(at); math.Abs(back-v) > 1e-6*(s.hi-s.lo) {
				t.Fatalf("%+v: %v comes back as %v", s, v, back)
			}
		}
	}
}

// For any values, a histogram counts each value once, and an ECDF never falls and ends at 100 %.
func TestHistogramAndECDF(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		values := make([]float64, random.IntN(300))
		whole := random.IntN(2) == 0
		for i := range values {
			values[i] = math.Exp(random.NormFloat64() * 4)
			if whole {
				values[i] = math.Trunc(values[i])
			}
		}
		if random.IntN(4) == 0 {
			values = append(values, math.NaN(), math.Inf(1))
		}
		n := Distribution(values).N()
		h := Histogram("", Axis{Unit: "ms", Log: random.IntN(2) == 0}, values)
		sum := 0.0
		for _, s := range h.Series {
			if len(s.X) != len(s.Y)+1 {
				t.Fatalf("%d edges of %d bars", len(s.X), len(s.Y))
			}
			for i, share := range s.Y {
				sum += share
				if !(s.X[i] < s.X[i+1]) {
					t.Fatalf("edges do not rise: %v", s.X)
				}
			}
		}
		if n > 0 && math.Abs(sum-100) > 1e-9 || n == 0 && sum != 0 {
			t.Fatalf("%d values make %v %%", n, sum)
		}
		line := ECDF("", Axis{}, Series{Y: values}).Series[0]
		for i := range line.Y {
			if i > 0 && (line.Y[i] < line.Y[i-1] || line.X[i] < line.X[i-1]) {
				t.Fatalf("it falls: %v", line)
			}
		}
		if n > 0 && line.Y[len(line.Y)-1] != 100 {
			t.Fatalf("it ends at %v", line.Y[len(line.Y)-1])
		}
	}
}

// The points of a cloud keep the precision of a Float32, and each point is in one cell.
func TestCloudPoints(t *testing.T) {
	c := Plot{X: Axis{Log: true}, Series: []Series{{Kind: Cloud, X: []float64{1, 10, -1, 1000}, Y: []float64{0.1, 2, 3, math.Pi}}}}.Draw("p")
	b, err := base64.RawURLEncoding.DecodeString(c.Cloud[1].(string))
	if err != nil {
		t.Fatal(err)
	}
	var got []float32
	for i := 0; i < len(b); i += 4 {
		got = append(got, math.Float32frombits(binary.LittleEndian.Uint32(b[i:])))
	}
	if want := []float32{1, 10, 1000, 0.1, 2, math.Pi}; fmt.Sprint(got) != fmt.Sprint(want) || c.Cloud[3] != 3 {
		t.Errorf("%v, want %v", got, want)
	}
	cells := 0
	for _, p := range c.Paths {
		cells += strings.Count(p.D, "z")
	}
	if cells != 3 {
		t.Errorf("%d cells of 3 points", cells)
	}
}

// Names of points cover neither a point nor each other, whatever the points.
func TestNamesOfPoints(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 2_000 {
		points := Series{Kind: Points}
		for i := range 1 + random.IntN(12) {
			points.Add(10*random.Float64(), 10*random.Float64())
			points.Text = append(points.Text, strings.Repeat("c", 1+i))
		}
		c := Plot{Series: []Series{points}}.Draw("p")
		var boxes []box
		for _, d := range c.Dots {
			left, right := float64(d.X)+9, float64(d.X)+dotLetter*float64(len(d.Text))
			if strings.Contains(d.Class, "left") {
				left, right = float64(d.X)-dotLetter*float64(len(d.Text)), float64(d.X)-9
			}
			bottom, top := float64(d.Y)+21, float64(d.Y)+EndRoom
			if strings.Contains(d.Class, "under") {
				bottom, top = float64(d.Y)-EndRoom, float64(d.Y)-21
			}
			boxes = append(boxes, box{left, right, bottom, top})
		}
		for i, b := range boxes {
			if b.left < 0 || b.right > 1000 {
				t.Fatalf("%+v: the name reaches over the edge", b)
			}
			for _, other := range boxes[:i] {
				if b.overlaps(other) {
					t.Fatalf("%+v and %+v overlap", b, other)
				}
			}
		}
		if len(boxes) == 0 {
			t.Fatalf("%v: no point has its name", points.X)
		}
	}
}

func TestColumnsWithoutValues(t *testing.T) {
	table := Table{Columns: []Column{{Name: "run"}, {Name: "GPUs"}, {Name: "ok"}, {}}, Rows: [][]string{{"", "–", "1", ""}, {"", "", "–", ""}}}
	got := table.Known()
	if len(got.Columns) != 2 || got.Columns[1].Name != "ok" || len(got.Rows[1]) != 2 || got.Rows[0][1] != "1" {
		t.Errorf("%+v: want run and ok", got)
	}
	if len(table.Rows[0]) != 4 {
		t.Error("the table itself has changed")
	}
}
