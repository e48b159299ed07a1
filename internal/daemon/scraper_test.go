package daemon

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	commoncfg "github.com/prometheus/common/config"

	"replayd/internal/config"
	"replayd/internal/gpu"
	"replayd/internal/limits"
	"replayd/internal/measure"
	"replayd/internal/openai"
	"replayd/internal/scrape"
	"replayd/internal/sim"
	"replayd/test/outside"
)

// page scrapes the daemon.
func (d *daemon) page() outside.Page {
	d.t.Helper()
	p, err := outside.Scrape(d.t.Context(), d.url)
	if err != nil {
		d.t.Fatal(err)
	}
	return p
}

// until scrapes until a condition holds, and returns the page.
func (d *daemon) until(what string, holds func(p outside.Page) bool) outside.Page {
	d.t.Helper()
	for end := time.Now().Add(outside.Patience); ; {
		p := d.page()
		if holds(p) {
			return p
		}
		if time.Now().After(end) {
			d.t.Fatalf("it never came: %s", what)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// One scrape of the daemon has the series of the client, the engine and the GPUs, each as listed in docs/reference/metrics.md.
func TestOnePageHoldsAll(t *testing.T) {
	_, url := engine(t, func(*sim.Options) {})
	c := conf([]config.Target{target("sim", url)}, looped("w", "sim", write(t, "trace.jsonl", rows(20))))
	c.GPUs = []config.GPU{config.DefaultGPU()}
	c.GPUs[0].Target, c.GPUs[0].DCGMExporter = "sim", url+"/dcgm/metrics"
	c.Targets[0].Router.URL, c.Targets[0].Router.Interval = routerPage(t), time.Second
	one := config.DefaultComparison()
	one.Name, one.Workload, one.Candidate = "same", "w", "sim"
	c.Comparisons = []config.Comparison{one}
	d := start(t, c)
	if p := d.page(); p["replayd_engine_up"] == nil || p["replayd_gpu_up"] == nil {
		t.Error("want the engine and the GPUs on the first page, up or not")
	}
	for range 20 {
		d.next()
	}
	p := d.until("figures of the engine and the GPU", func(p outside.Page) bool {
		return p.Sum("replayd_engine_up", "sim") == 1 && p.Sum("replayd_gpu_up", "sim") == 1 && p.Sum("replayd_router_up", "sim") == 1
	})
	documented := map[string]outside.Documented{}
	for heading, common := range map[string]map[string][]string{
		"Workloads": {"series": {"workload", "target", "model"}}, "The process": {"series": nil}, "The engines": {"series": {"target", "address"}},
		"The routers": {"series": {"target", "address"}},
		"Comparisons": {"series": {"comparison"}, "series of the state file": nil},
		"The GPUs":    {"series": {"target", "source", "address"}, "figure": {"target", "gpu", "uuid", "model_name", "hostname", "mig_profile", "mig_instance"}},
	} {
		rows, err := outside.Tables("../../docs/reference/metrics.md", heading, common)
		if err != nil {
			t.Fatal(err)
		}
		for name, row := range rows {
			documented[name] = row
		}
	}
	shown := p.Series()
	for name, series := range shown {
		if want := documented[name]; want.Type != series.Type || !slices.Equal(want.Labels, series.Labels) {
			t.Errorf("%s: want %+v by the document, got %+v", name, want, series)
		}
	}
	for _, name := range []string{
		"replayd_ttft_seconds", "replayd_engine_ttft_seconds", "replayd_router_replicas_ready", "replayd_gpu_power_watts", "replayd_gpu_energy_joules_total",
		"replayd_comparison_verdict", "replayd_comparison_pairs_total",
	} {
		if _, ok := shown[name]; !ok {
			t.Errorf("want %s on the page", name)
		}
	}
	d.stop()
	d.end()
}

// Ranks and devices that pages invent are counted once they have no place, also after a reload.
func TestInventedLabelsAreCounted(t *testing.T) {
	_, url := engine(t, func(*sim.Options) {})
	var n atomic.Int64
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		for range 300 {
			if r.URL.Path == "/gpus" {
				fmt.Fprintf(w, "DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-%d\",Hostname=\"h\"} 1\n", n.Add(1))
			} else {
				fmt.Fprintf(w, "vllm:num_requests_waiting{engine=\"%d\"} 1\n", n.Add(1))
			}
		}
	}))
	defer page.Close()
	for _, path := range []string{"/ranks", "/gpus"} {
		c := conf([]config.Target{target("sim", url)}, looped("w", "sim", write(t, "trace.jsonl", rows(20))))
		c.Web.EnableLifecycle = true
		label := "rank"
		if path == "/ranks" {
			c.Targets[0].Metrics.URL, c.Targets[0].Metrics.Interval = page.URL+path, time.Second
		} else {
			label = "gpu"
			c.GPUs = []config.GPU{config.DefaultGPU()}
			c.GPUs[0].Target, c.GPUs[0].DCGMExporter, c.GPUs[0].Interval = "sim", page.URL+path, time.Second
		}
		d := start(t, c)
		p := d.until("values without a place", func(p outside.Page) bool { return p.Sum("replayd_label_overflow_total", label) >= 100 })
		if ranks, devices := len(p["replayd_engine_requests_waiting"].GetMetric()), len(p["replayd_gpu_power_watts"].GetMetric()); ranks > 256 || devices > 512 {
			t.Errorf("got %d ranks and %d devices", ranks, devices)
		}
		before := p.Sum("replayd_label_overflow_total", label)
		d.reload(func(c *config.Config) { // the places that are taken stay taken
			c.Targets[0].Metrics.Interval, c.Drain = 2*time.Second, c.Drain+1
			for i := range c.GPUs {
				c.GPUs[i].Interval = 2 * time.Second
			}
		})
		d.until("more of them", func(p outside.Page) bool { return p.Sum("replayd_label_overflow_total", label) >= before+200 })
		d.stop()
		d.end()
	}
}

