package sim

import (
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// The simulated GPU has the limits of an H100 SXM. Its load is the share of the slots that are taken, and its power is
// linear in the load. There is no smoothing: a page shows the instant of its scrape, and only energy covers the time
// between scrapes.
const (
	idleWatts, fullWatts      = 70.0, 700.0
	idleCelsius, fullCelsius  = 32.0, 74.0
	memoryCelsius             = 6.0 // HBM above the core
	idleMegahertz             = 345.0
	fullMegahertz             = 1980.0
	memoryMegahertz           = 2619.0
	totalMebibytes            = 81559.0
	usedMebibytes             = 0.9 * totalMebibytes // taken by the engine at start, as by vLLM's gpu_memory_utilization
	millijoules               = 1000.0               // DCGM counts energy in mJ
	percent                   = 100.0
	gpuUUID, gpuName, gpuHost = "GPU-5e000000-0000-4000-8000-000000000000", "Simulated GPU", "sim"
)

// power integrates the energy of a GPU over the load of its batch.
type power struct {
	slots int

	mu         sync.Mutex
	at         time.Time // of the last change
	joules     float64   // until at
	prefilling int       // since at
	decoding   int
}

func (p *power) share() float64 { return float64(p.prefilling+p.decoding) / float64(p.slots) }

func (p *power) watts() float64 { return idleWatts + (fullWatts-idleWatts)*p.share() }

// until integrates the energy up to an instant. Planned instants can be slightly out of order; an earlier one takes
// effect at the later one.
func (p *power) until(at time.Time) {
	if d := at.Sub(p.at); d > 0 {
		p.joules += p.watts() * d.Seconds()
		p.at = at
	}
}

func (p *power) changes(at time.Time, prefilling, decoding int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until(at)
	p.prefilling, p.decoding = prefilling, decoding
}

// gpuPage is dcgm-exporter's page for one GPU.
type gpuPage struct {
	power  *power
	fields []func() prometheus.Metric // DCGM's, with dcgm-exporter's names and units
}

func newGPUPage(p *power) *gpuPage {
	g := &gpuPage{power: p}
	labels := prometheus.Labels{
		"gpu": "0", "UUID": gpuUUID, "pci_bus_id": "00000000:01:00.0", "device": "nvidia0",
		"modelName": gpuName, "Hostname": gpuHost, "DCGM_FI_DRIVER_VERSION": "0.0.0",
	}
	add := func(kind prometheus.ValueType, name, help string, value func(p *power) float64) {
		desc := prometheus.NewDesc(name, help, nil, labels)
		g.fields = append(g.fields, func() prometheus.Metric { return prometheus.MustNewConstMetric(desc, kind, value(p)) })
	}
	gauge := func(name, help string, value func(p *power) float64) { add(prometheus.GaugeValue, name, help, value) }
	fixed := func(v float64) func(*power) float64 { return func(*power) float64 { return v } }
	busy := func(p *power) float64 { return map[bool]float64{true: 1}[p.prefilling+p.decoding > 0] }

	gauge("DCGM_FI_DEV_SM_CLOCK", "SM clock, MHz.", func(p *power) float64 { return idleMegahertz + (fullMegahertz-idleMegahertz)*busy(p) })
	gauge("DCGM_FI_DEV_MEM_CLOCK", "Memory clock, MHz.", fixed(memoryMegahertz))
	celsius := func(p *power) float64 { return idleCelsius + (fullCelsius-idleCelsius)*p.share() }
	gauge("DCGM_FI_DEV_GPU_TEMP", "GPU temperature, C.", celsius)
	gauge("DCGM_FI_DEV_MEMORY_TEMP", "Memory temperature, C.", func(p *power) float64 { return celsius(p) + memoryCelsius })
	gauge("DCGM_FI_DEV_POWER_USAGE", "Power draw, W.", (*power).watts)
	add(prometheus.CounterValue, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "Energy since the start, mJ.",
		func(p *power) float64 { return p.joules * millijoules })
	gauge("DCGM_FI_DEV_GPU_UTIL", "GPU utilization, %: here the share of the slots that are taken.",
		func(p *power) float64 { return percent * p.share() })
	gauge("DCGM_FI_DEV_MEM_COPY_UTIL", "Memory utilization, %: here the share of the slots in decode.",
		func(p *power) float64 { return percent * float64(p.decoding) / float64(p.slots) })
	gauge("DCGM_FI_DEV_FB_FREE", "Framebuffer memory free, MiB.", fixed(totalMebibytes-usedMebibytes))
	gauge("DCGM_FI_DEV_FB_USED", "Framebuffer memory used, MiB.", fixed(usedMebibytes))
	gauge("DCGM_FI_DEV_XID_ERRORS", "The last XID error, 0 for none.", fixed(0))
	gauge("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "Graphics engine active, 0 to 1: here whether anything runs.", busy)
	gauge("DCGM_FI_PROF_SM_ACTIVE", "SMs active, 0 to 1: here the share of the slots that are taken.", (*power).share)
	gauge("DCGM_FI_PROF_DRAM_ACTIVE", "Memory interface active, 0 to 1: here the share of the slots in decode.",
		func(p *power) float64 { return float64(p.decoding) / float64(p.slots) })
	return g
}

// Describe sends the descriptions of all fields.
func (g *gpuPage) Describe(out chan<- *prometheus.Desc) { prometheus.DescribeByCollect(g, out) }

// Collect sends all fields at one instant.
func (g *gpuPage) Collect(out chan<- prometheus.Metric) {
	g.power.mu.Lock()
	defer g.power.mu.Unlock()
	g.power.until(time.Now())
	for _, field := range g.fields {
		out <- field()
	}
}

func (g *gpuPage) handler() http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(g)
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{}) // text only, like dcgm-exporter
}
