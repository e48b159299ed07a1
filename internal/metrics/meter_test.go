package metrics

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"replayd/internal/measure"
	"replayd/test/measuretest"

	"github.com/prometheus/client_golang/prometheus"
)

// holds checks expected = finished + dropped (without filtered) + in flight + waiting.
func holds(t *testing.T, p page, name string) {
	t.Helper()
	l := "workload=" + name
	expected := p.sum("replayd_requests_expected_total", l)
	dropped := p.sum("replayd_requests_dropped_total", l) - p.sum("replayd_requests_dropped_total", l, "reason=filtered")
	finished := p.sum("replayd_requests_total", l)
	rest := p.sum("replayd_requests_in_flight", l) + p.sum("replayd_requests_waiting", l)
	if expected != finished+dropped+rest {
		t.Errorf("%s: expected %v, finished %v + dropped %v + in flight and waiting %v", name, expected, finished, dropped, rest)
	}
	good, broken := p.sum("replayd_goodput_requests_total", l), p.sum("replayd_slo_violations_total", l, "slo=error")
	if good+broken > finished {
		t.Errorf("%s: goodput %v + errors %v over finished %v", name, good, broken, finished)
	}
}

// Each method of Workload is one step: a request is never in two states or in none. A reader that always waits for the
// lock gets it between two steps of a method that has two.
func TestVerbsAreOneStep(t *testing.T) {
	w := NewMeter(prometheus.NewRegistry()).Workload(labels, WorkloadOptions{SLO: measuretest.SLO})
	s := w.now()
	var stop atomic.Bool
	var reader sync.WaitGroup
	reader.Go(func() {
		for !stop.Load() && !t.Failed() {
			n := s.counts()
			sum, sessions := n.open[waiting]+n.open[inFlight], n.open[inProgress]
			for _, v := range n.finished {
				sum += v
			}
			for i, v := range n.dropped {
				if allDropReasons[i] != measure.Filtered {
					sum += v
				}
			}
			for _, v := range n.sessions.ended {
				sessions += v
			}
			if n.expected != sum || n.sessions.begun != sessions {
				t.Errorf("expected %d, accounted for %d; %d sessions begun, accounted for %d",
					n.expected, sum, n.sessions.begun, sessions)
			}
		}
	})
	for range 2000 {
		w.Expected(40)
		w.Filtered(5)
		for _, why := range allDropReasons {
			if why != measure.Filtered {
				w.Dropped(why)
			}
		}
		for _, s := range measuretest.Sessions() {
			w.SessionBegun()
			w.SessionEnded(&s)
		}
		for _, o := range allOutcomes {
			w.Sent()
			w.Unsent()
			w.Sent()
			w.Finished(measuretest.Request("w/0/0", 0, o, time.Millisecond, 2*time.Millisecond))
		}
	}
	stop.Store(true)
	reader.Wait()
}

func TestExpectedIsAccountedForAtEveryScrape(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := NewMeter(reg)
	var lanes sync.WaitGroup
	var stop atomic.Bool
	for seed, name := range []string{"a", "a", "b", "b"} { // two workloads that share their series, as during a reload
		w := m.Workload(Labels{Workload: name, Target: "t"}, WorkloadOptions{SLO: measuretest.SLO})
		lanes.Go(func() { randomSteps(w, rand.New(rand.NewPCG(uint64(seed), 1)), &stop) })
	}
	for range 50 {
		p := gather(t, reg)
		holds(t, p, "a")
		holds(t, p, "b")
	}
	stop.Store(true)
	lanes.Wait()
	p := gather(t, reg)
	for _, name := range []string{"a", "b"} { // randomSteps finishes all requests
		holds(t, p, name)
		if n := p.sum("replayd_requests_waiting", "workload="+name) + p.sum("replayd_requests_in_flight", "workload="+name); n != 0 {
			t.Errorf("%s: %v requests left over", name, n)
		}
		if n := p.sum("replayd_requests_total", "workload="+name); n == 0 {
			t.Errorf("%s: nothing happened", name)
		}
	}
}

