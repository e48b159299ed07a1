package scrape

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite golden files")

// contentType returns the content type of a recorded page by its file name.
func contentType(name string) string {
	if strings.HasSuffix(name, ".om.txt") {
		return "application/openmetrics-text; version=1.0.0; charset=utf-8"
	}
	return "text/plain; version=0.0.4; charset=utf-8"
}

// engineOf returns the engine of a recorded page by its file name. A Dynamo worker also shows the families of the
// engine that it runs.
func engineOf(name string) string {
	for worker, engine := range map[string]string{
		"dynamo_1.6.1_worker_busy": "vllm", "dynamo_1.6.1_worker_done": "vllm", "dynamo_ce30a76_trtllm_worker": "trtllm",
	} {
		if strings.HasPrefix(name, worker) {
			return engine
		}
	}
	engine, _, _ := strings.Cut(strings.TrimPrefix(name, "synthetic_"), "_")
	return engine
}

func vocabulary(t testing.TB, user ...Row) *Vocabulary {
	t.Helper()
	return vocabularyOf(t, Engines, user...)
}

func vocabularyOf(t testing.TB, role *Role, user ...Row) *Vocabulary {
	t.Helper()
	v, err := NewVocabulary(role, user)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// text formats a reading, one figure per line.
func text(r *Reading) string {
	var b strings.Builder
	fmt.Fprintf(&b, "engine %q model %q\n", r.Engine, r.Model)
	for _, q := range allQuantities() {
		for _, f := range r.Figures {
			if f.Quantity != q {
				continue
			}
			fmt.Fprintf(&b, "%s{rank=%q}", q.Name, f.Rank)
			if f.Buckets == nil {
				fmt.Fprintf(&b, " %v\n", f.Value)
				continue
			}
			fmt.Fprintf(&b, " count %d sum %v", f.Buckets.GetSampleCount(), f.Buckets.GetSampleSum())
			for _, bucket := range f.Buckets.Bucket {
				fmt.Fprintf(&b, " %v:%d", bucket.GetUpperBound(), bucket.GetCumulativeCount())
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// TestPages compares the figures of every page in testdata with its golden file.
func TestPages(t *testing.T) {
	pages, err := filepath.Glob("testdata/pages/*.txt")
	if err != nil || len(pages) == 0 {
		t.Fatalf("want pages, got %d, %v", len(pages), err)
	}
	for _, path := range pages {
		name := filepath.Base(path)
		for _, role := range rolesOf(name) {
			t.Run(role.noun+"/"+name, func(t *testing.T) {
				body, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				v := vocabularyOf(t, role)
				wanted, told := v.Recognizer()
				p, err := Parse(body, contentType(name), wanted)
				if err != nil {
					t.Fatal(err)
				}
				r := v.Read(p, told())
				if want := engineOf(name); want != r.Engine {
					t.Errorf("want the %s %q by the page's name, got %q", role.noun, want, r.Engine)
				}
				golden := goldenOf(name, role)
				if *update {
					if err := os.WriteFile(golden, []byte(text(r)), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(golden)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(string(want), text(r)); d != "" {
					t.Errorf("-want +got\n%s", d)
				}
			})
		}
	}
}

// A row may be marked as checked only if a page written by the engine itself has its family with its type.
func TestCheckedRows(t *testing.T) {
	rows := tables(t)
	checked := map[string]int{}
	for _, r := range rows {
		if r.checked == "" {
			continue
		}
		if strings.HasPrefix(r.checked, "synthetic_") {
			t.Errorf("%s: a page made by hand proves nothing: %s", r.Family, r.checked)
		}
		body, err := os.ReadFile(filepath.Join("testdata/pages", r.checked))
		if err != nil {
			t.Errorf("%s: %v", r.Family, err)
			continue
		}
		page := "\n" + string(body)
		base := strings.TrimSuffix(r.Family, "_total")
		kind := string(r.kind())
		if !strings.Contains(page, "\n# TYPE "+base+" "+kind+"\n") && !strings.Contains(page, "\n# TYPE "+base+"_total "+kind+"\n") {
			t.Errorf("%s: %s has no such %s", r.Family, r.checked, kind)
			continue
		}
		p, err := Parse(body, contentType(r.checked), func(name string) bool { return slices.Contains(r.reads(), name) })
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := readRows(p, []Row{r}); len(got.Figures) == 0 {
			t.Errorf("%s: %s has no sample that the row takes", r.Family, r.checked)
		}
		checked[r.Engine]++
	}
	t.Logf("checked rows: %v", checked)
}

// Every row that a page in testdata confirms must be marked, so that the table and docs/reference/metrics.md are complete.
func TestProvenRowsAreMarked(t *testing.T) {
	rows := tables(t)
	pages, _ := filepath.Glob("testdata/pages/*.txt")
	for _, r := range rows {
		if r.checked != "" {
			continue
		}
		for _, path := range pages {
			name := filepath.Base(path)
			if !strings.HasPrefix(name, r.Engine+"_") {
				continue
			}
			body, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			p, err := Parse(body, contentType(name), func(name string) bool { return slices.Contains(r.reads(), name) })
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := readRows(p, []Row{r}); len(got.Figures) > 0 {
				t.Errorf("%s of %s: want it marked as checked by %s", r.Family, r.Quantity, name)
				break
			}
		}
	}
}

// page parses lines; all names are wanted.
func page(t *testing.T, lines ...string) *Page {
	t.Helper()
	p, err := Parse([]byte(strings.Join(lines, "\n")+"\n"), "text/plain", func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A readCase is a page and the figures that it gives.
type readCase struct {
	name  string
	user  []Row
	lines []string
	want  []string // after the first line
}

func TestRead(t *testing.T) {
	readAll(t, []readCase{
		{"ranks", nil, []string{
			`vllm:num_requests_waiting{engine="0",model_name="m"} 3`, `vllm:num_requests_waiting{engine="1",model_name="m"} 4`,
			`vllm:num_requests_waiting_by_reason{engine="0",model_name="m",reason="capacity"} 3`,
		}, []string{`requests_waiting{rank="0"} 3`, `requests_waiting{rank="1"} 4`}},
		{
			"the newer of two names", nil,
			[]string{`vllm:gpu_cache_usage_perc{engine="0"} 0.5`, `vllm:kv_cache_usage_perc{engine="0"} 0.25`},
			[]string{`kv_cache_usage_ratio{rank="0"} 0.25`},
		},
		{
			"a counter with and without its ending", nil,
			[]string{`vllm:generation_tokens_total{engine="0"} 7`, `vllm:prompt_tokens{engine="0"} 9`},
			[]string{`prompt_tokens{rank="0"} 9`, `generation_tokens{rank="0"} 7`},
		},
		{"rows of one rank are added up", nil, []string{
			`vllm:request_success_total{engine="0",finished_reason="stop"} 2`, `vllm:request_success_total{engine="0",finished_reason="length"} 5`,
		}, []string{`requests_finished{rank="0"} 7`}},
		{"copies in tensor-parallel ranks are not", nil, []string{
			`sglang:num_running_reqs{dp_rank="0",tp_rank="0"} 2`, `sglang:num_running_reqs{dp_rank="0",tp_rank="1"} 2`, `sglang:num_running_reqs{dp_rank="1",tp_rank="0"} 3`,
		}, []string{`requests_running{rank="0"} 2`, `requests_running{rank="1"} 3`}},
		{"a total beside its parts", nil, []string{
			`sglang:num_queue_reqs{priority=""} 5`, `sglang:num_queue_reqs{priority="1"} 2`, `sglang:num_queue_reqs{priority="2"} 3`,
			`sglang:cached_tokens_total{cache_source="device"} 3`, `sglang:cached_tokens_total{cache_source="host"} 4`,
		}, []string{`requests_waiting{rank=""} 5`, `prefix_cache_hits_tokens{rank=""} 7`}},
		{"nothing that is no number", nil, []string{
			`vllm:num_requests_waiting{engine="0"} NaN`, `vllm:kv_cache_usage_perc{engine="0"} +Inf`, `vllm:prompt_tokens_total{engine="0"} -1`,
			`vllm:num_requests_running{engine="0"} 1`,
		}, []string{`requests_running{rank="0"} 1`}},
		{
			"less what is in it", nil,
			[]string{`dynamo_frontend_active_requests{model="m"} 7`, `dynamo_frontend_queued_requests{model="m"} 3`},
			[]string{`requests_running{rank=""} 4`, `requests_waiting{rank=""} 3`},
		},
		{
			"two counters together", nil,
			[]string{`llamacpp:prompt_tokens_total 2146`, `llamacpp:prompt_tokens_cached_total 2999`},
			[]string{`prefix_cache_queries_tokens{rank=""} 5145`, `prefix_cache_hits_tokens{rank=""} 2999`, `prompt_tokens{rank=""} 2146`},
		},
		{"no sum without one of them", nil, []string{`llamacpp:prompt_tokens_total 2146`}, []string{`prompt_tokens{rank=""} 2146`}},
		{
			"a sum by rank, and not of a rank that lacks one",
			[]Row{{Family: "a", Plus: "b", Quantity: "prompt_tokens", Rank: "r", Scale: 2}},
			[]string{`a_total{r="0"} 1`, `a_total{r="1"} 2`, `b{r="1"} 3`, `b{r="1",k="x"} 4`},
			[]string{`prompt_tokens{rank="1"} 18`},
		},
		{"milliseconds, and one of several types", nil, []string{
			`nv_trt_llm_request_metrics{request_type="waiting"} 2`, `nv_trt_llm_request_metrics{request_type="max"} 512`, `nv_inference_pending_request_count 9`,
			`nv_inference_first_response_histogram_ms_bucket{le="100"} 1`, `nv_inference_first_response_histogram_ms_bucket{le="+Inf"} 2`,
			`nv_inference_first_response_histogram_ms_sum 600`, `nv_inference_first_response_histogram_ms_count 2`,
		}, []string{`requests_waiting{rank=""} 2`, `ttft_seconds{rank=""} count 2 sum 0.6 0.1:1`}},
		{
			"the sum of a histogram", nil,
			[]string{`tgi_request_generated_tokens_sum 120`, `tgi_request_generated_tokens_count 3`, `tgi_request_generated_tokens_bucket{le="+Inf"} 3`},
			[]string{`generation_tokens{rank=""} 120`},
		},
		{"bare names, and those of others", nil, []string{
			`request_success_total{engine_type="pytorch",finished_reason="stop"} 2`, `request_success_total{handler="/metrics"} 40`,
		}, []string{`requests_finished{rank=""} 2`}},
		{"histograms at the bounds that all have", nil, []string{
			`vllm:time_to_first_token_seconds_bucket{engine="0",model_name="a",le="0.1"} 1`, `vllm:time_to_first_token_seconds_bucket{engine="0",model_name="a",le="1"} 2`,
			`vllm:time_to_first_token_seconds_bucket{engine="0",model_name="a",le="+Inf"} 3`, `vllm:time_to_first_token_seconds_count{engine="0",model_name="a"} 3`, `vllm:time_to_first_token_seconds_sum{engine="0",model_name="a"} 3.5`,
			`vllm:time_to_first_token_seconds_bucket{engine="0",model_name="b",le="1.0"} 1`,
			`vllm:time_to_first_token_seconds_bucket{engine="0",model_name="b",le="+Inf"} 1`, `vllm:time_to_first_token_seconds_count{engine="0",model_name="b"} 1`, `vllm:time_to_first_token_seconds_sum{engine="0",model_name="b"} 0.5`,
		}, []string{`ttft_seconds{rank="0"} count 4 sum 4 1:3`}},
		{"no histogram that contradicts itself", nil, []string{
			`vllm:num_requests_running{engine="0"} 1`, `vllm:inter_token_latency_seconds_bucket{engine="0",le="0.1"} 5`, `vllm:inter_token_latency_seconds_bucket{engine="0",le="1"} 4`,
			`vllm:inter_token_latency_seconds_bucket{engine="0",le="+Inf"} 6`, `vllm:inter_token_latency_seconds_count{engine="0"} 6`, `vllm:inter_token_latency_seconds_sum{engine="0"} 1`,
		}, []string{`requests_running{rank="0"} 1`}},
		{
			"a user's row over a known engine",
			[]Row{{Family: "my_queue", Quantity: "requests_waiting"}},
			[]string{`vllm:num_requests_waiting{engine="0"} 3`, `vllm:num_requests_running{engine="0"} 1`, `my_queue 8`},
			[]string{`requests_running{rank="0"} 1`, `requests_waiting{rank=""} 8`},
		},
		{
			"an engine that nobody heard of",
			[]Row{{Family: "my_first", Quantity: "ttft_seconds"}, {Family: "my_slots", Quantity: "kv_cache_usage_ratio"}},
			[]string{`my_first_bucket{le="0.5"} 1`, `my_first_bucket{le="+Inf"} 1`, `my_first_sum 0.25`, `my_first_count 1`, `my_slots{slot="a"} 0.25`, `my_slots{slot="b"} 0.5`},
			[]string{`kv_cache_usage_ratio{rank=""} 0.5`, `ttft_seconds{rank=""} count 1 sum 0.25 0.5:1`},
		},
		{"nothing known", nil, []string{`node_load1 0.3`}, nil},
	})
}

func readAll(t *testing.T, cases []readCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := vocabulary(t, c.user...).Read(page(t, c.lines...), "")
			got := strings.Split(strings.TrimSuffix(text(r), "\n"), "\n")[1:]
			if d := cmp.Diff(append([]string{}, c.want...), got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

// An engine's page with many ranks and long label values adds a bounded number of series to replayd's page.
func TestReadIsBounded(t *testing.T) {
	var lines []string
	for i := range 1000 {
		lines = append(lines, fmt.Sprintf(`vllm:num_requests_waiting{engine="%d",model_name="%s"} 1`, i, strings.Repeat("x", 500)))
		lines = append(lines, fmt.Sprintf(`vllm:time_to_first_token_seconds_bucket{engine="0",le="%d"} 1`, i))
	}
	lines = append(lines, `vllm:time_to_first_token_seconds_count{engine="0"} 1`)
	r := vocabulary(t).Read(page(t, lines...), "")
	if len(r.Figures) != maxRanks || len(r.Model) != maxLabel {
		t.Errorf("want %d figures and a model of %d bytes, got %d and %d", maxRanks, maxLabel, len(r.Figures), len(r.Model))
	}
}

func TestRowsThatMakeNoSense(t *testing.T) {
	for want, r := range map[string]Row{
		"want a quantity of":               {Family: "x", Quantity: "requests"},
		"want the name of a metric family": {Family: "x y", Quantity: "requests_waiting"},
	} {
		if _, err := NewVocabulary(Engines, []Row{r}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: want an error with %q, got %v", r, want, err)
		}
	}
}

// sense returns what makes no sense in a row of the table.
func (r Row) sense(of *Role) (bad []string) {
	q := named(of.quantities, r.Quantity)
	if q == nil {
		return []string{"quantity"}
	}
	counts, measures := q.Kind == Counter, q.Kind == Gauge
	for what, is := range map[string]bool{
		"engine": r.Engine != "", "family": familyNames.MatchString(r.Family),
		"type":  r.Take == "sum" && counts && r.kind() == Histogram || r.Take == "" && r.kind() == q.Kind,
		"less":  r.Less == "" || measures && familyNames.MatchString(r.Less),
		"plus":  r.Plus == "" || (counts || measures) && r.Take == "" && !slices.ContainsFunc(r.added(), func(o Row) bool { return !familyNames.MatchString(o.Family) }),
		"merge": r.Merge == "" || r.Merge == "sum" || r.Merge == "max" && measures,
		"scale": r.Scale >= 0 && r.Scale <= 1e18,
	} {
		if !is {
			bad = append(bad, what)
		}
	}
	for _, s := range []string{r.Select, r.Prefer} {
		if label, _, ok := strings.Cut(s, "="); s != "" && (!ok || label == "") {
			bad = append(bad, s)
		}
	}
	return bad
}

// Each row of a table makes sense, and none is hidden by an earlier one. Each quantity of a role has a row of its
// table.
func TestTable(t *testing.T) {
	for role, want := range map[*Role]int{Engines: 8, Routers: 6} {
		rows, err := role.table()
		if err != nil {
			t.Fatal(err)
		}
		seen, found, names := map[string]bool{}, map[string]bool{}, map[string]bool{}
		for _, r := range rows {
			key := strings.Join([]string{r.Engine, r.Family, r.Quantity, r.Select}, "\t")
			if seen[key] {
				t.Errorf("want each row once, got %q again", key)
			}
			seen[key] = true
			if bad := r.sense(role); bad != nil {
				t.Errorf("%q makes no sense: %q", key, bad)
			}
			found[r.Quantity], names[r.Engine] = true, true
		}
		if len(names) != want || len(found) != len(role.quantities) {
			t.Errorf("want %d of role %s and all %d quantities, got %q and %d", want, role.noun, len(role.quantities), slices.Sorted(maps.Keys(names)), len(found))
		}
	}
}
