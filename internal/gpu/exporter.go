package gpu

import (
	"context"
	"fmt"
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
func (e *Exporter) Read(ctx context.Context) ([]Device, error) {
	p, err := e.pages.Get(ctx, e.url, onPage)
	if err != nil {
		return nil, err
	}
	if len(p.Samples) == 0 {
		return nil, fmt.Errorf("%s: want a dcgm-exporter's page, got %d samples and none of a GPU", secret.Shown(e.url), p.Total)
	}
	return devices(p), nil
}

// Close implements Source.
func (e *Exporter) Close() error {
	e.pages.Close()
	return nil
}

// pageNames holds the names of all fields on a dcgm-exporter's page.
var pageNames = func() map[string]bool {
	names := map[string]bool{}
	for _, f := range fields {
		for _, n := range f.Names {
			names[n] = true
		}
	}
	return names
}()

func onPage(name string) bool { return pageNames[name] }

// devices returns the devices on a page. A GPU that several pods share has one set of rows and one Device per pod.
//
// The page repeats values of the whole GPU in the rows of each MIG instance (NVIDIA/dcgm-exporter#317: 53 W of one
// board reported four times). They are assigned to the GPU, with the pod of the row, which uses a part of the GPU.
func devices(p *scrape.Page) []Device {
	var list []Device
	places := map[row]int{}
	for _, f := range fields {
		for _, name := range f.Names {
			for _, s := range p.Samples[name] {
				r, ok := readRow(s.Labels)
				if !ok {
					continue
				}
				if r.profile+r.instance != "" && f.Whole() {
					if slices.Contains(uncutFields, f.ID) {
						continue
					}
					r.profile, r.instance = "", ""
				}
				model := r.model
				r.model = "" // some rows of a GPU lack it
				place, known := places[r]
				if !known {
					place = len(list)
					places[r] = place
					list = append(list, r.device())
				}
				d := &list[place]
				if d.Model == "" {
					d.Model = model
				}
				if v, ok := f.Value(s.Value); ok {
					d.add(f, v)
				}
			}
		}
	}
	return list
}

// uncutFields have no value while MIG is enabled (nvmlDeviceGetUtilizationRates in nvml.h: "not currently supported").
// The page reports 0 in the rows of the instances (NVIDIA/dcgm-exporter#216).
var uncutFields = []uint16{203, 204}

// A row holds the device labels of a sample. Samples of one device have equal rows, except for the model.
type row struct {
	gpu, uuid, model, hostname, profile, instance string
	namespace, pod, container                     string
}

// readRow reads the labels in all spellings of dcgm-exporter (internal/pkg/rendermetrics and transformation/const.go).
// It returns false if the row belongs to no GPU, or to a link, whose figures are not the GPU's.
func readRow(l labels.Labels) (row, bool) {
	var r, exported row // on a federated page, exported_* are the exporter's own labels, renamed by Prometheus
	ok := true
	l.Range(func(l labels.Label) {
		switch l.Name {
		case "gpu":
			r.gpu = l.Value
		case "UUID", "uuid":
			r.uuid = l.Value
		case "modelName", "model_name":
			r.model = l.Value
		case "Hostname", "hostname":
			r.hostname = l.Value
		case "GPU_I_PROFILE":
			r.profile = l.Value
		case "GPU_I_ID":
			r.instance = l.Value
		case "namespace", "pod_namespace":
			r.namespace = l.Value
		case "pod", "pod_name":
			r.pod = l.Value
		case "container", "container_name":
			r.container = l.Value
		case "exported_namespace":
			exported.namespace = l.Value
		case "exported_pod":
			exported.pod = l.Value
		case "exported_container":
			exported.container = l.Value
		case "nvlink", "nvswitch", "cpu", "cpucore":
			ok = ok && l.Value == ""
		}
	})
	if exported != (row{}) {
		r.namespace, r.pod, r.container = exported.namespace, exported.pod, exported.container
	}
	return r, ok && (r.gpu != "" || r.uuid != "")
}

func (r row) device() Device {
	return Device{
		Index: r.gpu, UUID: r.uuid, Hostname: r.hostname, Profile: r.profile, Instance: r.instance,
		Namespace: r.namespace, Pod: r.pod, Container: r.container, Values: make(map[*Field]float64, len(fields)/2),
	}
}
