//go:build real

package incidents_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"replayd/test/outside"
)

// The candidate of the comparison rollout is half as slow again as its baseline, and misses the SLO. The one of drift is slower too.
const (
	baselineTTFT, candidateTTFT, comparedSLO = 120 * time.Millisecond, 180 * time.Millisecond, 150 * time.Millisecond
	comparedLoop                             = 30 * time.Second
)

// TestComparisons has a comparison of each mode. Their alerts fire, that of a verdict mutes the candidate's own alert on its SLO, and each panel
// of the dashboard shows something for one of them.
func TestComparisons(t *testing.T) {
	dir := t.TempDir()
	w := &world{engines: map[string]*engine{}}
	for name, ttft := range map[string]time.Duration{"stable": baselineTTFT, "canary": candidateTTFT, "old": baselineTTFT, "new": candidateTTFT} {
		w.engines[name] = &engine{dir: dir, name: name, address: outside.Address(t)}
		w.engines[name].start(t, ttft, nextToken, "--jitter", "0.05")
	}
	replayd := w.startCompared(t, dir)
	alertmanager := startAlertmanager(t, dir, outside.PrometheusTool(t, "alertmanager"))
	w.prom = startPrometheus(t, dir, replayd, alertmanager)
	w.watch = startWatch(t, alertmanager)
	began := time.Now()

	worse := expected{"CandidateWorse", map[string]string{"comparison": "rollout", "workload": "chat@canary", "target": "canary", "baseline": "stable"}, false}
	changed := expected{"Changed", map[string]string{"comparison": "drift", "target": "new", "metric": "ttft", "direction": "slower", "severity": "warning"}, false}
	burns := expected{"SLOBurnFast", map[string]string{"workload": "chat@canary", "target": "canary"}, true}
	outside.UntilIn(t, 4*time.Minute, func() error {
		var missing []error
		for _, e := range []expected{worse, changed, burns} {
			if !slices.ContainsFunc(w.watch.seen(t, began), func(a alert) bool { return e.is(a) && a.muted.IsZero() != e.muted }) {
				missing = append(missing, fmt.Errorf("want %s%v, muted: %t", e.alert, e.labels, e.muted))
			}
		}
		// The last panel to show something needs 50 blocks.
		if known, err := w.prom.Query(t.Context(), `replayd_comparison_block_correlation{metric="ttft"} >= -1`, time.Time{}); err != nil || len(known) < 2 {
			missing = append(missing, fmt.Errorf("want the correlation of both comparisons, got %v, %w", known, errors.Join(err)))
		}
		return errors.Join(missing...)
	})
	t.Logf("alerts and correlations came within %.0f s", time.Since(began).Seconds())
	for _, a := range w.watch.seen(t, began) {
		for _, fault := range a.words() {
			t.Error(fault)
		}
		if worse.is(a) || changed.is(a) {
			t.Log(a.annotations["description"])
		}
		if a.labels["target"] == "stable" && a.labels["severity"] == "critical" {
			t.Errorf("the baseline is well: %s", a.name())
		}
	}
	t.Run("each rule is evaluated", func(t *testing.T) { w.evaluated(t) })
	t.Run("each panel shows something", func(t *testing.T) { w.showComparisons(t) })
}

// startCompared starts a daemon with both comparisons.
func (w *world) startCompared(t *testing.T, dir string) (address string) {
	t.Helper()
	var trace, targets strings.Builder
	for i := range int(comparedLoop.Seconds()) * 4 {
		fmt.Fprintf(&trace, `{"timestamp": %d, "input_length": 512, "output_length": %d, "hash_ids": [%d]}`+"\n", i*250, outputTokens, i)
	}
	path := outside.Write(t, dir, "trace.jsonl", trace.String())
	for name, e := range w.engines {
		fmt.Fprintf(&targets, "- {name: %s, url: \"http://%s\", model: sim, metrics: {interval: 1s}}\n", name, e.address)
	}
	config := outside.Write(t, dir, "replayd.yaml", fmt.Sprintf(`
targets:
%sworkloads:
- {name: chat, target: stable, trace: {path: %[2]q}, repeat: {every: %[3]s}, slo: {ttft: %[4]s}}
- {name: agents, target: old, trace: {path: %[2]q}, repeat: {every: %[3]s}}
comparisons:
- {name: rollout, workload: chat, candidate: canary, min_pairs: 3, min_time: 1s}
- {name: drift, workload: agents, candidate: new, mode: watch, min_pairs: 3, min_time: 1s}
`, &targets, path, comparedLoop, comparedSLO))
	address = outside.Address(t)
	w.replayd = outside.Start(t, filepath.Join(dir, "replayd.out"), binary, "serve", "--config", config, "--web.listen-address", address,
		"--web.external-url", "http://"+address, "--web.dashboards-url", "http://grafana.example")
	t.Cleanup(func() { w.replayd.Term(t) })
	w.replayd.Ready(t, http.DefaultClient, "http://"+address+"/-/ready")
	return address
}

// showComparisons runs all queries of the dashboard for each comparison. A panel that is of one mode is empty for the other.
func (w *world) showComparisons(t *testing.T) {
	d := readDashboard(t, "comparison")
	views := w.views(t, "comparison", d)
	shows := map[string]bool{}
	for _, how := range slices.Sorted(maps.Keys(views)) {
		for _, p := range d.all() {
			for _, q := range p.Targets {
				n := w.show(t, fmt.Sprintf("%q %s, %s", p.Title, q.RefID, how), q, p.Interval, views[how])
				shows[p.Title] = shows[p.Title] || n > 0
			}
		}
		for _, a := range d.Annotations.List {
			w.show(t, fmt.Sprintf("annotation %q, %s", a.Name, how), target{Expr: a.Expr}, "", views[how])
		}
	}
	for _, p := range d.all() {
		if !shows[p.Title] {
			t.Errorf("%q: want something to be seen", p.Title)
		}
	}
	t.Logf("%d panels, %q", len(d.all()), slices.Sorted(maps.Keys(views)))
}
