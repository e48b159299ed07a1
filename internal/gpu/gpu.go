// Package gpu reads the figures of GPUs, from a dcgm-exporter's page, from nvidia-smi or from libdcgm, under one
// vocabulary.
package gpu

import (
	"context"
	"os"
)

// A Source reads GPUs.
type Source interface {
	// Read gives every GPU, and every MIG instance, that the source sees now. The devices are the caller's to keep.
	// It returns soon after ctx is done, whatever the source does.
	Read(ctx context.Context) ([]Device, error)
	// Close frees what the source holds. No Read runs then.
	Close() error
}

// The kinds of sources, as the label source names them.
const (
	SourceExporter = "dcgm_exporter"
	SourceSMI      = "nvidia_smi"
	SourceDCGM     = "libdcgm"
)

// A Device is a GPU, or a MIG instance of one, and its figures at one instant.
type Device struct {
	Index    string // as the driver numbers it: "0"
	UUID     string // of a MIG instance: that of the GPU
	Model    string // "NVIDIA H100 80GB HBM3"
	Hostname string
	Profile  string // of a MIG instance: "1g.10gb"; else empty
	Instance string // of a MIG instance: its number on the GPU; else empty

	// Where the source knows who uses it.
	Namespace, Pod, Container string

	Values map[*Field]float64 // in base units; a figure that the source has no value for is not in it
}

// add adds a figure. One that is there already stays, be it under another name or of another pod; but of a counter the
// greatest counts: rows of one GPU are read one after another, and when their order changes it must not seem to fall.
func (d *Device) add(f *Field, v float64) {
	if before, twice := d.Values[f]; !twice || f.Kind == Counter && v > before {
		d.Values[f] = v
	}
}

// Hostname is this machine's name, "" where it does not know it.
func Hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}
