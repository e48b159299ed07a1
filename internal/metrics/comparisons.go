package metrics

import (
	"math"
	"sync"
	"time"

	"replayd/internal/canary"

	"github.com/prometheus/client_golang/prometheus"
)

// Series of a comparison.
var (
	descComparison        = comparisonDesc("info", "A comparison: the rows of the workload go to the baseline and the candidate at the same instants.", "workload", "baseline", "candidate", "mode")
	descComparisonEpoch   = comparisonDesc("epoch_timestamp_seconds", "When the evidence began: no earlier request counts for the verdict.")
	descVerdict           = comparisonDesc("verdict", "1 for the present verdict. With mode verdict.", "verdict")
	descUndecided         = comparisonDesc("undecided", "1 for the reason why there is no verdict. With mode verdict.", "reason")
	descBlocksNeeded      = comparisonDesc("blocks_needed", "Blocks to a verdict if the next ones are like those so far; +Inf: no number of them decides. With mode verdict.")
	descRatio             = comparisonDesc("ratio", "A latency of the candidate ÷ that of the baseline, and the interval that holds it however often one looks.", "metric", "bound")
	descExcess            = comparisonDesc("excess_ratio", "Share of the candidate's requests that the metric counts − that of the baseline's.", "metric")
	descTolerance         = comparisonDesc("tolerance_ratio", "The configured tolerance: of a latency the share by which it may be longer, of a share of requests the excess.", "metric")
	descEvidence          = comparisonDesc("evidence_log10", "Decimal logarithm of the evidence. With mode verdict.", "metric", "for")
	descEvidenceNeeded    = comparisonDesc("evidence_needed_log10", "Decimal logarithm of the evidence that a fail, or a pass, needs of a metric. With mode verdict.", "for")
	descBlocks            = comparisonDesc("blocks_total", "Blocks with a value, by where it is: of a latency above or below its tolerance, of a share above 0 (the candidate has more) or below.", "metric", "value")
	descBlockMinPairs     = comparisonDesc("block_min_pairs", "The configured least pairs of a block that met no queue.")
	descBlockMinTime      = comparisonDesc("block_min_seconds", "The configured least length of a block.")
	descBlocksSkipped     = comparisonDesc("blocks_skipped_total", "Blocks that say nothing about latencies.", "reason")
	descPairs             = comparisonDesc("pairs_total", "Pairs of requests; void: replayd itself kept them from being compared.", "result")
	descBlockCorrelation  = comparisonDesc("block_correlation", "Correlation of neighbouring blocks' values. Evidence needs one near 0.", "metric")
	descComparisonChanged = comparisonDesc("changed", "1 while the candidate is changed against the baseline. With mode watch.", "metric", "direction")
	descChanges           = comparisonDesc("changes_total", "Changes that were found; back: the metric is as before. With mode watch.", "metric", "direction")
)

func comparisonDesc(name, help string, extra ...string) *prometheus.Desc {
	return prometheus.NewDesc(namespace+"_comparison_"+name, help, append([]string{"comparison"}, extra...), nil)
}

// A Compared is the state of a comparison.
type Compared struct {
	Name, Workload, Baseline, Candidate string

	Options   canary.Options
	Epoch     time.Time // when the evidence began
	Judgement canary.Judgement
}

// Comparisons exports the state of comparisons. It is safe for concurrent use.
type Comparisons struct {
	StateErrors prometheus.Counter // failed writes of the state file

	created time.Time

	mu  sync.Mutex
	all []func() Compared
}

// NewComparisons registers the series of comparisons with reg and panics if they are already registered.
func NewComparisons(reg prometheus.Registerer) *Comparisons {
	c := &Comparisons{
		created: time.Now(),
		StateErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace,
			Name:      "state_errors_total",
			Help:      "Times that the state file, which keeps the evidence of comparisons, could not be written.",
		}),
	}
	reg.MustRegister(c, c.StateErrors)
	return c
}

// Show exports these comparisons, and no others any more. Their names are unique.
func (c *Comparisons) Show(all []func() Compared) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = all
}

// Now returns the present state of all comparisons.
func (c *Comparisons) Now() []Compared {
	c.mu.Lock()
	all := c.all
	c.mu.Unlock()
	now := make([]Compared, len(all))
	for i, one := range all {
		now[i] = one()
	}
	return now
}

