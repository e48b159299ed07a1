//go:build prometheus

package prometheus_test

import (
	"fmt"
	"math"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"replayd/test/machine"
	"replayd/test/outside"
)

func TestPrometheus(t *testing.T) {
	program := outside.PrometheusTool(t, "prometheus")
	if said, err := exec.CommandContext(t.Context(), program, "--version").Output(); err == nil {
		t.Logf("%s", said)
	}
	p := startPrometheus(t, program, startService(t))
	all := []string{both, native, openMetrics, text}
	for _, job := range all {
		outside.Until(t, func() error {
			if ups := p.number(t, fmt.Sprintf(`sum_over_time(up{job="%s"}[1m])`, job)); !(ups >= 10) {
				return fmt.Errorf("%s: want 10 scrapes to look at, got %v", job, ups)
			}
			return nil
		})
		if up := p.number(t, fmt.Sprintf(`min_over_time(up{job="%s"}[1m])`, job)); up != 1 {
			t.Errorf("%s: want up 1 always, got %v", job, up)
		}
		took := p.number(t, fmt.Sprintf(`max_over_time(scrape_duration_seconds{job="%s"}[1m])`, job))
		samples := p.number(t, fmt.Sprintf(`scrape_samples_scraped{job="%s"}`, job))
		t.Logf("%-12s at most %.0f ms and now %.0f samples a scrape", job, 1000*took, samples)
	}
	p.refused(t)
	t.Run("native histograms", func(t *testing.T) { p.nativeHistograms(t) })
	t.Run("classic histograms", func(t *testing.T) { p.classicHistograms(t) })
	t.Run("exemplars", func(t *testing.T) { p.seesExemplars(t) })
	t.Run("counters", func(t *testing.T) { p.counters(t, all) })
}

// refused checks that the job with the wrong password never got a page, and why.
func (p prometheus) refused(t *testing.T) {
	t.Helper()
	if up := p.number(t, `max_over_time(up{job="`+intruder+`"}[1m])`); up != 0 {
		t.Errorf("with a wrong password: want up 0, got %v", up)
	}
	var targets struct {
		ActiveTargets []struct{ ScrapePool, LastError string }
	}
	p.ask(t, "targets", nil, &targets)
	for _, target := range targets.ActiveTargets {
		want := ""
		if target.ScrapePool == intruder {
			want = "server returned HTTP status 401 Unauthorized"
		}
		if target.LastError != want {
			t.Errorf("%s: last error: want %q, got %q", target.ScrapePool, want, target.LastError)
		}
	}
	if len(targets.ActiveTargets) != 5 {
		t.Errorf("want 5 targets, got %v", targets.ActiveTargets)
	}
}

// nativeHistograms checks native histograms against the speeds of the simulated engine.
func (p prometheus) nativeHistograms(t *testing.T) {
	for _, job := range []string{both, native} {
		result := p.query(t, `replayd_ttft_seconds{job="`+job+`"}`)
		if len(result) != 1 || result[0].Histogram[1] == nil {
			t.Errorf("%s: want one native histogram, got %v", job, result)
			continue
		}
		h, _ := result[0].Histogram[1].(map[string]any)
		buckets, _ := h["buckets"].([]any)
		if len(buckets) == 0 {
			t.Errorf("%s: want buckets, got %v", job, result[0].Histogram[1])
		}
		q := p.number(t, `histogram_quantile(0.5, rate(replayd_ttft_seconds{job="`+job+`"}[10s]))`)
		// No answer is faster than the engine. A bucket is 2^(1/16) wide, and a busy machine adds delays.
		if q < firstToken.Seconds()/math.Pow(2, 1./16) || !(q < 4*firstToken.Seconds()) && machine.Measures(t, "the median TTFT") {
			t.Errorf("%s: want a median near %v, got %v s", job, firstToken, q)
		}
		t.Logf("%s: TTFT of %s requests in %d native buckets, median of 10 s %.1f ms", job, h["count"], len(buckets), 1000*q)
	}
	kinds := 0
	for _, one := range p.query(t, `{__name__=~"replayd_.+_seconds", job="`+native+`"}`) {
		if one.Histogram[1] != nil {
			kinds++
		}
	}
	if kinds != 12 { // docs/reference/metrics.md
		t.Errorf("want 12 native histograms, got %v", kinds)
	}
	for _, job := range []string{openMetrics, text} {
		if result := p.query(t, `replayd_ttft_seconds{job="`+job+`"}`); len(result) != 0 {
			t.Errorf("%s: want no native histogram, got %v", job, result)
		}
	}
}

