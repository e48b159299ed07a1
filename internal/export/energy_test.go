package export

import (
	"strings"
	"testing"
	"time"

	"replayd/internal/measure"
	"replayd/internal/result"
)

// The table of a run beside GPUs: units of rates, no name twice, no rows of zeros, and joules per output token.
func TestGPUTable(t *testing.T) {
	begin := time.Unix(1_800_000_000, 0)
	series := func(name, device string, kind result.SeriesKind, values ...float64) result.ServerSeries {
		b := result.ServerSeries{
			Source: "dcgm", Name: "replayd_gpu_" + name, Unit: unitOf("replayd_gpu_" + name), Kind: kind, GPU: true,
			Labels: map[string]string{"gpu": device, "uuid": "GPU-" + device}, Values: values,
		}
		for i := range values { // every 5 s, from 2 s before the first send
			b.Times = append(b.Times, begin.Add(time.Duration(5*i-2)*time.Second))
		}
		return b
	}
	run := result.Run{
		Rows: []result.Row{
			{Phase: measure.Warmup, Output: 1000, Outcome: measure.OK, Start: begin.UnixNano() - 1e9, End: begin.UnixNano() - 5e8},
			{Phase: measure.Profiling, Output: 400, Outcome: measure.OK, Start: begin.UnixNano(), End: begin.UnixNano() + 4e9},
			{Phase: measure.Profiling, Output: 100, Outcome: measure.OK, Start: begin.UnixNano() + 1e9, End: begin.UnixNano() + 10e9},
			{Phase: measure.Profiling, Output: 50, Outcome: measure.HTTP5xx, Start: begin.UnixNano() + 1e9, End: begin.UnixNano() + 2e9},
		},
		ServerSeries: []result.ServerSeries{
			series("energy_joules_total", "0", result.Counter, 1000, 1500, 2000, 2100), // 100 W, but 20 W from 8 s on: 840 J
			series("power_watts", "0", result.Gauge, 100, 100, 20, 20),                 // the counter counts
			series("power_watts", "1", result.Gauge, 30, 50, 40, 40),                   // no counter: 400 J
			series("memory_used_bytes", "0", result.Gauge, 7, 7, 7, 7),
			series("memory_used_ratio", "0", result.Gauge, 0.5, 0.5, 0.5, 0.5),
			series("pcie_rx_bytes_per_second", "0", result.Gauge, 3, 3, 3, 3),
			series("fp64_active_ratio", "0", result.Gauge, 0, 0, 0, 0),
			series("pcie_replays_total", "0", result.Counter, 2, 2, 2, 2),
		},
	}
	var out strings.Builder
	if err := WriteServerSeries(&out, run, 0); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		if cells := strings.Fields(strings.ReplaceAll(line, "│", "")); strings.HasPrefix(line, "│") {
			got = append(got, strings.Join(cells, " "))
		}
	}
	want := []string{
		`gpu_energy{gpu="0",uuid="GPU-0"} joules/s 73.33 20.00 100.00`,
		`gpu_memory_used_bytes{gpu="0",uuid="GPU-0"} bytes 7.00 7.00 7.00`,
		`gpu_memory_used_ratio{gpu="0",uuid="GPU-0"} ratio 0.50 0.50 0.50`,
		`gpu_pcie_rx_bytes_per_second{gpu="0",uuid="GPU-0"} bytes/s 3.00 3.00 3.00`,
		`gpu_power{gpu="0",uuid="GPU-0"} watts 60.00 20.00 100.00`,
		`gpu_power{gpu="1",uuid="GPU-1"} watts 40.00 30.00 50.00`,
		"gpu_energy_per_output_token joules 2.48 N/A N/A",
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w || !strings.HasSuffix(out.String(), "0 all the time, and are left out: 2\n") {
		t.Errorf("got\n%s\nwant\n%s\nand two left out, in\n%s", g, w, out.String())
	}
	run.ServerSeries[0].Values[2] = 0 // another driver
	if v, known := joulesPerToken(run); known {
		t.Errorf("want no energy where a counter was reset, got %v", v)
	}
}