// Describe implements prometheus.Collector.
func (c *Comparisons) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descComparison, descComparisonEpoch, descVerdict, descUndecided, descBlocksNeeded, descRatio, descExcess, descTolerance, descEvidence, descEvidenceNeeded,
		descBlocks, descBlockMinPairs, descBlockMinTime, descBlocksSkipped, descPairs, descBlockCorrelation, descComparisonChanged, descChanges,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Comparisons) Collect(ch chan<- prometheus.Metric) {
	for _, one := range c.Now() {
		one.collect(ch, c.created)
	}
}

// collect exports a comparison. Every value of the closed lists has its series from the start.
func (c *Compared) collect(ch chan<- prometheus.Metric, created time.Time) {
	name := valid(c.Name)
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, append([]string{name}, labels...)...)
	}
	counter := func(d *prometheus.Desc, v int64, labels ...string) {
		ch <- prometheus.MustNewConstMetricWithCreatedTimestamp(d, prometheus.CounterValue, float64(v), created, append([]string{name}, labels...)...)
	}
	is := map[bool]float64{true: 1}
	j := &c.Judgement
	gauge(descComparison, 1, valid(c.Workload), valid(c.Baseline), valid(c.Candidate), string(c.Options.Mode))
	gauge(descComparisonEpoch, float64(c.Epoch.UnixMilli())/1e3)
	gauge(descBlockMinPairs, float64(c.Options.MinPairs))
	gauge(descBlockMinTime, c.Options.MinTime.Seconds())
	counter(descPairs, j.Totals.Pairs.Judged, "judged")
	counter(descPairs, j.Totals.Pairs.Void, "void")
	for _, why := range canary.Skips {
		counter(descBlocksSkipped, j.Totals.Skipped[why], string(why))
	}
	for _, m := range canary.Metrics {
		blocks := &j.Totals.Metrics[m]
		counter(descBlocks, blocks.Above, m.String(), "above")
		counter(descBlocks, blocks.At, m.String(), "at")
		counter(descBlocks, blocks.Below, m.String(), "below")
		gauge(descTolerance, c.Options.ToleranceOf(m), m.String())
	}
	if c.Options.Mode == canary.ModeWatch {
		c.collectWatch(gauge, counter)
		return
	}
	for _, v := range canary.Verdicts {
		gauge(descVerdict, is[v == j.Verdict], string(v))
	}
	for _, why := range canary.Reasons {
		gauge(descUndecided, is[why == j.Reason], string(why))
	}
	more := float64(j.More)
	if j.More < 0 {
		more = math.Inf(1)
	}
	gauge(descBlocksNeeded, more)
	gauge(descEvidenceNeeded, c.Options.FailLog10(), "worse")
	gauge(descEvidenceNeeded, c.Options.PassLog10(), "not_worse")
	for _, s := range j.Metrics {
		gauge(descBlockCorrelation, s.Correlation, s.Metric.String())
		gauge(descEvidence, s.WorseLog10, s.Metric.String(), "worse")
		if !s.Metric.IsLatency() {
			gauge(descExcess, s.Excess, s.Metric.String())
			continue
		}
		gauge(descEvidence, s.NotWorseLog10, s.Metric.String(), "not_worse")
		gauge(descRatio, s.Lower, s.Metric.String(), "lower")
		gauge(descRatio, s.Ratio, s.Metric.String(), "estimate")
		gauge(descRatio, s.Upper, s.Metric.String(), "upper")
	}
}

// collectWatch exports a comparison that never ends. The estimate of a ratio, and the excess, are those of the latest blocks.
func (c *Compared) collectWatch(gauge func(d *prometheus.Desc, v float64, labels ...string), counter func(d *prometheus.Desc, v int64, labels ...string)) {
	is := map[bool]float64{true: 1}
	for _, s := range c.Judgement.Watch {
		name := s.Metric.String()
		gauge(descBlockCorrelation, s.Correlation, name)
		if s.Metric.IsLatency() {
			gauge(descRatio, s.Ratio, name, "estimate")
		} else {
			gauge(descExcess, s.Excess, name)
		}
		for _, d := range s.Metric.Directions() {
			counter(descChanges, c.Judgement.Totals.Metrics[s.Metric].Changes[d], name, string(d))
			if d != canary.Back {
				gauge(descComparisonChanged, is[d == s.Direction], name, string(d))
			}
		}
	}
}
