package gpu

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// synthetic returns a source with two devices and all fields. Each reading takes a second.
func synthetic(t testing.TB) *script {
	return &script{answers: []answer{{takes: time.Second, devices: parse(t, string(read(t, "pages/synthetic_4.6.txt")))}}}
}

// TestPage compares the page with every series, for a source that is up and one that is down.
func TestPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		s := synthetic(t)
		ends := []func() error{
			b.watch(WatchOptions{Source: s}),
			b.watch(WatchOptions{Source: &script{answers: []answer{{err: context.DeadlineExceeded}}}, Kind: SourceSMI, Address: "nvidia-smi", Target: "sglang"}),
		}
		pass(3 * time.Second)
		page := b.page()
		golden(t, "testdata/metrics.golden", page)

		problems, err := promlint.New(strings.NewReader(page)).Lint()
		for _, p := range problems {
			t.Errorf("promlint: %s: %s", p.Metric, p.Text)
		}
		if err != nil {
			t.Error(err)
		}
		for _, f := range Fields() {
			if !strings.Contains(page, "# TYPE replayd_gpu_"+f.Name+" ") {
				t.Errorf("%s is not on the page", f.Name)
			}
		}
		all := b.collector.Values()
		if len(all) != 2 || !all[0].Up || time.Since(all[0].At) != 2*time.Second || all[1].Up || len(all[1].Series) > 0 {
			t.Errorf("want a reading 2 s ago, and a source that is down, got %+v", all)
		}
		shown := regexp.MustCompile(`(?m)^replayd_gpu_\w+\{gpu=`).FindAllString(page, -1)
		if got := len(all[0].Series); got != len(shown) {
			t.Errorf("%d series in memory, %d on the page", got, len(shown))
		}
		for _, end := range ends {
			_ = end()
		}
	})
}

// TestThrottleReasons splits the mask into its known bits.
func TestThrottleReasons(t *testing.T) {
	f := func(mask uint64, want ...string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			d := Device{Index: "0", Values: map[*Field]float64{fieldOf(112): float64(mask)}}
			end := b.watch(WatchOptions{Source: &script{answers: []answer{{devices: []Device{d}}}}})
			pass(0)
			var got []string
			rows := regexp.MustCompile(`_throttle_reason\{.*reason="(\w+)".* ([01])\n`).FindAllStringSubmatch(b.page(), -1)
			for _, row := range rows {
				if row[2] == "1" {
					got = append(got, row[1])
				}
			}
			if diff := cmp.Diff(want, got); diff != "" || len(rows) != 9 {
				t.Errorf("%#x: %d reasons, set are (-want +got):\n%s", mask, len(rows), diff)
			}
			_ = end()
		})
	}
	f(0)
	f(0x1, "idle")
	f(0x44, "hw_thermal", "sw_power_cap")
	f(0x1ff, "clocks_setting", "display_clocks", "hw_power_brake", "hw_slowdown", "hw_thermal", "idle", "sw_power_cap", "sw_thermal", "sync_boost")
	f(1<<40|0x8, "hw_slowdown")
}

// TestDuplicates has two sources of one target that see the same GPU: the exporter's figures are exported while it is
// up.
func TestDuplicates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		two := append(one(200), Device{Index: "1", UUID: "GPU-20000000", Hostname: "elsewhere", Values: map[*Field]float64{fieldOf(155): 201}})
		two[0].Hostname = "elsewhere"
		ends := []func() error{
			b.watch(WatchOptions{Source: &script{answers: []answer{{devices: two}}}, Kind: SourceSMI, Address: "nvidia-smi"}),
			b.watch(WatchOptions{Source: &script{answers: []answer{{devices: one(100)}, {devices: one(100)}, {err: context.DeadlineExceeded}}}}),
			b.watch(WatchOptions{Source: &script{answers: []answer{{devices: one(300)}}}, Target: "other"}), // a target with the same GPU
		}
		pass(0)
		again := b.watch(WatchOptions{Source: &script{answers: []answer{{devices: one(100)}, {err: context.DeadlineExceeded}}}}) // as in a reload
		f := func(after time.Duration, want ...string) {
			t.Helper()
			pass(after)
			got := regexp.MustCompile(`replayd_gpu_power_watts\{.*\} (\d+)`).FindAllString(b.page(), -1)
			for i := range got {
				got[i] = got[i][strings.LastIndex(got[i], " ")+1:]
			}
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("power (-want +got):\n%s", diff)
			}
		}
		f(0, "100", "201", "300")
		if got, want := b.lines(namespace+"duplicate_devices"), "duplicate_devices 0; duplicate_devices 0; duplicate_devices 1"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		f(6*time.Second, "100", "201", "300")
		f(14*time.Second, "200", "201", "300") // the exporter has failed three times
		if got := strings.Count(b.log.String(), "GPUs are ignored"); got != 1 {
			t.Errorf("told %d times, want once:\n%s", got, b.log.String())
		}
		for _, end := range append(ends, again) {
			_ = end()
		}
	})
}

