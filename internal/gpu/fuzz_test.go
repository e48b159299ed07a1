package gpu

import (
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"replayd/internal/scrape"
)

// shows exports arbitrary devices and requires a valid page.
func shows(t *testing.T, list []Device) {
	t.Helper()
	for _, d := range list {
		for f, v := range d.Values {
			if !(v >= f.least && v <= f.most) {
				t.Errorf("%s = %v", f.Name, v)
			}
		}
	}
	chosen, err := (&Select{}).choose(list)
	if err != nil {
		return
	}
	reg := prometheus.NewPedanticRegistry()
	c := NewCollector(reg)
	w := NewWatch(c, WatchOptions{Target: "t", Interval: time.Second, Log: slog.New(slog.DiscardHandler)})
	w.Show()
	w.put(state{read: true, at: time.Now(), figures: show("t", chosen)})
	if _, err := reg.Gather(); err != nil {
		t.Error(err)
	}
}

func FuzzSMI(f *testing.F) {
	columns := NewSMI("").columns()
	f.Add(read(f, "smi/h200_610.43.02.csv"))
	f.Add([]byte("0, GPU-1, 1, 2, 0xff, [N/A]\n"))
	f.Add([]byte("Unable to determine the device handle for GPU0000:01:00.0: Unknown Error\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		for _, some := range [][]column{columns, columns[:4], nil} {
			shows(t, parseSMI(out, some).Devices)
		}
		refused(out, nil)
	})
}

func FuzzPage(f *testing.F) {
	for _, page := range []string{"synthetic_4.6", "dcgm_exporter_t4", "dcgm_exporter_2.4.0_a100_mig", "dcgm_exporter_2.3.5_readme"} {
		f.Add(read(f, "pages/"+page+".txt"))
	}
	f.Add([]byte("DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"\xff\"} NaN\nDCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"\xfe\"} -1e308\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := scrape.Parse(body, "text/plain", onPage)
		if err != nil {
			return
		}
		shows(t, onGPUs(p).Devices)
	})
}
