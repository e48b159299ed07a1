//go:build real

package incidents_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/model"

	"replayd/test/outside"
)

// shipped is the Alertmanager configuration that this test runs, with other durations.
const shipped = repository + "/deploy/alertmanager.yml"

// startAlertmanager starts an Alertmanager without peers.
func startAlertmanager(t *testing.T, dir, program string) (address string) {
	t.Helper()
	text, err := os.ReadFile(shipped)
	if err != nil {
		t.Fatal(err)
	}
	times := regexp.MustCompile(`(group_wait|group_interval|repeat_interval|resolve_timeout): *([0-9a-z]+)`)
	fast := times.ReplaceAllStringFunc(string(text), func(s string) string {
		m := times.FindStringSubmatch(s)
		d, err := model.ParseDuration(m[2])
		if err != nil {
			t.Fatalf("%s: %s: %v", shipped, m[1], err)
		}
		return fmt.Sprintf("%s: %dms", m[1], time.Duration(d).Milliseconds()/scale)
	})
	address = outside.Address(t)
	process := outside.Start(t, filepath.Join(dir, "alertmanager.out"), program, "--config.file="+outside.Write(t, dir, "alertmanager.yml", fast),
		"--storage.path="+filepath.Join(dir, "alerts"), "--web.listen-address="+address, "--cluster.listen-address=", "--log.level=warn")
	t.Cleanup(func() { process.Term(t) })
	process.Ready(t, http.DefaultClient, "http://"+address+"/-/ready")
	return address
}

// An alert is an alert in Alertmanager, from the first poll that saw it to the first that did not.
type alert struct {
	labels      map[string]string
	annotations map[string]string // at the last poll
	since       time.Time
	muted       time.Time // the first poll at which another alert muted it; zero: never
	until       time.Time // zero while it exists
}

// id distinguishes the alert from others, and from itself at another time.
func (a *alert) id() string { return a.name() + a.labels["instance"] + a.since.String() }

// name is the alert with the labels that say what it is about.
func (a *alert) name() string {
	var about []string
	for _, label := range slices.Sorted(maps.Keys(a.labels)) {
		if !slices.Contains([]string{"alertname", "cluster", "namespace", "job", "instance", "severity", "model", "source"}, label) {
			about = append(about, label+"="+a.labels[label])
		}
	}
	return strings.TrimPrefix(a.labels["alertname"], "Replayd") + "{" + strings.Join(about, ",") + "}"
}

// words lists faults in the texts of the alert. Prometheus writes an error of a template into the text.
func (a *alert) words() (faults []string) {
	for name, text := range a.annotations {
		if strings.Contains(text, "error expanding template") || strings.Contains(text, "<no value>") || strings.Contains(text, "NaN") {
			faults = append(faults, fmt.Sprintf("%s: %s: %s", a.name(), name, text))
		}
	}
	for _, name := range []string{"summary", "description", "command", "runbook_url", "dashboard"} {
		if a.annotations[name] == "" {
			faults = append(faults, fmt.Sprintf("%s: want a %s", a.name(), name))
		}
	}
	if _, section, _ := strings.Cut(a.annotations["runbook_url"], "#"); section != strings.ToLower(a.labels["alertname"]) {
		faults = append(faults, fmt.Sprintf("%s: want a link to its section, got %q", a.name(), a.annotations["runbook_url"]))
	}
	if strings.Contains(a.annotations["command"], "''") || strings.Contains(a.annotations["command"], "'/") {
		faults = append(faults, fmt.Sprintf("%s: want an address in the command, got %q", a.name(), a.annotations["command"]))
	}
	return faults
}

// A watch polls Alertmanager for the alerts that fire.
type watch struct {
	url string

	mu  sync.Mutex
	now map[string]*alert // by fingerprint
	all []*alert          // in the order in which they were first seen
	err error             // of the failed poll, which is the last
}

const pollEvery = 200 * time.Millisecond

// startWatch polls until the test ends.
func startWatch(t *testing.T, alertmanager string) *watch {
	t.Helper()
	w := &watch{url: "http://" + alertmanager + "/api/v2/alerts", now: map[string]*alert{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(pollEvery)
		defer tick.Stop()
		for w.poll(ctx) == nil {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return w
}

func (w *watch) poll(ctx context.Context) error {
	status, text, err := outside.Call(ctx, http.DefaultClient, http.MethodGet, w.url)
	var has []struct {
		Fingerprint         string
		Labels, Annotations map[string]string
		Status              struct{ State string }
	}
	if err == nil {
		err = json.Unmarshal(text, &has)
	}
	if err != nil {
		err = fmt.Errorf("%s: %d, %w", w.url, status, err)
	}
	at := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err = err; err != nil {
		return err
	}
	here := map[string]bool{}
	for _, one := range has {
		a := w.now[one.Fingerprint]
		if a == nil {
			a = &alert{labels: one.Labels, since: at}
			w.now[one.Fingerprint] = a
			w.all = append(w.all, a)
		}
		here[one.Fingerprint], a.annotations = true, one.Annotations
		if one.Status.State == "suppressed" && a.muted.IsZero() {
			a.muted = at
		}
	}
	for id, a := range w.now {
		if !here[id] {
			a.until = at
			delete(w.now, id)
		}
	}
	return nil
}

// seen returns copies of all alerts that existed at some time after an instant.
func (w *watch) seen(t *testing.T, from time.Time) (all []alert) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		t.Fatal(w.err)
	}
	for _, a := range w.all {
		if a.until.IsZero() || a.until.After(from) {
			all = append(all, *a)
		}
	}
	return all
}
