//go:build daemon

package daemon_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// A page is one scrape.
type page map[string]*dto.MetricFamily

// scrape reads the page. Its error is one of the connection, or a status that is not 200.
func scrape(ctx context.Context, url string) (page, error) {
	status, body, err := call(ctx, http.MethodGet, url+"/metrics")
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("/metrics: want 200, got %d: %s", status, body)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("/metrics: %w", err)
	}
	return families, nil
}

// see scrapes until the page shows something.
func see(t *testing.T, url, what string, within time.Duration, shows func(page) bool) (p page) {
	t.Helper()
	until(t, what, within, func() bool {
		var err error
		p, err = scrape(t.Context(), url)
		return err == nil && shows(p)
	})
	return p
}

// sum adds a family's values over the metrics that have all of some label values.
func (p page) sum(name string, values ...string) (sum float64) {
	for _, m := range p[name].GetMetric() {
		if has(m, values) {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sum
}

func has(m *dto.Metric, values []string) bool {
	for _, v := range values {
		found := false
		for _, l := range m.GetLabel() {
			found = found || l.GetValue() == v
		}
		if !found {
			return false
		}
	}
	return true
}

// ended is what became of a workload's requests: finished, and dropped after they were expected.
func (p page) ended(workload string) (finished, dropped float64) {
	dropped = p.sum("replayd_requests_dropped_total", workload) - p.sum("replayd_requests_dropped_total", workload, "filtered")
	return p.sum("replayd_requests_total", workload), dropped
}

// balance holds the invariant of every scrape for each workload on the page.
func (p page) balance() (faults []string) {
	for _, w := range p.workloads() {
		finished, dropped := p.ended(w)
		flying, waiting := p.sum("replayd_requests_in_flight", w), p.sum("replayd_requests_waiting", w)
		if want := p.sum("replayd_requests_expected_total", w); finished+dropped+flying+waiting != want {
			faults = append(faults, fmt.Sprintf("%s: want expected = finished + dropped + in flight + waiting, got %v and %v + %v + %v + %v",
				w, want, finished, dropped, flying, waiting))
		}
	}
	return faults
}

// workloads are the names on the page.
func (p page) workloads() (names []string) {
	for _, m := range p["replayd_requests_expected_total"].GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == "workload" {
				names = append(names, l.GetValue())
			}
		}
	}
	return names
}

// counters are all of our own that must not fall, histograms by their parts. The key begins with the workload's name
// and a blank, where there is one.
func (p page) counters() map[string]float64 {
	all := map[string]float64{}
	for name, f := range p {
		if !strings.HasPrefix(name, "replayd_") {
			continue
		}
		for _, m := range f.GetMetric() {
			key := keyOf(name, m)
			if m.GetCounter() != nil {
				all[key] = m.GetCounter().GetValue()
			}
			if h := m.GetHistogram(); h != nil {
				all[key+" count"] = float64(h.GetSampleCount())
				all[key+" sum"] = h.GetSampleSum()
				for _, b := range h.GetBucket() {
					all[fmt.Sprint(key, " le ", b.GetUpperBound())] = float64(b.GetCumulativeCount())
				}
			}
		}
	}
	return all
}

func keyOf(name string, m *dto.Metric) string {
	var b strings.Builder
	for _, l := range m.GetLabel() {
		if l.GetName() == "workload" {
			b.WriteString(l.GetValue() + " ")
		}
	}
	b.WriteString(name)
	for _, l := range m.GetLabel() {
		fmt.Fprintf(&b, ",%s=%q", l.GetName(), l.GetValue())
	}
	return b.String()
}
