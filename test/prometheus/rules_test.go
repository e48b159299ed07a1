//go:build prometheus

package prometheus_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"replayd/test/outside"
)

const (
	rules = repository + "/alerts/recording.yaml"

	// The rules of this test have windows that are shorter by scale, and are evaluated more often by the same factor. A
	// test of the real rules takes more than 5 minutes. All pages are scraped every second.
	scale      = 10
	ruleWindow = 5 * time.Minute / scale
	ruleEvery  = time.Minute / scale
)

const ruleScrapes = `
global: {scrape_interval: 1s, scrape_timeout: 1s}
rule_files: [RULES]
scrape_configs:
  - {job_name: native, static_configs: [{targets: TARGETS, labels: {cluster: native, namespace: test}}]}
  - {job_name: text, scrape_protocols: [PrometheusText0.0.4], static_configs: [{targets: TARGETS, labels: {cluster: text, namespace: test}}]}
`

// TestRulesOfARealReplay has two shards that replay against one simulated engine with a GPU. Both scrape the engine,
// and Prometheus scrapes both with native histograms and as text, as if they were two clusters.
func TestRulesOfARealReplay(t *testing.T) {
	program := outside.PrometheusTool(t, "prometheus")
	dir := t.TempDir()
	engine, shards := startShards(t, dir)
	targets, err := json.Marshal(shards)
	if err != nil {
		t.Fatal(err)
	}
	names, file := shortRules(t, dir)
	config := strings.NewReplacer("RULES", file, "TARGETS", string(targets)).Replace(ruleScrapes)
	p := prometheus{outside.StartPrometheus(t, program, dir, config)}

	// From the first value on, and a whole window later, when the window no longer contains the start.
	evaluated := func(times float64) {
		t.Helper()
		outside.Until(t, 90*time.Second, func() error {
			const values = `count_over_time(target:replayd_generation_tokens_per_joule:ratio_rate5m{cluster="native"}[10m])`
			if n := p.number(t, values); !(n >= times) {
				return fmt.Errorf("want %v values of a rule that is evaluated every %v, got %v", times, ruleEvery, n)
			}
			return nil
		})
	}
	evaluated(1)
	before := readEngine(t, engine)
	evaluated(float64(1 + ruleWindow/ruleEvery))
	after := readEngine(t, engine)

	t.Run("each has a value", func(t *testing.T) { p.haveValues(t, names) })
	t.Run("they agree with the engine", func(t *testing.T) { p.agree(t, before, after) })
}

// startShards starts the engine and two daemons.
func startShards(t *testing.T, dir string) (engine string, shards []string) {
	t.Helper()
	engine = outside.Address(t)
	start(t, filepath.Join(dir, "sim.out"), http.DefaultClient, "http://"+engine+"/health",
		binary, "sim", "--web.listen-address", engine, "--ttft", firstToken.String(), "--itl", "2ms")
	var trace strings.Builder
	for i := range rows { // all prompts share their first half
		fmt.Fprintf(&trace, `{"timestamp": %d, "input_length": 1024, "output_length": 8, "hash_ids": [0, %d]}`+"\n", i*int(rowGap.Milliseconds()), i+1)
	}
	path := outside.Write(t, dir, "trace.jsonl", trace.String())
	for i := range 2 {
		address := outside.Address(t)
		shards = append(shards, address)
		config := outside.Write(t, dir, fmt.Sprintf("shard%d.yaml", i), fmt.Sprintf(`
web: {listen: %q}
targets: [{name: sim, url: "http://%s", metrics: {interval: 1s}}]
workloads: [{name: steady, trace: {path: %q}, repeat: {every: 10s}, shard: {index: %d, of: 2}}]
gpus: [{dcgm_exporter: "http://%s/dcgm/metrics", interval: 1s}]
`, address, engine, path, i, engine))
		start(t, filepath.Join(dir, fmt.Sprintf("shard%d.out", i)), http.DefaultClient, "http://"+address+"/-/ready",
			binary, "serve", "--config", config)
	}
	return engine, shards
}

