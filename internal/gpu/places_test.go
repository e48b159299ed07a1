package gpu

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/bounded"
	"replayd/internal/secret"
)

// A sourceFunc is a source of devices that a function tells.
type sourceFunc func() []Device

// Read implements Source.
func (f sourceFunc) Read(context.Context) (Reading, error) { return Reading{Devices: f()}, nil }

// Close implements Source.
func (sourceFunc) Close() error { return nil }

func device(uuid string) Device {
	return Device{Index: "0", UUID: secret.Text(uuid), Model: "H100", Hostname: secret.Text("node-" + uuid), Values: map[*Field]float64{fieldOf(155): 1}}
}

var uuids = regexp.MustCompile(`replayd_gpu_power_watts\{.*uuid="([^"]+)"`)

// A source that invents devices at each reading gets 512 of them on the page, and more only a day later.
func TestHostileDevicesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.collector.Overflow = bounded.NewOverflow(b.reg)
		n := 0
		end := b.watch(WatchOptions{Source: sourceFunc(func() (list []Device) {
			for range 100 {
				n++
				list = append(list, device(fmt.Sprint("GPU-", n)))
			}
			return list
		})})
		seen, most := map[string]bool{}, 0
		for range 1000 {
			pass(5 * time.Second)
			found := uuids.FindAllStringSubmatch(b.page(), -1)
			most = max(most, len(found))
			for _, f := range found {
				seen[f[1]] = true
			}
		}
		t.Logf("%d of %d devices, at most %d at once", len(seen), n, most)
		if len(seen) > maxDevices || len(seen) < maxDevices-200 {
			t.Errorf("want about %d devices of %d, got %d", maxDevices, n, len(seen))
		}
		if page := b.page(); !strings.Contains(page, `replayd_label_overflow_total{label="gpu"} 9`) || !strings.Contains(page, "replayd_gpu_up{") {
			t.Error("want devices without a place counted, and the source up")
		}
		_ = end()
	})
}

// The 64 GPUs of 8 nodes that are replaced every day for 30 days are all on the page, also after a reload.
func TestGPUsOfAClusterKeepTheirPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.collector.Overflow = bounded.NewOverflow(b.reg)
		day := 0
		o := WatchOptions{Source: sourceFunc(func() (list []Device) {
			for i := range 64 {
				list = append(list, device(fmt.Sprintf("GPU-%d-%d", day, i)))
			}
			return list
		})}
		for day = range 30 {
			w := b.made(o)
			w.o.Interval = time.Hour
			end := b.run(w)
			pass(23*time.Hour + time.Minute)
			if got := len(uuids.FindAllString(b.page(), -1)); got != 64 {
				t.Fatalf("day %d: want 64 GPUs, got %d", day, got)
			}
			_ = end()
			pass(59 * time.Minute)
		}
		if page := b.page(); !strings.Contains(page, `replayd_label_overflow_total{label="gpu"} 0`) {
			t.Error("want a place for all")
		}
	})
}