func randomSteps(w *Workload, rnd *rand.Rand, stop *atomic.Bool) {
	waiting, inFlight := 0, 0
	finish := func() {
		o := allOutcomes[rnd.IntN(len(allOutcomes))]
		w.Finished(measuretest.Request("w/0/0", 0, o, 10*time.Millisecond, time.Duration(10+rnd.IntN(1500))*time.Millisecond))
		inFlight--
	}
	for !stop.Load() {
		switch k := rnd.IntN(5); {
		case k == 0:
			n := 1 + rnd.IntN(3)
			w.Expected(n)
			waiting += n
		case k == 1:
			w.Filtered(rnd.IntN(3))
		case k == 2 && waiting > 0:
			w.Dropped(allDropReasons[rnd.IntN(indexOf(allDropReasons, measure.Filtered))])
			waiting--
		case k == 3 && waiting > 0:
			w.Sent()
			waiting--
			inFlight++
		case inFlight > 0:
			finish()
		}
	}
	for ; waiting > 0; waiting-- {
		w.Dropped(measure.Shutdown)
	}
	for inFlight > 0 {
		finish()
	}
}

func TestRemovedWorkloadReturnsWhereItStood(t *testing.T) {
	reg, m, w := born(t)
	serves(w, "Qwen/Qwen3-8B")
	script(w)
	before := gather(t, reg)
	m.Remove(w)
	m.Remove(w) // the second call has no effect
	if p := gather(t, reg); len(p) != 2 || p["replayd_record_errors_total"] == nil || p["replayd_label_overflow_total"] == nil {
		t.Errorf("after the removal the page still has %d families", len(p))
	}

	m.Workload(labels, WorkloadOptions{})
	after := gather(t, reg)
	for _, name := range []string{"replayd_requests_total", "replayd_requests_expected_total", "replayd_itl_seconds", "replayd_tokens_total"} {
		if got, want := after.sum(name), before.sum(name); got != want || want == 0 {
			t.Errorf("%s = %v after the return, want %v", name, got, want)
		}
	}
	if after["replayd_slo_threshold_seconds"] != nil {
		t.Error("bounds of the old configuration are still there")
	}
	if got := after.sum("replayd_shards"); got != 1 || after.sum("replayd_shard_index") != 0 {
		t.Errorf("%v shards without a word about them, want 1", got)
	}
	if after["replayd_target_info"] != nil {
		t.Error("what the server said before the removal is still there")
	}
	if got := after.sum("replayd_position_seconds"); got != 0 {
		t.Errorf("position %v s of a runner that is gone, want 0", got)
	}
}

func TestSuccessorSharesSeries(t *testing.T) {
	reg, m, old := born(t)
	old.Expected(1)
	next := m.Workload(labels, WorkloadOptions{SLO: measure.SLO{{Quantity: measure.E2E, Limit: 60_000}}, Objective: 0.9, Shard: Shard{1, 2}})
	next.Expected(1)
	m.Remove(old)
	p := gather(t, reg)
	if got := p.sum("replayd_requests_expected_total"); got != 2 {
		t.Errorf("expected %v, want 2", got)
	}
	if got := p.sum("replayd_slo_threshold_seconds"); got != 60 {
		t.Errorf("thresholds add up to %v s, want the successor's 60", got)
	}
	if objective, shard, of := p.sum("replayd_slo_objective_ratio"), p.sum("replayd_shard_index"), p.sum("replayd_shards"); objective != 0.9 || shard != 1 || of != 2 {
		t.Errorf("objective %v, shard %v of %v, want the successor's 0.9, 1 of 2", objective, shard, of)
	}
}

