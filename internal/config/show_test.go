package config

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	commoncfg "github.com/prometheus/common/config"
	"go.yaml.in/yaml/v3"

	"replayd/internal/fault"
	"replayd/internal/scalar"
	"replayd/internal/schedule"
	"replayd/internal/scrape"
	"replayd/internal/secret"
)

func shown(t *testing.T, c Config) string {
	t.Helper()
	text, err := c.Show()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The golden file has every key once, in the order and spelling of docs/reference/configuration.md.
func TestShow(t *testing.T) {
	c, err := load(t, "testdata/good.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got := shown(t, c)
	const golden = "testdata/good.shown"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// The order of the keys is that of the tables in docs/reference/configuration.md.
func TestShowInTheOrderOfTheReference(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	at := ""
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			continue
		}
		switch key := strings.TrimSpace(cells[1]); {
		case strings.HasPrefix(key, "key of a "):
			at = map[string]string{
				"target": "targets[0].", "row": "targets[0].metrics.map[0].", "workload": "workloads[0].", "stage": "workloads[0].stages[0].", "source of GPU figures": "gpus[0].", "comparison": "comparisons[0].",
			}[strings.TrimPrefix(key, "key of a ")]
		case strings.HasPrefix(key, "`"):
			want = append(want, at+strings.Trim(key, "`"))
		}
	}
	c := Default()
	c.Targets, c.Workloads, c.GPUs = []Target{DefaultTarget()}, []Workload{DefaultWorkload()}, []GPU{DefaultGPU()}
	c.Comparisons = []Comparison{DefaultComparison()}
	c.Targets[0].Metrics.Map, c.Workloads[0].Stages = []scrape.Row{{}}, []schedule.Stage{{}}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(shown(t, c)), &doc); err != nil {
		t.Fatal(err)
	}
	var got []string
	var walk func(n *yaml.Node, at string)
	walk = func(n *yaml.Node, at string) {
		switch {
		case at == "targets[0].router.map": // documented as metrics.map
		case n.Kind == yaml.MappingNode && !slices.Contains(want, at):
			for i := 0; i < len(n.Content); i += 2 {
				walk(n.Content[i+1], fault.Join(at, n.Content[i].Value))
			}
		case n.Kind == yaml.SequenceNode && !slices.Contains(want, at):
			walk(n.Content[0], at+"[0]")
		default:
			got = append(got, at)
		}
	}
	walk(doc.Content[0], "")
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("keys: -document +shown\n%s", d)
	}
}

// readBack decodes a text without Load's checks.
func readBack(t *testing.T, text string) Config {
	t.Helper()
	d, err := readDocument([]byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	c, faults := decode(d.keys)
	if len(faults) > 0 {
		t.Fatalf("%v\n%s", c.Refuse(faults), text)
	}
	return c
}

// sameConfig compares everything that a file can hold; {} equals an absent section.
func sameConfig(a, b Config) string {
	return cmp.Diff(a, b, cmpopts.EquateEmpty(), cmpopts.IgnoreTypes(&Places{}), cmpopts.IgnoreUnexported(scrape.Row{}),
		cmp.Comparer(func(a, b HTTP) bool { return reflect.DeepEqual(a, b) }),
		cmp.Comparer(func(a, b SLO) bool {
			return a.Objective == b.Objective && slices.Equal(a.Bounds.Levels(), b.Bounds.Levels())
		}))
}

// Show's output of a configuration without secrets decodes to the same configuration.
func TestShowReadsBack(t *testing.T) {
	seeds := uint64(500)
	if testing.Short() {
		seeds = 50
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 0))
		var c Config
		invent(r, reflect.ValueOf(&c).Elem())
		text := shown(t, c)
		if d := sameConfig(c, readBack(t, text)); d != "" {
			t.Fatalf("seed %d: -config +read back\n%s\nof\n%s", seed, d, text)
		}
	}
}

// pieces are strings and substrings that YAML could misread.
var pieces = []string{
	"a", "é", "日本", " ", "  ", "\n", "\t", "\r", "\u0085", "\u2028", "\x00", "\x1b", "'", `"`, `\`, "#", " #", ":", ": ", "-", "- ", "?", "&", "*",
	"!", "|", ">", "%", "@", "`", "{", "}", "[", "]", ",", "~", "null", "true", "no", "on", "1", "0x1f", "0o7", "1e3", "1_000", ".5", ".inf", ".nan",
	"=", "<<", "<secret>", "1:30", "2026-01-02", "5m", "auto", "---", "...", "\ufeff", "😀", "$HOME", "a.b",
}

func word(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(4) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}

// line returns a word that is valid in a header.
func line(r *rand.Rand) string { return strings.TrimSpace(word(r)) }

