package outside

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Call sends a request without a body and reads the answer.
func Call(ctx context.Context, client *http.Client, method, url string) (status int, body []byte, err error) {
	return call(ctx, client, method, url, "")
}

func call(ctx context.Context, client *http.Client, method, url, accept string) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return 0, nil, err
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

// Post expects an answer with the given status and returns its body.
func Post(t *testing.T, url string, want int) string {
	t.Helper()
	status, body, err := Call(t.Context(), http.DefaultClient, http.MethodPost, url)
	if err != nil {
		t.Fatal(err)
	}
	if status != want {
		t.Fatalf("POST %s: want %d, got %d: %s", url, want, status, body)
	}
	return string(body)
}

// A Page is one scrape of replayd.
type Page map[string]*dto.MetricFamily

// Scrape reads the page. It returns an error if the connection fails or the status is not 200.
func Scrape(ctx context.Context, url string) (Page, error) {
	body, err := scrape(ctx, url, "")
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("/metrics: %w", err)
	}
	return families, nil
}

func scrape(ctx context.Context, url, accept string) ([]byte, error) {
	status, body, err := call(ctx, http.DefaultClient, http.MethodGet, url+"/metrics", accept)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("/metrics: want 200, got %d: %s", status, body)
	}
	return body, err
}

// Sum adds the values of a family over the metrics that have all given label values.
func (p Page) Sum(name string, values ...string) (sum float64) {
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

// Ended returns how many requests of a workload have finished, and how many were dropped after they were expected.
func (p Page) Ended(workload string) (finished, dropped float64) {
	dropped = p.Sum("replayd_requests_dropped_total", workload) - p.Sum("replayd_requests_dropped_total", workload, "filtered")
	return p.Sum("replayd_requests_total", workload), dropped
}

// Balance checks the ledger of each workload on the page, which holds at every scrape.
func (p Page) Balance() (faults []string) {
	names := p.Workloads()
	if len(names) == 0 {
		return []string{"want a workload on the page, there is none"}
	}
	for _, w := range names {
		finished, dropped := p.Ended(w)
		flying, waiting := p.Sum("replayd_requests_in_flight", w), p.Sum("replayd_requests_waiting", w)
		if want := p.Sum("replayd_requests_expected_total", w); finished+dropped+flying+waiting != want {
			faults = append(faults, fmt.Sprintf("%s: want expected = finished + dropped + in flight + waiting, got %v and %v + %v + %v + %v",
				w, want, finished, dropped, flying, waiting))
		}
	}
	return faults
}

// Workloads returns the workloads on the page.
func (p Page) Workloads() (names []string) {
	for _, m := range p["replayd_requests_expected_total"].GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == "workload" {
				names = append(names, l.GetValue())
			}
		}
	}
	return names
}

// See scrapes until the page shows something.
func See(t *testing.T, url, what string, shows func(Page) bool) (p Page) {
	t.Helper()
	Until(t, func() (err error) {
		if p, err = Scrape(t.Context(), url); err == nil && !shows(p) {
			err = fmt.Errorf("want on the page: %s", what)
		}
		return err
	})
	return p
}

// Counters returns replayd's own counters, and histograms by their parts. The key begins with the workload's name and a
// blank, if there is one.
func (p Page) Counters() map[string]float64 {
	all := map[string]float64{}
	for name, f := range p {
		if !strings.HasPrefix(name, "replayd_") || strings.HasPrefix(name, "replayd_engine_") || strings.HasPrefix(name, "replayd_gpu_") {
			continue // metrics of engines and GPUs pass through with their resets
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

// ScrapeNative reads the page as a Prometheus with native histograms does.
func ScrapeNative(t *testing.T, url string) Page {
	t.Helper()
	format := expfmt.NewFormat(expfmt.TypeProtoDelim)
	body, err := scrape(t.Context(), url, string(format))
	if err != nil {
		t.Fatal(err)
	}
	page := Page{}
	for d := expfmt.NewDecoder(bytes.NewReader(body), format); ; {
		var f dto.MetricFamily
		err := d.Decode(&f)
		if errors.Is(err, io.EOF) {
			return page
		}
		if err != nil {
			t.Fatalf("/metrics: %v", err)
		}
		page[f.GetName()] = &f
	}
}