// classicHistograms checks that both kinds have the same counts, and that classic histograms are there if requested.
func (p prometheus) classicHistograms(t *testing.T) {
	bounds := p.number(t, `count(replayd_ttft_seconds_bucket{job="`+both+`"})`)
	for _, job := range []string{openMetrics, text} {
		if n := p.number(t, `count(replayd_ttft_seconds_bucket{job="`+job+`"})`); n != bounds || !(n > 20) {
			t.Errorf("%s: want as many buckets as with both kinds, %v, got %v", job, bounds, n)
		}
	}
	if result := p.query(t, `replayd_ttft_seconds_bucket{job="`+native+`"}`); len(result) != 0 {
		t.Errorf("want no classic bucket beside the native ones unless they are asked for, got %d", len(result))
	}
	const same = `histogram_count(replayd_ttft_seconds{job="both"}) == ignoring(__name__) replayd_ttft_seconds_count{job="both"}`
	if n := p.number(t, same); !(n > 0) {
		t.Errorf("want one count in both kinds, got %v", n)
	}
	q := p.number(t, `histogram_quantile(0.5, rate(replayd_ttft_seconds_bucket{job="`+text+`"}[10s]))`)
	if q < 0.04 || !(q < 4*firstToken.Seconds()) && machine.Measures(t, "the median TTFT") { // 40 ms and 60 ms are bounds
		t.Errorf("text: want a median near %v, got %v s", firstToken, q)
	}
	t.Logf("text: median of 10 s %.1f ms from %.0f classic buckets", 1000*q, bounds)
}

// seesExemplars checks the exemplars that lead from a histogram to a request.
func (p prometheus) seesExemplars(t *testing.T) {
	for _, metric := range []string{"replayd_ttft_seconds", "replayd_e2e_seconds"} {
		for selector, wanted := range map[string]bool{
			metric + `{job="` + native + `"}`:             true,
			metric + `{job="` + both + `"}`:               true,
			metric + `_bucket{job="` + both + `"}`:        true,
			metric + `_bucket{job="` + openMetrics + `"}`: true,
			metric + `_bucket{job="` + text + `"}`:        false, // the text format has none
		} {
			found := p.exemplars(t, selector)
			if len(found) > 0 != wanted {
				t.Errorf("%s: want exemplars %v, got %v", selector, wanted, found)
			}
			for _, e := range found {
				if v, err := strconv.ParseFloat(e.Value, 64); len(e.Labels) != 1 || !strings.HasPrefix(e.Labels["request_id"], "steady/") || !(v > 0) {
					t.Errorf("%s: want the request_id of a row and its latency, got %v, %v", selector, e, err)
				}
			}
			if len(found) > 0 {
				t.Logf("%s: %d exemplars, such as %s s of %s", selector, len(found), found[0].Value, found[0].Labels["request_id"])
			}
		}
	}
}

// counters checks that the ledger balances at every scrape of Prometheus, in every format.
func (p prometheus) counters(t *testing.T, jobs []string) {
	for _, job := range jobs {
		sum := func(name, filter string) string { return fmt.Sprintf(`sum(replayd_%s{job="%s"%s})`, name, job, filter) }
		balance := sum("requests_expected_total", "") + " - " + sum("requests_total", "") + " - " + sum("requests_dropped_total", `,reason!="filtered"`) +
			" - " + sum("requests_in_flight", "") + " - " + sum("requests_waiting", "")
		if worst := p.number(t, "max_over_time(abs("+balance+")[1m:1s])"); worst != 0 {
			t.Errorf("%s: want expected = finished + dropped + in flight + waiting, the worst difference is %v", job, worst)
		}
		if rate := p.number(t, `sum(rate(replayd_requests_total{outcome="ok",job="`+job+`"}[10s]))`); !(math.Abs(rate*rowGap.Seconds()-1) <= 0.2) && machine.Measures(t, "the rate of requests") {
			t.Errorf("%s: want about %v requests/s, got %v", job, 1/rowGap.Seconds(), rate)
		}
	}
	if created := p.query(t, `{__name__=~"replayd_.+_created"}`); len(created) != 0 {
		t.Errorf("want no series of creation times, got %d", len(created))
	}
}
