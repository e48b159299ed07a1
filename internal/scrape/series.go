package scrape

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// A Kind is the type of a metric.
type Kind string

// The kinds.
const (
	Gauge     Kind = "gauge"
	Counter   Kind = "counter"
	Histogram Kind = "histogram"
	Info      Kind = "info" // a gauge of 1 whose labels say something
)

// A Family describes the series of one name.
type Family struct {
	Name string
	Help string
	Kind Kind
	desc *prometheus.Desc
}

// NewFamily returns the family of a name. Its series have these labels.
func NewFamily(name, help string, kind Kind, labels []string) *Family {
	return &Family{name, help, kind, prometheus.NewDesc(name, help, labels, nil)}
}

// Desc returns the family as the registry knows it.
func (f *Family) Desc() *prometheus.Desc { return f.desc }

// A Series is one series of an engine or of a GPU: /metrics shows it, and others read it in memory. Nothing changes it.
// No metric type of client_golang accepts labels that series share.
type Series struct {
	*Family
	Labels    []*dto.LabelPair // sorted by name
	Part      bool             // of a MIG instance, and so within a figure of its GPU
	Value     float64          // of a gauge or a counter
	Histogram *dto.Histogram   // with the engine's own buckets; else nil
}

// Write implements prometheus.Metric.
func (s *Series) Write(m *dto.Metric) error {
	m.Label = s.Labels
	switch s.Kind {
	case Histogram:
		m.Histogram = s.Histogram
	case Counter:
		m.Counter = &dto.Counter{Value: &s.Value}
	default:
		m.Gauge = &dto.Gauge{Value: &s.Value}
	}
	return nil
}

// Pair returns a label.
func Pair(name, value string) *dto.LabelPair { return &dto.LabelPair{Name: &name, Value: &value} }

// Values are the latest series of one engine, or of one source of GPUs.
type Values struct {
	Target string
	Up     bool      // the latest reading succeeded
	At     time.Time // when the series were read; zero: never yet
	Series []*Series // as on /metrics; empty after too many failures in a row
}
