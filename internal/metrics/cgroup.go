package metrics

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"replayd/internal/scarce"
)

// CPU throttling of this process's cgroup. A throttled replayd sends late, and its lateness says nothing about the
// target.
var (
	descPeriods          = prometheus.NewDesc(namespace+"_cgroup_cpu_periods_total", "Enforcement periods of the cgroup's CPU limit that have passed.", nil, nil)
	descThrottledPeriods = prometheus.NewDesc(namespace+"_cgroup_cpu_throttled_periods_total", "Enforcement periods in which the cgroup was throttled.", nil, nil)
	descThrottledTime    = prometheus.NewDesc(namespace+"_cgroup_cpu_throttled_seconds_total", "Time for which the cgroup was throttled, summed over CPUs.", nil, nil)
)

type cgroup struct {
	root fs.FS
	stat string // path of cpu.stat under root
}

type cpuStat struct{ periods, throttled, throttledSeconds float64 }

// newCgroup finds the cpu.stat of this process, for cgroup version 1 or 2. It returns false if no cpu.stat has periods:
// not on Linux, no cgroup, or the root cgroup, which has no limit.
func newCgroup(root fs.FS) (*cgroup, bool) {
	for _, own := range scarce.Cgroups(root, "cpu") {
		// In a container the path can be the host's; then the root of the mount is the container's own cgroup.
		for _, at := range []string{own.Path, "/"} {
			c := &cgroup{root: root, stat: path.Join(own.Mount, at, "cpu.stat")}
			if _, err := c.read(); err == nil {
				return c, true
			}
		}
	}
	return nil, false
}

func (c *cgroup) read() (cpuStat, error) {
	text, err := scarce.ReadKernel(c.root, c.stat)
	if err != nil {
		return cpuStat{}, err
	}
	return parseCPUStat(text)
}

// parseCPUStat parses the lines "KEY VALUE" of cpu.stat: throttled_usec of version 2 in microseconds, throttled_time of
// version 1 in nanoseconds (Linux, Documentation/admin-guide/cgroup-v2.rst and scheduler/sched-bwc.rst). It ignores
// other keys.
func parseCPUStat(text string) (cpuStat, error) {
	values := map[string]float64{}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !slices.Contains([]string{"nr_periods", "nr_throttled", "throttled_usec", "throttled_time"}, key) {
			continue
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 0 {
			return cpuStat{}, fmt.Errorf("cpu.stat: %s: want an integer ≥ 0, got %q", key, value)
		}
		values[key] = float64(n)
	}
	periods, seen := values["nr_periods"]
	if !seen {
		return cpuStat{}, errors.New("cpu.stat: nr_periods: want it, got none")
	}
	return cpuStat{periods, values["nr_throttled"], values["throttled_usec"]/1e6 + values["throttled_time"]/1e9}, nil
}

// Describe implements prometheus.Collector.
func (c *cgroup) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

// Collect implements prometheus.Collector. If cpu.stat cannot be read, there are no samples, but the scrape succeeds.
func (c *cgroup) Collect(ch chan<- prometheus.Metric) {
	s, err := c.read()
	if err != nil {
		return
	}
	ch <- prometheus.MustNewConstMetric(descPeriods, prometheus.CounterValue, s.periods)
	ch <- prometheus.MustNewConstMetric(descThrottledPeriods, prometheus.CounterValue, s.throttled)
	ch <- prometheus.MustNewConstMetric(descThrottledTime, prometheus.CounterValue, s.throttledSeconds)
}
