package metrics

import (
	"io/fs"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/collectors/version"
)

// A Process holds the series of the process itself: build, Go runtime, operating system, cgroup and configuration.
type Process struct {
	successful, successTime prometheus.Gauge
}

// NewProcess registers the series of the process with reg and panics when they are there already. The configuration
// counts as loaded at the given instant. The root of the file system is where /proc and /sys are looked for: os.DirFS("/");
// where the process is in no cgroup with CPU accounting, the series of CPU throttling are left out. dropped tells how many log lines
// were not written; nil: none are dropped.
func NewProcess(reg prometheus.Registerer, root fs.FS, loaded time.Time, dropped func() uint64) *Process {
	if dropped == nil {
		dropped = func() uint64 { return 0 }
	}
	p := &Process{
		successful: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: namespace,
			Name:      "config_last_reload_successful",
			Help:      "Whether the last configuration reload attempt was successful.",
		}),
		successTime: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: namespace,
			Name:      "config_last_reload_success_timestamp_seconds",
			Help:      "Timestamp of the last successful configuration reload.",
		}),
	}
	reg.MustRegister(
		p.successful, p.successTime,
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Namespace: namespace,
			Name:      "log_lines_dropped_total",
			Help:      "Log lines that could not be written: stderr was closed, or was not read in time.",
		}, func() float64 { return float64(dropped()) }),
		version.NewCollector(namespace),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	if c, found := newCgroup(root); found {
		reg.MustRegister(c)
	}
	p.Reloaded(nil, loaded)
	return p
}

// Reloaded says how an attempt to load the configuration ended, and when. After a failure the old one stays, and with
// it its instant.
func (p *Process) Reloaded(err error, at time.Time) {
	if err != nil {
		p.successful.Set(0)
		return
	}
	p.successful.Set(1)
	p.successTime.Set(float64(at.UnixNano()) / 1e9)
}
