//go:build real

package incidents_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"replayd/test/outside"
)

// lookback is Prometheus' default of 5 minutes, scaled like everything else.
const lookback = 5 * time.Minute / scale

const scrapes = `
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [RULES]
alerting: {alertmanagers: [{static_configs: [{targets: [ALERTMANAGER]}]}]}
scrape_configs:
  - job_name: replayd
    always_scrape_classic_histograms: true
    static_configs: [{targets: [REPLAYD], labels: {cluster: test, namespace: incidents}}]
`

// startPrometheus starts a Prometheus that scrapes replayd and evaluates all rules at the scaled speed.
func startPrometheus(t *testing.T, dir, replayd, alertmanager string) outside.Prometheus {
	t.Helper()
	config := strings.NewReplacer(
		"RULES", fastRules(t, dir), "REPLAYD", strconv.Quote(replayd), "ALERTMANAGER", strconv.Quote(alertmanager)).Replace(scrapes)
	return outside.StartPrometheus(t, outside.PrometheusTool(t, "prometheus"), dir, config, "--query.lookback-delta="+lookback.String(),
		"--rules.alert.resend-delay=1s") // the default of 1 minute, scaled
}

// fastRules writes the shipped rules with all durations divided and returns a pattern of the files. One number in the
// rules is the seconds of a day; it is divided too.
func fastRules(t *testing.T, dir string) (pattern string) {
	t.Helper()
	paths, err := outside.RuleFiles(repository + "/alerts")
	if err != nil {
		t.Fatal(err)
	}
	into := filepath.Join(dir, "rules")
	if err := os.Mkdir(into, 0o700); err != nil {
		t.Fatal(err)
	}
	const day = "86400 / (workload:replayd_loop_duration_seconds:max"
	days := 0
	for _, path := range paths {
		fast, err := outside.ScaleRules(path, scale)
		if err != nil {
			t.Fatal(err)
		}
		days += strings.Count(string(fast), day)
		outside.Write(t, into, filepath.Base(path), strings.ReplaceAll(string(fast), day, strings.Replace(day, "86400", strconv.Itoa(86400/scale), 1)))
	}
	if days != 1 {
		t.Fatalf("want one rule with the seconds of a day, %q, got %d", day, days)
	}
	return filepath.Join(into, "*.yaml")
}

// samples counts the values of a series that are not NaN.
func samples(s outside.Series) (n int) {
	n = len(s.Histograms)
	if s.Histogram[1] != nil {
		n++
	}
	for _, v := range append(s.Values, s.Value) {
		if !math.IsNaN(v.Number()) {
			n++
		}
	}
	return n
}

// A rule is a rule as Prometheus evaluates it.
type rule struct {
	Name, Type, Health, LastError, Query string
	Labels                               map[string]string
}

func (w *world) rules(ctx context.Context) (all []rule, err error) {
	var data struct{ Groups []struct{ Rules []rule } }
	err = w.prom.Ask(ctx, "rules", nil, &data)
	for _, g := range data.Groups {
		all = append(all, g.Rules...)
	}
	return all, err
}