// A reload that changes only the scraping keeps the workload running. Series that are no longer scraped leave the page.
func TestReloadOfScrapers(t *testing.T) {
	_, url := engine(t, func(*sim.Options) {})
	c := conf([]config.Target{target("sim", url)}, looped("w", "sim", write(t, "trace.jsonl", rows(90))))
	c.Web.EnableLifecycle = true
	d := start(t, c)
	up := func(p outside.Page) bool { return p.Sum("replayd_engine_up", "sim") == 1 }
	d.until("the engine's page", up)
	loops := map[int64][]int{}
	for range 3 {
		for range 60 {
			r := d.next()
			loops[r.Loop] = append(loops[r.Loop], r.Row)
		}
		d.reload(func(c *config.Config) {
			c.Targets = slices.Clone(c.Targets)
			c.Targets[0].Metrics.Interval += time.Second
		})
	}
	d.until("the engine's page by the new interval", up)
	d.reload(func(c *config.Config) {
		c.Targets = slices.Clone(c.Targets)
		c.Targets[0].Metrics.Interval = 0
		gpu := config.DefaultGPU()
		gpu.Target, gpu.DCGMExporter = "sim", url+"/dcgm/metrics"
		c.GPUs = []config.GPU{gpu}
	})
	d.until("the GPUs instead", func(p outside.Page) bool {
		return p["replayd_engine_up"] == nil && p.Sum("replayd_gpu_up", "sim") == 1
	})
	d.reload(func(c *config.Config) { c.GPUs = nil })
	d.until("neither", func(p outside.Page) bool { return p["replayd_engine_up"] == nil && p["replayd_gpu_up"] == nil })
	d.stop()
	d.end()
	d.cycled("w", loops)
	for n, got := range loops {
		for i, row := range got[1:] {
			if row <= got[i] && row < 89 { // answers may overtake each other by a row or two
				if slices.Contains(got[:i+1], row) {
					t.Fatalf("loop %d: row %d twice: the workload was replaced", n, row)
				}
			}
		}
	}
}

// A reload that changes the scraping does not open a guard: the old readings are used until the new scraper has some.
func TestReloadOfScrapersBlindsNoGuard(t *testing.T) {
	_, url := engine(t, func(*sim.Options) {})
	c := conf([]config.Target{target("sim", url)}, looped("w", "sim", write(t, "trace.jsonl", rows(90))))
	c.Web.EnableLifecycle = true
	c.Workloads[0].Guard = limits.Guard{Waiting: 1000, OnMissingMetrics: "pause", ResumeAfter: time.Minute}
	d := start(t, c)
	dropped := func(p outside.Page) float64 {
		return p.Sum("replayd_requests_dropped_total", "w", string(measure.Guarded))
	}
	before := dropped(d.until("requests", func(p outside.Page) bool { return p.Sum("replayd_requests_total", "w") > 0 }))
	for i := range 5 {
		d.reload(func(c *config.Config) {
			c.Targets = slices.Clone(c.Targets)
			c.Targets[0].Metrics.Interval = []time.Duration{time.Minute, time.Second, 2 * time.Second, 3 * time.Second, 2 * time.Second}[i]
			if i == 3 { // the addresses are resolved again
				c.Targets[0].Metrics.Replicas = "localhost"
			}
		})
		for range 30 {
			d.next()
		}
	}
	if got := dropped(d.page()); got != before {
		t.Errorf("want nothing more held back by the guard, got %v requests", got-before)
	}
	d.stop()
	d.end()
}