// shortRules returns the names of the rules, and a file of them with shorter windows. The names stay the same.
func shortRules(t *testing.T, dir string) (names []string, file string) {
	t.Helper()
	groups, err := outside.RuleGroups(rules)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		for _, r := range g.Rules {
			names = append(names, r.Record)
		}
	}
	short, err := outside.ScaleRules(rules, scale)
	if err != nil {
		t.Fatal(err)
	}
	return names, outside.Write(t, dir, "rules.yaml", string(short))
}

// readEngine returns the tokens on the engine's own page and the joules on its GPU's.
func readEngine(t *testing.T, address string) (figures [2]float64) {
	t.Helper()
	for i, counter := range []struct{ path, name string }{
		{"/metrics", "vllm:generation_tokens_total"},
		{"/dcgm/metrics", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"}, // mJ
	} {
		_, body, err := outside.Call(t.Context(), http.DefaultClient, http.MethodGet, "http://"+address+counter.path)
		m := regexp.MustCompile(`(?m)^` + counter.name + `\{.*\} (\S+)$`).FindSubmatch(body)
		if err != nil || m == nil {
			t.Fatalf("%s: want %s, got %v, %.200s", counter.path, counter.name, err, body)
		}
		if figures[i], err = strconv.ParseFloat(string(m[1]), 64); err != nil {
			t.Fatal(err)
		}
	}
	figures[1] /= 1000
	return figures
}

// haveValues checks that every rule has a number or a histogram in both clusters, except for the kind of histogram that
// a cluster lacks.
func (p prometheus) haveValues(t *testing.T, names []string) {
	for _, cluster := range []string{native, text} {
		for _, name := range names {
			result := p.query(t, name+`{cluster="`+cluster+`",namespace="test",target="sim"}`)
			engine := strings.Contains(name, ":replayd_engine_") // the simulated engine has only classic ones
			wanted := true
			switch {
			case strings.HasSuffix(name, "_seconds:rate5m"):
				wanted = cluster == native && !engine
			case strings.HasSuffix(name, "_bucket:rate5m"):
				wanted = cluster == text || engine
			}
			if len(result) > 0 != wanted {
				t.Errorf("%s: %s: want a value %v, got %v", cluster, name, wanted, result)
			}
			for _, one := range result {
				if one.Histogram[1] != nil {
					continue
				}
				if v := one.Value.Number(); math.IsNaN(v) || math.IsInf(v, 0) {
					t.Errorf("%s: %s: want a number, got %v", cluster, name, one)
				}
			}
		}
	}
}

// agree compares the rules with the engine's pages, and with one another.
//
// Replayd's metrics of the engine are up to one scrape interval (1 s) old, at either
// end of a window whose samples span 29 s. A rate is off by 1/29 at most, a ratio of
// two rates, of pages that are not read together, by 2/29. The load is even.
func (p prometheus) agree(t *testing.T, before, after [2]float64) {
	tokens, joules := after[0]-before[0], after[1]-before[1]
	const tolerance = 2. / 29
	f := func(cluster, rule string, want, tolerance float64) {
		t.Helper()
		got := p.number(t, fmt.Sprintf(`target:replayd_%s{cluster="%s"}`, rule, cluster))
		if !(math.Abs(got-want) <= tolerance) {
			t.Errorf("%s: %s: want %v ± %v, got %v", cluster, rule, want, tolerance, got)
			return
		}
		t.Logf("%-6s %s: %.4g, want %.4g ± %.2g", cluster, rule, got, want, tolerance)
	}
	for _, cluster := range []string{native, text} {
		perJoule := tokens / joules
		f(cluster, "generation_tokens_per_joule:ratio_rate5m", perJoule, perJoule*tolerance)
		f(cluster, "joules_per_generation_token:ratio_rate5m", 1/perJoule, tolerance/perJoule)
		f(cluster, "joules_per_request:ratio_rate5m", joules/tokens*8, joules/tokens*8*tolerance)
		f(cluster, "share_of_engine_generation_tokens:ratio_rate5m", 1, tolerance)
		f(cluster, "prefix_hits_of_ideal:ratio_rate5m", 1, tolerance) // of 512 tokens a block of 16 is lost to the template
		// Seconds: both histograms cover the same requests, with only the loopback between them.
		f(cluster, "ttft_beyond_engine_seconds:mean5m", 0, firstToken.Seconds()/2)
	}
}
