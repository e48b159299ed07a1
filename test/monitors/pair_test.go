//go:build monitors

package monitors_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"replayd/test/outside"
)

// faster is how much faster time runs here than in the shipped rules: 10 minutes are 5 s.
const faster = 120

const scrapes = `
global: {scrape_interval: 250ms, scrape_timeout: 250ms, evaluation_interval: 500ms, external_labels: {replica: REPLICA}}
rule_files: ['RULES']
alerting:
  alert_relabel_configs: [{regex: replica, action: labeldrop}]
  alertmanagers: [{static_configs: [{targets: ['ALERTMANAGER']}]}]
scrape_configs: [{job_name: replayd, honor_labels: true, static_configs: [{targets: ['PAGE'], labels: {cluster: c, namespace: n}}]}]
`

// unseen is a page with two engines of a target that cannot be scraped.
const unseen = `# TYPE replayd_engine_up gauge
replayd_engine_up{target="vllm",address="vllm-0:8000"} 0
replayd_engine_up{target="vllm",address="vllm-1:8000"} 0
`

// Two Prometheus of a pair tell one Alertmanager of two engines. Each engine is one alert there, and not one for each Prometheus: the
// label that tells the two apart is dropped, and what tells the engines apart is not.
func TestPair(t *testing.T) {
	program := outside.PrometheusTool(t, "prometheus")
	dir := t.TempDir()
	alertmanager := startAlertmanager(t, dir)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprint(w, unseen)
	}))
	t.Cleanup(page.Close)
	rules := fastRules(t, dir)
	var pair []outside.Prometheus
	for _, replica := range []string{"A", "B"} {
		config := strings.NewReplacer("REPLICA", replica, "RULES", rules, "ALERTMANAGER", alertmanager,
			"PAGE", strings.TrimPrefix(page.URL, "http://")).Replace(scrapes)
		folder := filepath.Join(dir, replica)
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		pair = append(pair, outside.StartPrometheus(t, program, folder, config, "--rules.alert.resend-delay=500ms"))
	}
	for _, p := range pair { // Both have told it.
		outside.Until(t, func() error {
			var sent []outside.Series
			sent, err := p.Query(t.Context(), `ALERTS{alertname="ReplaydEngineUnseen",alertstate="firing"}`, time.Time{})
			if err == nil && len(sent) != 2 {
				err = fmt.Errorf("want two alerts firing, got %v", sent)
			}
			return err
		})
		outside.Until(t, func() error {
			told, err := notified(t, p)
			if err == nil && told < 2 {
				err = fmt.Errorf("want Alertmanager told of 2 alerts, got %v", told)
			}
			return err
		})
	}
	if got, want := addresses(t, alertmanager), []string{"vllm-0:8000", "vllm-1:8000"}; !slices.Equal(got, want) {
		t.Errorf("want one alert for each engine, %q, got %q", want, got)
	}
}

// notified returns how many notifications a Prometheus has sent.
func notified(t *testing.T, p outside.Prometheus) (sent float64, err error) {
	t.Helper()
	page, err := outside.Scrape(t.Context(), p.URL)
	return page.Sum("prometheus_notifications_sent_total"), err
}

// addresses returns the engines of the alerts ReplaydEngineUnseen in Alertmanager.
func addresses(t *testing.T, alertmanager string) (all []string) {
	t.Helper()
	status, text, err := outside.Call(t.Context(), http.DefaultClient, http.MethodGet, "http://"+alertmanager+"/api/v2/alerts")
	var alerts []struct{ Labels map[string]string }
	if err == nil {
		err = json.Unmarshal(text, &alerts)
	}
	if err != nil {
		t.Fatalf("alerts: %d, %v", status, err)
	}
	for _, a := range alerts {
		if a.Labels["alertname"] == "ReplaydEngineUnseen" {
			all = append(all, a.Labels["address"])
		}
		if a.Labels["replica"] != "" {
			t.Errorf("want no alert of one Prometheus alone, got %v", a.Labels)
		}
	}
	slices.Sort(all)
	return all
}

func startAlertmanager(t *testing.T, dir string) (address string) {
	t.Helper()
	program := outside.PrometheusTool(t, "alertmanager")
	address = outside.Address(t)
	process := outside.Start(t, filepath.Join(dir, "alertmanager.out"), program, "--config.file="+repository+"/deploy/alertmanager.yml",
		"--storage.path="+filepath.Join(dir, "alerts"), "--web.listen-address="+address, "--cluster.listen-address=", "--log.level=warn")
	t.Cleanup(func() { process.Term(t) })
	process.Ready(t, http.DefaultClient, "http://"+address+"/-/ready")
	return address
}

// fastRules writes the rules with all durations divided, and returns a pattern of the files.
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
	for _, path := range paths {
		fast, err := outside.ScaleRules(path, faster)
		if err != nil {
			t.Fatal(err)
		}
		outside.Write(t, into, filepath.Base(path), string(fast))
	}
	return filepath.Join(into, "*.yaml")
}