// A missing file of the scraping is an error of Build, like other faults.
func TestScrapersAreChecked(t *testing.T) {
	c := conf([]config.Target{target("sim", nobody)}, once("w", "sim", write(t, "trace.jsonl", rows(1))))
	c.Targets[0].Metrics.HTTP.TLSConfig.CAFile = "/no/such/ca.pem"
	c.Targets[0].Router.URL, c.Targets[0].Router.HTTP.TLSConfig.CAFile = nobody, "/no/such/other.pem"
	c.GPUs = []config.GPU{config.DefaultGPU()}
	c.GPUs[0].Target, c.GPUs[0].LibDCGM = "sim", "nowhere"
	o := (&heard{}).options(c)
	o.Engines, o.GPUs = scrape.NewCollector(prometheus.NewRegistry(), scrape.Engines), gpu.NewCollector(prometheus.NewRegistry())
	o.Routers = scrape.NewCollector(prometheus.NewRegistry(), scrape.Routers)
	_, err := Build(t.Context(), o)
	for _, want := range []string{`targets[0] "sim": metrics.http.tls_config: `, "/no/such/ca.pem", `router.http.tls_config: `, "/no/such/other.pem", "gpus[0].libdcgm: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q in the error, got %v", want, err)
		}
	}
}

// The guard of a workload reads the scraper of its target. It opens within one scrape when the engine's queue reaches
// the limit, and closes again.
func TestGuardReadsTheEngine(t *testing.T) {
	var waiting atomic.Int64
	_, url := engine(t, func(*sim.Options) {})
	metrics := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = io.WriteString(w, fmt.Sprintf("vllm:num_requests_waiting{engine=\"0\"} %d\n", waiting.Load()))
	}))
	defer metrics.Close()
	c := conf([]config.Target{target("sim", url)}, looped("w", "sim", write(t, "trace.jsonl", rows(90))))
	c.Targets[0].Metrics.URL, c.Targets[0].Metrics.Interval = metrics.URL, time.Second
	c.Workloads[0].Guard = limits.Guard{Waiting: 8, OnMissingMetrics: "pause"}
	d := start(t, c)
	limit := func(p outside.Page) float64 { return p.Sum("replayd_guard_open", "w", "waiting") }
	dropped := func(p outside.Page) float64 {
		return p.Sum("replayd_requests_dropped_total", "w", string(measure.Guarded))
	}
	d.until("requests", func(p outside.Page) bool { return p.Sum("replayd_requests_total", "w") > 0 })
	waiting.Store(8)
	d.until("the guard open", func(p outside.Page) bool { return limit(p) == 1 && dropped(p) > 0 })
	waiting.Store(7)
	p := d.until("the guard closed", func(p outside.Page) bool { return limit(p) == 0 })
	before := p.Sum("replayd_requests_total", "w")
	d.until("requests again", func(p outside.Page) bool { return p.Sum("replayd_requests_total", "w") > before })
	d.stop()
	d.end()
}

// The engines at an address know the keys of all targets with that address, so a page of one may repeat that of another.
func TestPagesHideTheKeysOfTheirAddress(t *testing.T) {
	clients := map[string]*openai.Client{}
	for name, at := range map[string]string{"one": "http://engine:8000", "two": "http://engine:8000/v1", "three": "http://engine:8000", "else": "http://engine:9000"} {
		of := openai.Target{Options: openai.Options{URL: at, API: openai.Chat, Output: openai.OutputMax}, Name: name}
		if name != "three" { // run has such a target for further pages
			of.HTTP.HTTPHeaders = &commoncfg.Headers{Headers: map[string]commoncfg.Header{"X-Api-Key": {Secrets: []commoncfg.Secret{commoncfg.Secret("key-" + name)}}}}
		}
		c, err := openai.New(of)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		clients[name] = c
	}
	var s shared
	s.clients.Store(&clients)
	for name, want := range map[string]string{
		"one": "<secret> <secret> key-else", "two": "<secret> <secret> key-else", "three": "<secret> <secret> key-else", "else": "key-one key-two <secret>",
		"gone": "key-one key-two key-else",
	} {
		if got := s.hidden(name)().Hide("key-one key-two key-else"); got != want {
			t.Errorf("%s: want %q, got %q", name, want, got)
		}
	}
}
