// Package gpu reads GPU metrics from a dcgm-exporter's page, nvidia-smi or libdcgm and maps them to one vocabulary.
package gpu

import (
	"context"
	"net"
	"os"

	"replayd/internal/scrape"
	"replayd/internal/secret"
)

// A Source reads GPUs.
type Source interface {
	// Read returns every GPU and MIG instance that the source sees. The caller owns the reading. Read returns soon
	// after ctx is done, even if the source hangs.
	Read(ctx context.Context) (Reading, error)
	// Close frees the resources of the source. No Read may be running.
	Close() error
}

// The kinds of sources, the values of the label source.
const (
	SourceExporter = "dcgm_exporter"
	SourceSMI      = "nvidia_smi"
	SourceDCGM     = "libdcgm"
)

// A Device is a GPU or a MIG instance, with its values at one time.
type Device struct {
	Index    secret.Text // the driver's index: "0"
	UUID     secret.Text // for a MIG instance: the UUID of its GPU
	Model    secret.Text // "NVIDIA H100 80GB HBM3"
	Hostname secret.Text
	Profile  secret.Text // of a MIG instance: "1g.10gb"; else empty
	Instance secret.Text // of a MIG instance: its number on the GPU; else empty

	// The Kubernetes workload that uses the device, if the source knows it.
	Namespace, Pod, Container secret.Text

	Values map[*Field]float64 // in base units; missing values have no entry
}

// maxLabelBytes bounds a label value from a source.
const maxLabelBytes = 128

// Label lets in a text of a driver or its tools, which know no credentials.
func Label(text string) secret.Text { return secret.Set(nil).Text(text, maxLabelBytes) }

// add stores a value. The first value of a field stays, but for a counter the greatest value counts: the rows of one
// GPU are read one after another, and the counter must not fall if their order changes.
func (d *Device) add(f *Field, v float64) {
	if before, twice := d.Values[f]; !twice || f.Kind == scrape.Counter && v > before {
		d.Values[f] = v
	}
}

// Hostname returns the host name of this machine, or "" if it is unknown.
func Hostname() string {
	name, _ := os.Hostname()
	return name
}

// Machine returns the name of the machine at a host: a loopback name means this one.
func Machine(host string) string {
	if isLoopback(host) {
		return Hostname()
	}
	return host
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
