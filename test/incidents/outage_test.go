//go:build real

package incidents_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"replayd/test/outside"
)

// The times of an outage, since the beginning of its world.
const (
	outageDies    = 40 * time.Second // the history of the rules' shortest windows
	outageBack    = 70 * time.Second // the engine is back and lists two models
	outageChanges = 110 * time.Second
	outageOver    = 3 * time.Minute
)

// TestOutage has one engine under two workloads that name no model. The engine dies,
// comes back listing two models, and then the trace changes in place. A person is
// paged once, for the target and not for each workload, and both workloads continue.
func TestOutage(t *testing.T) {
	dir, calls := t.TempDir(), startPager(t)
	e := &engine{dir: dir, name: "shared", address: outside.Address(t)}
	e.start(t, firstToken, nextToken)
	trace, replayd := startOutage(t, dir, e.address)
	alertmanager := startAlertmanager(t, dir, outside.PrometheusTool(t, "alertmanager"), calls.url)
	began := time.Now()
	prom := startPrometheus(t, dir, replayd, alertmanager)

	at := func(d time.Duration) {
		timer := time.NewTimer(time.Until(began.Add(d)))
		defer timer.Stop()
		<-timer.C
	}
	sees := func(what string, within time.Duration, shows func(outside.Page) bool) outside.Page {
		return outside.See(t, "http://"+replayd, what, within, shows)
	}
	at(outageDies)
	e.process.Signal(t, syscall.SIGKILL)
	e.process.Wait(t, 5*time.Second)
	at(outageBack)
	e.start(t, firstToken, nextToken, "--lora", "sim-lora")
	before := sees("the target is up", 15*time.Second, func(p outside.Page) bool { return p.Sum("replayd_target_up") == 1 })
	at(outageChanges)
	after := sees("requests go on beside two models", 15*time.Second, func(p outside.Page) bool {
		return p.Sum("replayd_requests_total", "a", "ok") > before.Sum("replayd_requests_total", "a", "ok")+100 &&
			p.Sum("replayd_requests_total", "b", "ok") > before.Sum("replayd_requests_total", "b", "ok")+100
	})
	if err := os.WriteFile(trace, []byte(outageTrace(2*perSecond)), 0o600); err != nil { // in place, while it is being read
		t.Fatal(err)
	}
	rows := int((loop / 2).Seconds()) * 2 * perSecond
	sees("the changed trace is played", 2*loop, func(p outside.Page) bool {
		return p.Sum("replayd_trace_info", fmt.Sprint(rows)) == 2
	})
	at(outageOver)
	end := sees("the last page", time.Second, func(outside.Page) bool { return true })
	if n := end.Sum("replayd_workload_up"); n != 2 {
		t.Errorf("want both workloads up, got %v", n)
	}
	if end.Sum("replayd_requests_expected_total") <= after.Sum("replayd_requests_expected_total") {
		t.Error("want rows to fall due until the end")
	}
	for _, fault := range end.Balance() {
		t.Error(fault)
	}
	// ReplaydSLOBurnSlow looks back over days.
	if firing := prom.Number(t, `count(ALERTS{alertstate="firing", severity!="info", alertname!="ReplaydSLOBurnSlow"}) or vector(0)`, time.Time{}); firing != 0 {
		t.Errorf("%v alerts still fire at the end", firing)
	}
	calls.judge(t, began)
}

// startOutage starts a daemon with two workloads on one engine, and returns the path of their trace.
func startOutage(t *testing.T, dir, engine string) (trace, address string) {
	t.Helper()
	trace = outside.Write(t, dir, "outage.jsonl", outageTrace(perSecond))
	const workload = "- {name: %s, target: shared, trace: {path: %q}, repeat: {every: %s}, slo: {ttft: %s, tpot: %s, objective: 0.9}}\n" // an outage of half an hour in one does not burn 0.6 of it in 6
	config := fmt.Sprintf("targets: [{name: shared, url: \"http://%s\", metrics: {interval: 1s}}]\nworkloads:\n", engine)
	for _, name := range []string{"a", "b"} {
		config += fmt.Sprintf(workload, name, trace, loop/2, ttftSLO, tpotSLO)
	}
	address = outside.Address(t)
	p := outside.Start(t, filepath.Join(dir, "outage.out"), binary, "serve", "--config", outside.Write(t, dir, "outage.yaml", config), "--web.listen-address", address)
	t.Cleanup(func() { p.Term(t, 30*time.Second) })
	p.Ready(t, http.DefaultClient, "http://"+address+"/-/ready")
	return trace, address
}

// outageTrace is a loop at a rate in requests/s.
func outageTrace(rate int) string {
	return outside.Trace(outside.Plain(int((loop/2).Seconds())*rate, float64(rate), 128, outputTokens, 1))
}

// A pager receives critical alerts and counts the messages that a person gets.
type pager struct {
	url string

	mu   sync.Mutex
	told []notification
}

// A notification is a message of Alertmanager's webhook.
type notification struct {
	Status   string
	Receiver string
	Alerts   []struct {
		Status string
		Labels map[string]string
	}
	at time.Time
}

func startPager(t *testing.T) *pager {
	t.Helper()
	p := &pager{}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := notification{at: time.Now()}
		if err := json.NewDecoder(r.Body).Decode(&n); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.told = append(p.told, n)
	}))
	s.Listener = listener
	s.Start()
	t.Cleanup(s.Close)
	p.url = s.URL
	return p
}

// judge expects one message with one firing alert, sent during the outage.
func (p *pager) judge(t *testing.T, began time.Time) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	firing := 0
	for _, n := range p.told {
		var names []string
		for _, a := range n.Alerts {
			names = append(names, a.Labels["alertname"]+" "+a.Labels["workload"]+" "+a.Status)
		}
		slices.Sort(names)
		t.Logf("%.1f s: %s: %q", n.at.Sub(began).Seconds(), n.Status, names)
		if n.Status != "firing" {
			continue
		}
		firing++
		if len(n.Alerts) != 1 || n.Alerts[0].Labels["alertname"] != "ReplaydTargetUnreachable" || n.Alerts[0].Labels["target"] != "shared" {
			t.Errorf("want ReplaydTargetUnreachable alone, got %q", names)
		}
		if d := n.at.Sub(began); d < outageDies || d > outageBack {
			t.Errorf("want the message during the outage, got it after %v", d)
		}
	}
	if firing != 1 {
		t.Errorf("want one critical message, got %d", firing)
	}
}
