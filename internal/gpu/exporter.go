package gpu

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"

	"github.com/prometheus/prometheus/model/labels"

	"replayd/internal/scrape"
	"replayd/internal/secret"
)

// An Exporter reads the metrics page of a dcgm-exporter, of AMD's device-metrics-exporter or of all-smi.
type Exporter struct {
	pages *scrape.Fetcher
	url   string
}

// NewExporter returns a source for the page at url, usually http://<node>:9400/metrics. The Exporter closes pages.
func NewExporter(pages *scrape.Fetcher, url string) *Exporter {
	return &Exporter{pages, url}
}

// Read implements Source.
func (e *Exporter) Read(ctx context.Context) (Reading, error) {
	p, err := e.pages.Get(ctx, e.url, onPage)
	if err != nil {
		return Reading{}, err
	}
	if len(p.Samples) == 0 {
		const want = "%s: want the page of a dcgm-exporter, of AMD's exporter or of all-smi, got %d samples and none of a GPU"
		return Reading{}, fmt.Errorf(want, secret.Shown(e.url), p.Total)
	}
	r := onGPUs(p)
	at, err := url.Parse(e.url)
	for i := range r.Devices { // an exporter that asks localhost:5555 says that its GPUs are at localhost
		if d := &r.Devices[i]; err == nil && isLoopback(string(d.Hostname)) {
			d.Hostname = Label(Machine(at.Hostname()))
		}
	}
	return r, nil
}

// Close implements Source.
func (e *Exporter) Close() error {
	e.pages.Close()
	return nil
}

// onPage reports whether an exporter's page has a field under a name.
func onPage(name string) bool {
	return slices.ContainsFunc(fields, func(f *Field) bool {
		return slices.Contains(f.Names, name) || slices.ContainsFunc(f.others, func(o other) bool { return o.name == name })
	})
}

// onGPUs returns the devices on a page. A GPU that several pods share has one set of rows and one Device per pod.
//
// The page repeats values of the whole GPU in the rows of each MIG instance (NVIDIA/dcgm-exporter#317: 53 W of one
// board reported four times). They are assigned to the GPU, with the pod of the row, which uses a part of the GPU.
func onGPUs(p *scrape.Page) Reading {
	r := Reading{Bad: p.Bad, first: p.First()}
	places := map[[8]secret.Text]int{}
	of := func(d Device) *Device {
		// Some rows of a GPU lack the model.
		key := [...]secret.Text{d.Index, d.UUID, d.Hostname, d.Profile, d.Instance, d.Namespace, d.Pod, d.Container}
		place, known := places[key]
		if !known {
			place = len(r.Devices)
			places[key] = place
			d.Values = make(map[*Field]float64, len(fields)/2)
			r.Devices = append(r.Devices, d)
		}
		one := &r.Devices[place]
		one.Model = cmp.Or(one.Model, d.Model)
		return one
	}
	for _, f := range fields {
		for _, name := range f.Names {
			for _, s := range p.Samples[name] {
				d, ok := readRow(p, s.Labels)
				if ok && d.Profile+d.Instance != "" && f.Whole() {
					ok = !slices.Contains(uncutFields, f.ID)
					d.Profile, d.Instance = "", ""
				}
				if ok {
					r.Add(of(d), f, name, s.Value)
				}
			}
		}
		for _, o := range f.others {
			for _, s := range p.Samples[o.name] {
				d, ok := readOther(p, s.Labels)
				sensor := f.ID >= 140 && f.ID <= 156 // temperatures, power and energy: 0 says that there is none
				if ok && (d.Instance == "" || !f.Whole()) && (!sensor || s.Value != 0) {
					r.add(of(d), f, o.name, s.Value, o.scale)
				}
			}
		}
	}
	return r
}

// uncutFields have no value while MIG is enabled (nvmlDeviceGetUtilizationRates in nvml.h: "not currently supported").
// The page reports 0 in the rows of the instances (NVIDIA/dcgm-exporter#216).
var uncutFields = []uint16{203, 204}

// readRow reads the device of a sample by its labels, in all spellings of dcgm-exporter (internal/pkg/rendermetrics
// and transformation/const.go).
// It returns false if the row belongs to no GPU, or to a link, whose figures are not the GPU's.
func readRow(p *scrape.Page, l labels.Labels) (Device, bool) {
	either := func(old, now string) secret.Text { return p.Text(cmp.Or(l.Get(now), l.Get(old))) }
	d := Device{
		Index: p.Text(l.Get("gpu")), UUID: either("UUID", "uuid"), Model: either("modelName", "model_name"),
		Hostname: either("Hostname", "hostname"), Profile: p.Text(l.Get("GPU_I_PROFILE")), Instance: p.Text(l.Get("GPU_I_ID")),
		Namespace: either("namespace", "pod_namespace"), Pod: either("pod", "pod_name"), Container: either("container", "container_name"),
	}
	d.federated(p, l)
	ofLink := l.Get("nvlink")+l.Get("nvswitch")+l.Get("cpu")+l.Get("cpucore") != ""
	return d, !ofLink && (d.Index != "" || d.UUID != "")
}

// federated reads the exporter's own labels on a federated page, where Prometheus has renamed them.
func (d *Device) federated(p *scrape.Page, l labels.Labels) {
	if l.Get("exported_namespace")+l.Get("exported_pod")+l.Get("exported_container") != "" {
		d.Namespace, d.Pod = p.Text(l.Get("exported_namespace")), p.Text(l.Get("exported_pod"))
		d.Container = p.Text(l.Get("exported_container"))
	}
}

// readOther reads the device of a sample of AMD's exporter (pkg/amdgpu/gpuagent) or of all-smi (src/api/metrics/gpu.rs),
// where the label gpu is the model. It returns false if the row belongs to no GPU. A partition of a GPU other than the
// first is an instance; its sensors are those of the GPU, or 0.
func readOther(p *scrape.Page, l labels.Labels) (Device, bool) {
	get := func(names ...string) secret.Text {
		at := slices.IndexFunc(names, func(name string) bool { return l.Get(name) != "" })
		if at < 0 {
			return ""
		}
		return p.Text(l.Get(names[at]))
	}
	d := Device{
		Index: get("gpu_id", "gpu_index", "index"), UUID: get("gpu_uuid", "uuid"), Model: get("card_model", "gpu"),
		Hostname: get("hostname", "instance", "host"), Namespace: get("namespace"), Pod: get("pod"), Container: get("container"),
	}
	if part := get("gpu_partition_id"); part != "" && part != "0" && part != "NA" {
		d.Instance, d.Profile = part, get("gpu_compute_partition_type")
	}
	d.federated(p, l)
	return d, d.Index != "" || d.UUID != ""
}