// invent fills a value with random content.
func invent(r *rand.Rand, v reflect.Value) {
	switch p := v.Addr().Interface().(type) {
	case *Workload: // options without a key have their defaults
		*p = DefaultWorkload()
	case *Comparison:
		*p = DefaultComparison()
	case *HTTP:
		*p = commoncfg.DefaultHTTPClientConfig
		if r.IntN(2) == 0 {
			p.FollowRedirects = false
			p.Authorization = &commoncfg.Authorization{Type: "Bearer", CredentialsFile: "file" + word(r)}
			p.TLSConfig = commoncfg.TLSConfig{CA: "-----\nabc\n-----\n", ServerName: line(r), MinVersion: commoncfg.TLSVersions["TLS13"]}
			p.HTTPHeaders = &commoncfg.Headers{Headers: map[string]commoncfg.Header{"X-Team": {Values: []string{line(r), line(r)}}}}
		}
		return
	case *time.Duration:
		unit := []int64{1, 1e3, 1e6, 1e9, 60e9, 3600e9}[r.IntN(6)]
		*p = time.Duration(r.Int64N(int64(1000*time.Hour)) / unit * unit)
		return
	case *scalar.Bytes:
		*p = scalar.Bytes(r.Int64N(1000) << (r.IntN(5) * 10))
		return
	case *scalar.Auto:
		*p = scalar.Auto(r.IntN(100) - 1)
		return
	case *Bounds:
		*p = Bounds{
			"ttft": fmt.Sprintf("%dus", r.IntN(1e6)), "inter_token_latency": r.Float64() * 100, "output_sequence_length": r.IntN(100), "e2e": "",
		}
		return
	case *scalar.Within:
		if *p = (scalar.Within{}); r.IntN(2) == 0 {
			from := r.IntN(101)
			*p = scalar.Within{float64(from) / 100, float64(from+r.IntN(101-from)) / 100}
		}
		return
	case *map[string]any:
		*p = inventMap(r, 3)
		return
	case *map[string]string:
		*p = map[string]string{}
		for range r.IntN(4) {
			if name := word(r); !secret.IsName(name) {
				(*p)[name] = word(r)
			}
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for field, value := range v.Fields() {
			if _, ok := keyOf(field); ok {
				invent(r, value)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(3), 3))
		for _, one := range v.Seq2() {
			invent(r, one)
		}
	case reflect.String:
		v.SetString(word(r))
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(r.Int64() >> r.IntN(64))
	case reflect.Uint64:
		v.SetUint(r.Uint64() >> r.IntN(64))
	case reflect.Float64:
		v.SetFloat(inventFloat(r))
	default:
		panic(v.Type())
	}
}

func inventFloat(r *rand.Rand) float64 {
	return []float64{0, 1, -1, 0.5, 1e6, 1e21, 1e-9, math.Inf(1), r.Float64(), r.NormFloat64() * 1e9, math.MaxFloat64}[r.IntN(11)]
}

func inventMap(r *rand.Rand, depth int) map[string]any {
	m := map[string]any{}
	for range r.IntN(4) {
		if name := word(r); !secret.IsName(name) {
			m[name] = inventAny(r, depth)
		}
	}
	return m
}

func inventAny(r *rand.Rand, depth int) any {
	switch n := r.IntN(8); {
	case n == 0 && depth > 0:
		return inventMap(r, depth-1)
	case n == 1 && depth > 0:
		list := []any{}
		for range r.IntN(3) {
			list = append(list, inventAny(r, depth-1))
		}
		return list
	case n == 2:
		return nil
	case n == 3:
		return r.IntN(2) == 0
	case n == 4:
		return json.Number(fmt.Sprint(r.Int64() >> r.IntN(64)))
	case n == 5:
		return json.Number([]string{"0", "-0", "1.50", "1e3", "-0.5e-7", "123456789012345678901234567890"}[r.IntN(6)])
	case n == 6:
		return time.Unix(r.Int64N(4e9), 0).UTC().Format([]string{time.RFC3339, time.DateOnly}[r.IntN(2)])
	}
	return word(r)
}

// FuzzShow checks the same for every file that Load accepts.
func FuzzShow(f *testing.F) {
	for _, file := range []string{"testdata/good.yaml", "../../docs/replayd.example.yaml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("targets: [{name: a, url: 'http://u:p@h', extra_body: {a.b: [1.0, 1e3, {key: 2026-01-01, tokens: [a]}], 1: 2, 0b1: ~}}]\nworkloads: [{name: w, trace: {path: \"\\n \\x85\"}}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "replayd.yaml")
		take := func(text []byte) (Config, error) {
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			return Load(path, nil, nil, func(string) {})
		}
		c, err := take(text)
		if err != nil {
			return
		}
		once, err := c.Show()
		if err != nil {
			t.Fatal(err)
		}
		again, err := take(once)
		if err != nil {
			t.Fatalf("%v\nin\n%s", err, once)
		}
		if twice := shown(t, again); twice != string(once) {
			t.Errorf("-once +twice\n%s", cmp.Diff(string(once), twice))
		}
		if !strings.Contains(string(once), secret.Mask) && !strings.Contains(string(once), "xxxxx") {
			if d := sameConfig(c, again); d != "" {
				t.Errorf("-config +read back\n%s\nof\n%s", d, once)
			}
		}
	})
}

func TestScalarsAsText(t *testing.T) {
	f := func(v fmt.Stringer, want string) {
		t.Helper()
		if v.String() != want {
			t.Errorf("want %s, got %s", want, v)
		}
	}
	duration := func(d time.Duration) fmt.Stringer { return asText[scalar.Duration]{scalar.Duration(d)} }
	f(duration(0), "0s")
	f(duration(500*time.Millisecond), "500ms")
	f(duration(5*time.Minute), "5m")
	f(duration(90*time.Second), "1m30s")
	f(duration(24*time.Hour), "1d")
	f(duration(25*time.Hour), "1d1h")
	f(duration(1500*time.Microsecond), "1.5ms")
	f(duration(-time.Minute), "-1m0s")
	f(asText[scalar.Bytes]{0}, "0")
	f(asText[scalar.Bytes]{8 << 20}, "8MiB")
	f(asText[scalar.Bytes]{1000}, "1000")
	f(asText[scalar.Bytes]{3 << 10}, "3KiB")
	f(asText[scalar.Bytes]{2048 << 30}, "2048GiB")
	f(asText[scalar.Bytes]{-1024}, "-1KiB")
	f(asText[scalar.Auto]{scalar.AutoValue}, "auto")
	f(asText[scalar.Auto]{16}, "16")
}

type asText[T interface{ MarshalText() ([]byte, error) }] struct{ value T }

func (a asText[T]) String() string {
	text, err := a.value.MarshalText()
	if err != nil {
		return err.Error()
	}
	return string(text)
}
