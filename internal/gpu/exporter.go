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

// An Exporter reads the metrics page of a dcgm-exporter.
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
		return Reading{}, fmt.Errorf("%s: want a dcgm-exporter's page, got %d samples and none of a GPU", secret.Shown(e.url), p.Total)
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

// onPage reports whether a dcgm-exporter's page has a field under a name.
func onPage(name string) bool {
	return slices.ContainsFunc(fields, func(f *Field) bool { return slices.Contains(f.Names, name) })
}

// onGPUs returns the devices on a page. A GPU that several pods share has one set of rows and one Device per pod.
//
// The page repeats values of the whole GPU in the rows of each MIG instance (NVIDIA/dcgm-exporter#317: 53 W of one
// board reported four times). They are assigned to the GPU, with the pod of the row, which uses a part of the GPU.
func onGPUs(p *scrape.Page) Reading {
	r := Reading{Bad: p.Bad, first: p.First()}
	places := map[[8]secret.Text]int{}
	for _, f := range fields {
		for _, name := range f.Names {
			for _, s := range p.Samples[name] {
				d, ok := readRow(p, s.Labels)
				if !ok {
					continue
				}
				if d.Profile+d.Instance != "" && f.Whole() {
					if slices.Contains(uncutFields, f.ID) {
						continue
					}
					d.Profile, d.Instance = "", ""
				}
				// Some rows of a GPU lack the model.
				key := [...]secret.Text{
					d.Index, d.UUID, d.Hostname, d.Profile, d.Instance, d.Namespace, d.Pod, d.Container,
				}
				place, known := places[key]
				if !known {
					place = len(r.Devices)
					places[key] = place
					d.Values = make(map[*Field]float64, len(fields)/2)
					r.Devices = append(r.Devices, d)
				}
				of := &r.Devices[place]
				of.Model = cmp.Or(of.Model, d.Model)
				r.Add(of, f, name, s.Value)
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
	// On a federated page, these are the exporter's own labels, renamed by Prometheus.
	if l.Get("exported_namespace")+l.Get("exported_pod")+l.Get("exported_container") != "" {
		d.Namespace, d.Pod = p.Text(l.Get("exported_namespace")), p.Text(l.Get("exported_pod"))
		d.Container = p.Text(l.Get("exported_container"))
	}
	ofLink := l.Get("nvlink")+l.Get("nvswitch")+l.Get("cpu")+l.Get("cpucore") != ""
	return d, !ofLink && (d.Index != "" || d.UUID != "")
}