func TestOnlyTheLatestRemovedAreKept(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := NewMeter(reg)
	name := func(i int) Labels { return Labels{Workload: fmt.Sprint("w", i), Target: "t"} }
	for i := range keptRemoved + 1 {
		w := m.Workload(name(i), WorkloadOptions{})
		w.Expected(1)
		w.Sent()
		w.Finished(measuretest.Request("id", 0, measure.OK, time.Millisecond))
		m.Remove(w)
	}
	for i, want := range map[int]float64{0: 0, 1: 1, keptRemoved: 1} {
		m.Workload(name(i), WorkloadOptions{})
		p, l := gather(t, reg), fmt.Sprint("workload=w", i)
		if got := p.sum("replayd_requests_total", l); got != want {
			t.Errorf("w%d came back with %v requests, want %v", i, got, want)
		}
		if got := p.sum("replayd_ttft_seconds", l); got != want {
			t.Errorf("w%d came back with %v TTFTs, want %v", i, got, want)
		}
	}
}

// A workload that returned is live: removals after its return do not evict it.
func TestReturnedWorkloadIsNotForgotten(t *testing.T) {
	reg, m, w := born(t)
	m.Remove(w)
	m.Workload(labels, WorkloadOptions{}).Expected(3)
	for i := range keptRemoved + 1 {
		m.Remove(m.Workload(Labels{Workload: fmt.Sprint("w", i)}, WorkloadOptions{}))
	}
	if got := gather(t, reg).sum("replayd_requests_expected_total"); got != 3 {
		t.Errorf("expected %v, want 3", got)
	}
}

func TestBrokenTextDoesNotBreakTheScrape(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := NewMeter(reg)
	w := m.Workload(Labels{Workload: "w", Target: "t", Model: "\xffm"}, WorkloadOptions{Trace: TraceInfo{Path: "a\xffb", SHA256: "12"}})
	for _, id := range []string{"", "a\xffb", strings.Repeat("é", 200)} { // client_golang rejects these exemplars
		w.Finished(measuretest.Request(id, 0, measure.OK, time.Millisecond))
	}
	p := gather(t, reg)
	if n := len(p.metrics("replayd_trace_info", "model=\uFFFDm", "path=a\uFFFDb", "sha256=12")); n != 1 {
		t.Errorf("trace_info with the bytes replaced: %d, want 1", n)
	}
	if n := p.sum("replayd_ttft_seconds"); n != 3 {
		t.Errorf("%v TTFTs, want 3", n)
	}
}

func TestExemplarsCarryTheRequestID(t *testing.T) {
	longest := strings.Repeat("x", 128-len("request_id"))
	for id, want := range map[string]bool{"w/0/1": true, longest: true, longest + "x": false} {
		reg := prometheus.NewPedanticRegistry()
		w := NewMeter(reg).Workload(labels, WorkloadOptions{})
		w.Finished(measuretest.Request(id, 0, measure.OK, 10*time.Millisecond, 20*time.Millisecond))
		p := gather(t, reg)
		for _, name := range []string{"ttft", "ttft_from_due", "e2e", "e2e_from_due"} {
			var ids []string
			for _, b := range p.metrics("replayd_" + name + "_seconds")[0].GetHistogram().GetBucket() {
				if e := b.GetExemplar(); e != nil {
					ids = append(ids, e.GetLabel()[0].GetValue())
				}
			}
			if got := slices.Contains(ids, id); got != want {
				t.Errorf("%s: exemplar of a request id of %d bytes: %v, want %v", name, len(id), got, want)
			}
		}
	}
}

