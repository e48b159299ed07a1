package metrics

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"replayd/internal/scarce"
	"replayd/test/measuretest"

	"github.com/prometheus/client_golang/prometheus"
)

// The files of a container: 100 periods, 7 of them throttled, for 1.5 s.
var container = fstest.MapFS{
	"proc/self/cgroup":       {Data: []byte("0::/\n")},
	"sys/fs/cgroup/cpu.stat": {Data: []byte("usage_usec 9\nnr_periods 100\nnr_throttled 7\nthrottled_usec 1500000\n")},
}

func TestProcess(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	p := NewProcess(reg, container, measuretest.Start, func() uint64 { return 3 })
	f := func(want float64, family string) {
		t.Helper()
		if got := gather(t, reg).sum(family); got != want {
			t.Errorf("%s = %v, want %v", family, got, want)
		}
	}
	loaded := float64(measuretest.Start.Unix())
	f(1, "replayd_config_last_reload_successful")
	f(loaded, "replayd_config_last_reload_success_timestamp_seconds")
	f(1, "replayd_build_info")
	f(3, "replayd_log_lines_dropped_total")
	f(100, "replayd_cgroup_cpu_periods_total")
	f(7, "replayd_cgroup_cpu_throttled_periods_total")
	f(1.5, "replayd_cgroup_cpu_throttled_seconds_total")

	p.Reloaded(errors.New("bad file"), measuretest.Start.Add(1000*time.Millisecond))
	f(0, "replayd_config_last_reload_successful")
	f(loaded, "replayd_config_last_reload_success_timestamp_seconds")
	p.Reloaded(nil, measuretest.Start.Add(2500*time.Millisecond))
	f(1, "replayd_config_last_reload_successful")
	f(loaded+2.5, "replayd_config_last_reload_success_timestamp_seconds")

	page := gather(t, reg)
	for _, name := range []string{"go_goroutines", "go_memstats_alloc_bytes", "process_start_time_seconds"} {
		if page[name] == nil {
			t.Errorf("no %s", name)
		}
	}
	if page["go_memstats_alloc_bytes_total"] != nil {
		t.Error("want no go_memstats_alloc_bytes_total: as OpenMetrics it is of another family's name")
	}
	f(loaded, "replayd_start_time_seconds")
}

func TestCgroupIsFound(t *testing.T) {
	const v2 = "nr_periods 10\nnr_throttled 4\nthrottled_usec 250000\n"
	const v1 = "nr_periods 10\nnr_throttled 4\nthrottled_time 250000000\n"
	want := cpuStat{periods: 10, throttled: 4, throttledSeconds: 0.25}
	f := func(name, self, path, stat string, found bool) {
		t.Helper()
		root := fstest.MapFS{"proc/self/cgroup": {Data: []byte(self)}, path: {Data: []byte(stat)}}
		c, ok := newCgroup(root)
		if ok != found {
			t.Errorf("%s: found %v, want %v", name, ok, found)
		}
		if !ok {
			return
		}
		if got, err := c.read(); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, want)
		}
	}
	f("v2 with its path", "0::/kubepods/pod1\n", "sys/fs/cgroup/kubepods/pod1/cpu.stat", v2, true)
	f("v2, the path is the host's", "0::/kubepods/pod1\n", "sys/fs/cgroup/cpu.stat", v2, true)
	f("v2, the path leads out of the namespace", "0::/../../other\n", "sys/fs/cgroup/other/cpu.stat", v2, true)
	f("v1", "5:cpu,cpuacct:/docker/abc\n0::/\n", "sys/fs/cgroup/cpu/docker/abc/cpu.stat", v1, true)
	f("v1, controllers the other way round", "5:cpuacct,cpu:/\n", "sys/fs/cgroup/cpu/cpu.stat", v1, true)
	f("v1 elsewhere, cpu in v2", "9:cpuset:/x\nodd line\n0::/x\n", "sys/fs/cgroup/x/cpu.stat", v2, true)
	f("the root cgroup, which has no periods", "0::/\n", "sys/fs/cgroup/cpu.stat", "usage_usec 7\n", false)
	f("negative", "0::/\n", "sys/fs/cgroup/cpu.stat", "nr_periods -1\n", false)
	f("no number", "0::/\n", "sys/fs/cgroup/cpu.stat", "nr_periods many\n", false)
	f("no cgroup at all", "", "sys/fs/cgroup/cpu.stat", v2, false)
	if _, ok := newCgroup(fstest.MapFS{}); ok {
		t.Error("found a cgroup without /proc")
	}
}

func TestVanishedCgroupDoesNotFailTheScrape(t *testing.T) {
	root := fstest.MapFS{}
	for name, file := range container {
		root[name] = file
	}
	reg := prometheus.NewPedanticRegistry()
	NewProcess(reg, fs.FS(root), measuretest.Start, nil)
	delete(root, "sys/fs/cgroup/cpu.stat")
	if page := gather(t, reg); page["replayd_cgroup_cpu_periods_total"] != nil || page["replayd_build_info"] == nil {
		t.Error("want the page without the cgroup's series")
	}
}

func FuzzCPUStat(f *testing.F) {
	f.Add("0::/\n", "nr_periods 10\nnr_throttled 4\nthrottled_usec 250000\n")
	f.Add("5:cpu,cpuacct:/../a\n", "nr_periods 10\nthrottled_time -1\n")
	f.Add("cpu:cpu:cpu:cpu", "nr_periods\n\n nr_periods 1")
	f.Fuzz(func(t *testing.T, self, stat string) {
		for _, own := range scarce.Cgroups(fstest.MapFS{"proc/self/cgroup": {Data: []byte(self)}}, "cpu") {
			name := path.Join(own.Mount, own.Path)
			if !strings.HasPrefix(name, "sys/fs/cgroup") || slices.Contains(strings.Split(name, "/"), "..") {
				t.Errorf("%q leads to %q", self, name)
			}
		}
		if s, err := parseCPUStat(stat); err == nil && (s.periods < 0 || s.throttled < 0 || s.throttledSeconds < 0) {
			t.Errorf("%q: %+v", stat, s)
		}
	})
}