// TestHostileLabels has devices with labels that are not UTF-8, too long, or equal after truncation.
func TestHostileLabels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := strings.Repeat("ü", 1000)
		v := func() map[*Field]float64 {
			return map[*Field]float64{fieldOf(155): 1, fieldOf(112): 3, fieldOf(240): 4}
		}
		list := []Device{
			{Index: "0", UUID: Label("\xff\xfe"), Model: Label("\xff" + long), Hostname: Label("\x00\n\"\\"), Values: v()},
			{Index: "0", UUID: Label("\xfe"), Values: v()}, // equal to the first UUID as it is shown
			{Index: Label(long + "1"), Values: v()},
			{Index: Label(long + "2"), Values: v()},
			{UUID: Label(long + "1"), Instance: Label(long), Profile: Label(long), Values: v()},
			{UUID: Label(long + "2"), Instance: Label(long), Values: v()},
			{Index: "b/0", Hostname: "a", Values: v()},
			{Index: "0", Hostname: "a/b", Values: v()},
		}
		b := newBench(t)
		end := b.watch(WatchOptions{Source: &script{answers: []answer{{devices: list}}}})
		pass(0)
		page := b.page() // fails on a duplicate series or invalid UTF-8
		if got := strings.Count(page, "\nreplayd_gpu_power_watts{"); got != 4 {
			t.Errorf("%d devices, want 4", got)
		}
		for _, label := range regexp.MustCompile(`"([^"\\]|\\.)*"`).FindAllString(page, -1) {
			if len(label) > maxLabelBytes+10 {
				t.Errorf("a label of %d bytes", len(label))
			}
		}
		_ = end()
	})
}

// TestHostileAddresses has targets and addresses that are not UTF-8. Two addresses are equal after replacement.
func TestHostileAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var ends []func() error
		for _, address := range []string{"gpu\xff:9400", "gpu\xfe:9400", "gpu:9400"} {
			ends = append(ends, b.watch(WatchOptions{Source: &script{answers: []answer{{devices: one(1)}}}, Address: address, Target: "t\xff"}))
		}
		pass(0)
		if got, want := b.lines(namespace+"up{"), "up 1; up 1"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		for _, end := range ends {
			_ = end()
		}
	})
}

// TestCollectDoesNotWait scrapes replayd while a source hangs.
func TestCollectDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		end := b.watch(WatchOptions{Source: &script{answers: []answer{{devices: one(100)}, {takes: time.Hour}}}})
		pass(6 * time.Second) // a reading has been running since 5 s
		at := time.Now()
		if got := b.lines(namespace + "power_watts"); got != "power_watts 100" {
			t.Error(got)
		}
		if took := time.Since(at); took != 0 {
			t.Errorf("the page took %v", took)
		}
		_ = end()
	})
}

// node returns 8 GPUs with 40 fields.
func node() []Device {
	list := make([]Device, 8)
	for i := range list {
		d := Device{
			Index: Label(fmt.Sprint(i)), UUID: Label(fmt.Sprintf("GPU-%d0000000-0000-4000-8000-000000000000", i)),
			Model: "NVIDIA H100 80GB HBM3", Hostname: "node-1", Values: map[*Field]float64{},
		}
		for _, f := range fields[:40] {
			d.Values[f] = 12345.678
		}
		list[i] = d
	}
	return list
}

func BenchmarkCollect(b *testing.B) {
	reg := prometheus.NewRegistry()
	c := NewCollector(reg)
	w := NewWatch(c, WatchOptions{Target: "vllm", Interval: time.Second, Log: slog.New(slog.DiscardHandler)})
	w.Show()
	w.put(state{read: true, at: time.Now(), figures: show("vllm", node())})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := reg.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkShow measures a reading without the source.
func BenchmarkShow(b *testing.B) {
	list := node()
	s := Select{}
	b.ReportAllocs()
	for b.Loop() {
		chosen, err := s.choose(list)
		if err != nil {
			b.Fatal(err)
		}
		show("vllm", chosen)
	}
}

// BenchmarkDevices reads the devices from a parsed page with 8 GPUs and all fields.
func BenchmarkDevices(b *testing.B) {
	page := string(read(b, "pages/synthetic_4.6.txt"))
	var all strings.Builder
	for i := range 8 {
		all.WriteString(strings.ReplaceAll(strings.ReplaceAll(page, `gpu="0"`, fmt.Sprintf(`gpu="%d"`, i)), "00000001", fmt.Sprintf("0000000%d", i)))
	}
	p := mustParse(b, all.String())
	if n := len(onGPUs(p).Devices); n != 16 {
		b.Fatalf("%d devices", n)
	}
	b.ReportAllocs()
	for b.Loop() {
		onGPUs(p)
	}
}
