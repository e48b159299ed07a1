//go:build monitors

package monitors_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"replayd/test/outside"
)

// instants are those at which every expression is evaluated, after the tests begin. One is between two samples.
var instants = []time.Duration{11 * time.Minute, 23*time.Minute + 30*time.Second, 41 * time.Minute, 70 * time.Minute, 24*time.Hour + 50*time.Minute}

// A question is an expression, by its place, once for all places that have it.
type question struct{ place, promQL, record string }

// The rules' and the dashboards' expressions give the same in Prometheus and in VictoriaMetrics over the same samples.
func TestExpressions(t *testing.T) {
	prometheus, victoria := startServers(t)
	samples := loaded(t)
	write(t, prometheus, victoria, samples)
	rules := ruleQuestions(t)
	for _, q := range rules { // in the order in which each finds what it reads
		if q.record != "" {
			write(t, prometheus, victoria, record(t, prometheus, q))
		}
	}
	asked, compared := slices.Concat(rules, boardQuestions(t)), 0
	seen, empty := map[string]bool{}, 0
	for _, q := range asked {
		values, differs := 0, ""
		for _, at := range instants {
			want, err1 := ask(t, prometheus, q.promQL, at)
			got, err2 := ask(t, victoria, q.promQL, at)
			if err1 != nil || err2 != nil {
				differs = fmt.Sprintf("at %v: %v, %v", at, err1, err2)
				break
			}
			values += len(want)
			if said := difference(want, got); said != "" && differs == "" {
				differs = fmt.Sprintf("at %v: %s", at, said)
			}
		}
		compared++
		if values == 0 {
			empty++
			t.Logf("no value: %s: %s", q.place, q.promQL)
		}
		why, listed := differences["expression"][q.place]
		seen[q.place] = true
		switch {
		case differs != "" && !listed:
			t.Errorf("%s: %s\n%s", q.place, differs, q.promQL)
		case differs == "" && listed:
			t.Errorf("%s is the same now, and is still listed: %s", q.place, why)
		}
	}
	for place := range differences["expression"] {
		if !seen[place] {
			t.Errorf("%s is listed, and there is no such expression", place)
		}
	}
	t.Logf("%d expressions at %d instants; %d without a value", compared, len(instants), empty)
}

// startServers starts a Prometheus and a VictoriaMetrics that take old samples.
func startServers(t *testing.T) (prometheus, victoria outside.Prometheus) {
	t.Helper()
	_, _, program := installed(t)
	dir := t.TempDir()
	prometheus = outside.StartPrometheus(t, outside.PrometheusTool(t, "prometheus"), dir,
		"storage: {tsdb: {out_of_order_time_window: 1000d}}\n", "--storage.tsdb.retention.time=100y", "--web.enable-remote-write-receiver",
		"--storage.tsdb.min-block-duration=20000h", "--storage.tsdb.max-block-duration=20000h") // else it compacts meanwhile, and shows less
	address := outside.Address(t)
	process := outside.Start(t, filepath.Join(dir, "victoria.out"), program, "-httpListenAddr="+address,
		"-storageDataPath="+filepath.Join(dir, "victoria"), "-retentionPeriod=100y", "-search.disableCache", "-loggerLevel=WARN",
		"-memory.allowedBytes=512MB")
	t.Cleanup(func() { process.Term(t) })
	process.Ready(t, http.DefaultClient, "http://"+address+"/health")
	return prometheus, outside.Prometheus{URL: "http://" + address}
}

