package metrics

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// CPU throttling of this process's cgroup. A throttled replayd sends late, and its lateness says nothing about the
// target.
var (
	descPeriods          = prometheus.NewDesc(namespace+"_cgroup_cpu_periods_total", "Enforcement periods of the cgroup's CPU limit that have passed.", nil, nil)
	descThrottledPeriods = prometheus.NewDesc(namespace+"_cgroup_cpu_throttled_periods_total", "Enforcement periods in which the cgroup was throttled.", nil, nil)
	descThrottledTime    = prometheus.NewDesc(namespace+"_cgroup_cpu_throttled_seconds_total", "Time for which the cgroup was throttled, summed over CPUs.", nil, nil)
)

// maxKernelFile is the maximum number of bytes read from a file in /proc or /sys; these files have a few hundred bytes.
const maxKernelFile = 64 << 10

type cgroup struct {
	root fs.FS
	stat string // path of cpu.stat under root
}

type cpuStat struct{ periods, throttled, throttledSeconds float64 }

// newCgroup finds the cpu.stat of this process, for cgroup version 1 or 2. It returns false if no cpu.stat has periods:
// not on Linux, no cgroup, or the root cgroup, which has no limit.
func newCgroup(root fs.FS) (*cgroup, bool) {
	text, err := readKernelFile(root, "proc/self/cgroup")
	if err != nil {
		return nil, false
	}
	for _, stat := range statCandidates(text) {
		c := &cgroup{root: root, stat: stat}
		if _, err := c.read(); err == nil {
			return c, true
		}
	}
	return nil, false
}

// statCandidates returns the possible paths of cpu.stat, best first, from the lines "ID:CONTROLLERS:PATH" of
// /proc/self/cgroup. The cpu controller belongs to version 1 if a line names it, else to version 2, whose line is
// "0::PATH". In a container the path can be the host's; then the root of the mount is the container's own cgroup.
func statCandidates(text string) []string {
	var v1, v2 []string
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		controllers, own := parts[1], path.Clean("/"+parts[2]) // the leading slash makes Clean remove any ".."
		if parts[0] == "0" && controllers == "" {
			v2 = append(v2, path.Join("sys/fs/cgroup", own, "cpu.stat"), "sys/fs/cgroup/cpu.stat")
			continue
		}
		if slices.Contains(strings.Split(controllers, ","), "cpu") {
			v1 = append(v1, path.Join("sys/fs/cgroup/cpu", own, "cpu.stat"), "sys/fs/cgroup/cpu/cpu.stat")
		}
	}
	return append(v1, v2...)
}

func (c *cgroup) read() (cpuStat, error) {
	text, err := readKernelFile(c.root, c.stat)
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

func readKernelFile(root fs.FS, name string) (_ string, err error) {
	f, err := root.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text, err := io.ReadAll(io.LimitReader(f, maxKernelFile))
	return string(text), err
}

// Describe implements prometheus.Collector.
func (c *cgroup) Describe(ch chan<- *prometheus.Desc) {
	ch <- descPeriods
	ch <- descThrottledPeriods
	ch <- descThrottledTime
}

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
