package metrics

import (
	"io/fs"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/collectors/version"

	"replayd/internal/scarce"
)

// A Process holds the series of the process itself: build, Go runtime, operating system, cgroup and configuration.
type Process struct {
	successful, successTime prometheus.Gauge
}

// NewProcess registers the series of the process with reg and panics if they are already registered. loaded is the time
// at which the configuration was loaded. root is the root of the file system with /proc and /sys, usually
// os.DirFS("/"); if the process has no cgroup with CPU accounting, there are no series of CPU throttling. dropped
// returns the number of log lines that were not written; nil stands for 0.
func NewProcess(reg prometheus.Registerer, root fs.FS, loaded time.Time, dropped func() uint64) *Process {
	if dropped == nil {
		dropped = func() uint64 { return 0 }
	}
	started := prometheus.NewGauge(prometheus.GaugeOpts(opts("start_time_seconds",
		"Start time of the process since unix epoch in seconds.")))
	started.Set(float64(loaded.UnixNano()) / 1e9)
	p := &Process{
		successful: prometheus.NewGauge(prometheus.GaugeOpts(opts("config_last_reload_successful",
			"Whether the last configuration reload attempt was successful."))),
		successTime: prometheus.NewGauge(prometheus.GaugeOpts(opts("config_last_reload_success_timestamp_seconds",
			"Timestamp of the last successful configuration reload."))),
	}
	reg.MustRegister(
		p.successful, p.successTime, started,
		prometheus.NewCounterFunc(prometheus.CounterOpts(opts("log_lines_dropped_total",
			"Log lines that could not be written: stderr was closed, or was not read in time.")),
			func() float64 { return float64(dropped()) }),
		version.NewCollector(namespace),
		openMetrics{collectors.NewGoCollector()},
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	for _, r := range scarce.Resources() {
		o := prometheus.CounterOpts(opts("resource_shortages_total",
			"Connections and files that replayd could not open for want of a resource of its own or of its machine."))
		o.ConstLabels = prometheus.Labels{"resource": string(r)}
		reg.MustRegister(prometheus.NewCounterFunc(o, func() float64 { return float64(scarce.Times(r)) }))
	}
	if c, found := newCgroup(root); found {
		reg.MustRegister(c)
	}
	p.Reloaded(nil, loaded)
	return p
}

// Link registers the series of the addresses that links in alerts begin with; "": not known.
func Link(reg prometheus.Registerer, external, runbook, dashboards string) {
	o := prometheus.GaugeOpts(opts("web_info", "Where people reach this process, the runbook and the dashboards, for links in alerts."))
	info := prometheus.NewGaugeVec(o, []string{"external_url", "runbook_url", "dashboards_url"})
	reg.MustRegister(info)
	info.WithLabelValues(external, runbook, dashboards).Set(1)
}

// Reloaded records the result and time of a reload. After a failure the old configuration and its time stay.
func (p *Process) Reloaded(err error, at time.Time) {
	if err != nil {
		p.successful.Set(0)
		return
	}
	p.successful.Set(1)
	p.successTime.Set(float64(at.UnixNano()) / 1e9)
}

// openMetrics is Go's collector without the counter go_memstats_alloc_bytes_total. In OpenMetrics it is of the family
// go_memstats_alloc_bytes, which is a gauge here, and strict parsers refuse a page with both.
type openMetrics struct{ prometheus.Collector }

// Describe implements prometheus.Collector.
func (c openMetrics) Describe(ch chan<- *prometheus.Desc) {
	passed(c.Collector.Describe, ch, func(d *prometheus.Desc) *prometheus.Desc { return d })
}

// Collect implements prometheus.Collector.
func (c openMetrics) Collect(ch chan<- prometheus.Metric) {
	passed(c.Collector.Collect, ch, prometheus.Metric.Desc)
}

// passed hands on what comes from a collector, but for the counter.
func passed[T any](from func(chan<- T), to chan<- T, of func(T) *prometheus.Desc) {
	all := make(chan T)
	go func() {
		defer close(all)
		from(all)
	}()
	for v := range all {
		if !strings.Contains(of(v).String(), `"go_memstats_alloc_bytes_total"`) {
			to <- v
		}
	}
}