// ruleQuestions returns the expressions of the rules. Files and groups are in the order in which each finds what it reads.
func ruleQuestions(t *testing.T) (all []question) {
	t.Helper()
	n := 0
	for _, name := range []string{"latency", "recording", "workloads", "service", "measurement", "comparison", "gpu"} {
		groups, err := outside.RuleGroups(repository + "/alerts/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		n++
		for _, g := range groups {
			for i, r := range g.Rules {
				all = append(all, question{fmt.Sprintf("%s %d %s%s", g.Name, i+1, r.Record, r.Alert), r.Expr, r.Record})
				if r.Record != "" && len(r.Labels) > 0 {
					pairs := url.Values{}
					for k, v := range r.Labels {
						pairs.Set(k, v)
					}
					all[len(all)-1].record += "?" + pairs.Encode()
				}
			}
		}
	}
	if paths, err := outside.RuleFiles(repository + "/alerts"); err != nil || len(paths) != n {
		t.Fatalf("want %d files of rules, got %q, %v", n, paths, err)
	}
	return all
}

// chosen matches a matcher with a variable: every value is chosen here.
var chosen = regexp.MustCompile(`=~?"\$[^"]*"`)

// boardQuestions returns the expressions of the dashboards. The variables have values as Grafana fills them in.
func boardQuestions(t *testing.T) (all []question) {
	t.Helper()
	paths, err := filepath.Glob(repository + "/dashboards/*.json")
	if err != nil || len(paths) < 5 {
		t.Fatalf("want dashboards, got %q, %v", paths, err)
	}
	had := map[string]bool{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		var board any
		if err == nil {
			err = json.Unmarshal(text, &board)
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		n := 0
		for _, promQL := range exprs(board) {
			// Which of equal values are among the first is not defined: topk takes all.
			promQL = strings.NewReplacer("topk(10,", "topk(1000,", "${before}ms", "3600000ms", "$__rate_interval", "5m", "$__interval", "1m", "$__range", "1h").
				Replace(chosen.ReplaceAllString(promQL, `=~".*"`))
			if n++; !had[promQL] {
				had[promQL] = true
				all = append(all, question{fmt.Sprintf("%s %d", filepath.Base(path), n), promQL, ""})
			}
		}
	}
	return all
}

// exprs returns the values of all keys expr, and of definition what is PromQL, in the order of a dashboard's panels.
func exprs(part any) (all []string) {
	switch part := part.(type) {
	case []any:
		for _, p := range part {
			all = append(all, exprs(p)...)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(part)) {
			text, is := part[key].(string)
			inner, isQuery := strings.CutPrefix(text, "query_result(")
			switch {
			case is && key == "expr" && text != "":
				all = append(all, text)
			case is && key == "definition" && isQuery:
				all = append(all, strings.TrimSuffix(inner, ")"))
			case !is:
				all = append(all, exprs(part[key])...)
			}
		}
	}
	return all
}

// ask evaluates an expression as vmalert asks for it. A value that is not a number is none: VictoriaMetrics has no series for it.
func ask(t *testing.T, p outside.Prometheus, promQL string, at time.Duration) (map[string][]float64, error) {
	t.Helper()
	var data struct{ Result []outside.Series }
	form := url.Values{"query": {promQL}, "time": {began.Add(at).Format(time.RFC3339)}, "step": {"60s"}, "nocache": {"1"}}
	if err := p.Ask(t.Context(), "query", form, &data); err != nil {
		return nil, err
	}
	all := map[string][]float64{}
	for _, s := range data.Result {
		delete(s.Metric, "__name__")
		text, err := json.Marshal(s.Metric)
		if err != nil {
			return nil, err
		}
		if v := s.Value.Number(); !math.IsNaN(v) {
			all[string(text)] = append(all[string(text)], v)
		}
	}
	for _, of := range all {
		slices.Sort(of)
	}
	return all, nil
}

// difference says how many series differ, and the first of them.
func difference(want, got map[string][]float64) string {
	var all []string
	for key := range maps.Keys(want) {
		if !slices.EqualFunc(want[key], got[key], near) {
			all = append(all, fmt.Sprintf("%s: Prometheus %v, VictoriaMetrics %v", key, want[key], got[key]))
		}
	}
	for key := range got {
		if _, has := want[key]; !has {
			all = append(all, fmt.Sprintf("%s: VictoriaMetrics alone %v", key, got[key]))
		}
	}
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	return fmt.Sprintf("%d of %d series differ: %s", len(all), len(want), all[0])
}

func near(a, b float64) bool {
	return a == b || math.Abs(a-b) <= 1e-6*max(math.Abs(a), math.Abs(b), 1e-3) // what is left of two equal rates is noise
}