func TestHistogramsAreClassicAndNative(t *testing.T) {
	// The bounds of vLLM's histograms, vllm/v1/metrics/loggers.py.
	vllmITL := []float64{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	vllmTTFT := []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	vllmE2E := []float64{0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
	engine := map[string][]float64{
		"ttft": vllmTTFT, "ttfat": vllmTTFT, "ttft_from_due": vllmTTFT, "itl": vllmITL, "tpot": vllmITL, "e2e": vllmE2E, "e2e_from_due": vllmE2E,
	}
	reg, _, w := born(t)
	script(w)
	p := gather(t, reg)
	for _, o := range histOpts {
		h := p.metrics("replayd_" + o.Name)[0].GetHistogram()
		var bounds []float64
		for _, b := range h.GetBucket() {
			bounds = append(bounds, b.GetUpperBound())
		}
		for _, b := range engine[strings.TrimSuffix(o.Name, "_seconds")] {
			if !slices.Contains(bounds, b) {
				t.Errorf("%s lacks vLLM's bound %v", o.Name, b)
			}
		}
		if h.GetSchema() != 4 { // the largest 2^(2^−n) ≤ 1.05 has n = 4
			t.Errorf("%s: schema %d, want 4", o.Name, h.GetSchema())
		}
		zero := 100e-6
		if o.Name == "read_delay_seconds" || o.Name == "connect_seconds" {
			zero = 1e-6
		}
		if h.GetZeroThreshold() != zero {
			t.Errorf("%s: zero threshold %v, want %v", o.Name, h.GetZeroThreshold(), zero)
		}
	}
}

func TestNativeBucketsStayBoundedWithoutAReset(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	w := NewMeter(reg).Workload(labels, WorkloadOptions{})
	n := 0
	for d := 100 * time.Microsecond; d < 100*time.Hour; d += d / 20 { // 31 doublings × 16 buckets = 500 without a bound
		w.Finished(measuretest.Request("id", 0, measure.OK, d))
		n++
	}
	h := gather(t, reg).metrics("replayd_ttft_seconds")[0].GetHistogram()
	buckets := 0
	for _, span := range h.GetPositiveSpan() {
		buckets += int(span.GetLength())
	}
	if buckets > 160 || buckets < 80 {
		t.Errorf("%d native buckets, want 80 to 160", buckets)
	}
	if h.GetSampleCount() != uint64(n) {
		t.Errorf("%d values, want all %d: there is no reset", h.GetSampleCount(), n)
	}
}

// Series per workload: the classic buckets, +Inf, sum and count of 12 histograms, and the plain series. Each costs
// memory in Prometheus, so a change of this number must be deliberate.
func TestSeriesPerWorkload(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	NewMeter(reg).Workload(labels, WorkloadOptions{SLO: measuretest.SLO[:3]}) // each further bound adds two
	waits, connect, read, ttft, itl, e2e := 3*(15+3), 10+3, 9+3, 3*(22+3), 2*(24+3), 2*(22+3)
	histograms := waits + connect + read + ttft + itl + e2e
	counts := 1 + 18 + 9 + 2 // expected, allOutcomes, reasons, in flight and waiting
	// retries, coalesced reads, sources, tokens, mismatches, without usage, usage rules, unread, finish reasons
	trust := 1 + 1 + 2 + 4 + 2 + 1 + 7 + 1 + 6
	service, loop, trace := 3+4+3+1, 9+5, 2+2 // goodput, eligible and not judged, violations, thresholds, objective; loop, up, stuck, paused and the guard's limits; shard and trace
	want := histograms + counts + trust + service + loop + trace
	if want != 342 {
		t.Errorf("the sum is %d, it was 342", want)
	}
	got := -1 // do not count replayd_record_errors_total
	for line := range strings.Lines(text(t, reg)) {
		if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "replayd_label_overflow_total") {
			got++
		}
	}
	if got != want {
		t.Errorf("%d series, want %d", got, want)
	}
}

func TestFreeOutputIsNoMismatch(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	w := NewMeter(reg).Workload(labels, WorkloadOptions{FreeOutput: true})
	r := measuretest.Request("id", 0, measure.OK, time.Millisecond)
	r.InputTokens, r.OutputTokens = 100, 50
	w.Finished(r)
	if got := gather(t, reg).sum("replayd_length_mismatch_total"); got != 0 {
		t.Errorf("%v mismatches, want 0", got)
	}
}

func TestMistakesInTheProgramPanic(t *testing.T) {
	_, _, w := born(t)
	for name, f := range map[string]func(){
		"outcome":  func() { w.Finished(&measure.Request{Outcome: "odd"}) },
		"reason":   func() { w.Dropped("odd") },
		"filtered": func() { w.Dropped(measure.Filtered) },
		"twice":    func() { reg := prometheus.NewRegistry(); NewMeter(reg); NewMeter(reg) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}
