package visitors

import "github.com/prometheus/client_golang/prometheus"

var (
	descOpen   = prometheus.NewDesc("replayd_web_connections", "Connections of visitors, scrapers among them.", nil, nil)
	descMost   = prometheus.NewDesc("replayd_web_connections_limit", "Connections that visitors may have at once.", nil, nil)
	descClosed = prometheus.NewDesc("replayd_web_connections_closed_total", "Connections of visitors that were closed because of their number or size, by reason.", []string{"reason"}, nil)
)

// Describe implements prometheus.Collector.
func (d *Door) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(d, ch) }

// Collect implements prometheus.Collector.
func (d *Door) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(descOpen, prometheus.GaugeValue, float64(d.Open()))
	ch <- prometheus.MustNewConstMetric(descMost, prometheus.GaugeValue, float64(max(1, d.most())))
	for r := range numReasons {
		ch <- prometheus.MustNewConstMetric(descClosed, prometheus.CounterValue, float64(d.closed[r].Load()), r.String())
	}
}
