//go:build daemon

package daemon_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"replayd/test/outside"
)

// A page is one scrape.
type page = outside.Page

// see scrapes until the page shows something.
func see(t *testing.T, url, what string, within time.Duration, shows func(page) bool) (p page) {
	t.Helper()
	outside.Until(t, within, func() (err error) {
		if p, err = outside.Scrape(t.Context(), url); err == nil && !shows(p) {
			err = fmt.Errorf("want on the page: %s", what)
		}
		return err
	})
	return p
}

// counters are all of our own that must not fall, histograms by their parts. The key begins with the workload's name
// and a blank, where there is one.
func counters(p page) map[string]float64 {
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
