package comparison

import (
	"math"
	"strings"
	"sync"
	"time"

	"replayd/internal/canary"

	"github.com/prometheus/client_golang/prometheus"
)

// Series of a comparison.
var (
	descs []*prometheus.Desc // all of them

	descInfo = newDesc("info",
		"A comparison: the rows of the workload go to the baseline and the candidate at the same "+
			"instants.", "workload", "baseline", "candidate", "mode")
	descEpoch = newDesc("epoch_timestamp_seconds",
		"When the evidence began: no earlier request counts for the verdict.")
	descBlind = newDesc("blind",
		"1 for the reason why nothing is seen of latencies at present.", "reason")
	descCalm = newDesc("calm_ratio",
		"Share of the pairs with latencies that met no queue: the latencies that are judged are theirs.")
	descAllPairs = newDesc("all_pairs_ratio",
		"A latency of the candidate ÷ that of the baseline over all pairs, also those that met a queue, as a "+
			"median. Not judged.", "metric")
	descWander  = newDesc("wander_ratio", "The configured wander of the ratio of two equal servers.")
	descVersion = newDesc("version_info",
		"The version of the candidate that the evidence is about, as the restart named it; empty: it named none.",
		"version")
	descVerdict = newDesc("verdict", "1 for the present verdict. With mode verdict.", "verdict")
	descScope   = newDesc("scope", "1 for what the verdict is about: the pair of servers, or the version of the pods. "+
		"With mode verdict.", "scope")
	descPodsVerdict = newDesc("pods_verdict",
		"1 for what the looks at the pods say about the version. Only with several pods on a side.", "verdict")
	descPodsRatio = newDesc("pods_ratio",
		"A latency of the candidate ÷ that of the baseline over pods, and its bounds, in the latest look.", "metric", "bound")
	descOthers = newDesc("other_clients_ratio",
		"Share of the output tokens of a side's engine that other clients have got since the epoch.", "side")
	descUndecided    = newDesc("undecided", "1 for the reason why there is no verdict. With mode verdict.", "reason")
	descBlocksNeeded = newDesc("blocks_needed",
		"Blocks to a verdict if the next ones are like those so far; +Inf: no number of them decides. With mode "+
			"verdict.")
	descRatio = newDesc("ratio",
		"A latency of the candidate ÷ that of the baseline, and the interval that holds it however often one "+
			"looks.", "metric", "bound")
	descExcess = newDesc("excess_ratio",
		"Share of the candidate's requests that the metric counts − that of the baseline's.", "metric")
	descExcessUpper = newDesc("excess_upper_ratio",
		"A bound of the excess: a pass needs it at or below the tolerance. With mode verdict.", "metric")
	descTolerance = newDesc("tolerance_ratio",
		"The configured tolerance: of a latency the share by which it may be longer, of a share of requests the "+
			"excess.", "metric")
	descEvidence = newDesc("evidence_log10",
		"Decimal logarithm of the evidence. With mode verdict.", "metric", "for")
	descEvidenceNeeded = newDesc("evidence_needed_log10",
		"Decimal logarithm of the evidence that a fail, or a pass, needs of a metric. With mode verdict.", "for")
	descBlocks = newDesc("blocks_total",
		"Blocks with a value, by where it is: of a latency above or below its tolerance, of a share above 0 (the "+
			"candidate has more) or below.", "metric", "value")
	descBlockMinPairs = newDesc("block_min_pairs", "The configured least pairs of a block that met no queue.")
	descBlockMinTime  = newDesc("block_min_seconds", "The configured least length of a block.")
	descBlocksSkipped = newDesc("blocks_skipped_total", "Blocks that say nothing about latencies.", "reason")
	descPairs         = newDesc("pairs_total",
		"Pairs of requests; void: replayd itself kept them from being compared.", "result")
	descPairsDue = newDesc("pairs_due_total",
		"Pairs of which a row came due on either side: those that were judged, those that are void, and the open ones.")
	descPairsVoid = newDesc("pairs_void_total", "Void pairs by the reason why they cannot be compared.", "reason")
	descPairsBad  = newDesc("pairs_bad_total",
		"Judged pairs whose request was bad on a side: it failed, missed the SLO, or was not sent because of its "+
			"server.", "side")
	descRequests = newDesc("requests_total",
		"Rows that came due on a side and have ended there: sent, or never sent.", "side", "result")
	descEpochPairs = newDesc("epoch_pairs",
		"Pairs of the evidence: since the epoch, also before a restart of replayd.", "result")
	descEpochBlocks = newDesc("epoch_blocks",
		"Blocks of the evidence: since the epoch, also before a restart of replayd.")
	descOutputTokens = newDesc("output_tokens_total",
		"Output tokens of judged pairs of which the lengths of both answers are known.", "side")
	descAnswers = newDesc("answers_total",
		"Answers of judged pairs with an answer of each side, by the reason that the server gave for the "+
			"end.", "side", "finish_reason")
	descOutputLength = newDesc("output_length_ratio",
		"Length of the candidate's answer ÷ that of the baseline's, the median of pairs since the epoch.")
	descBlockCorrelation = newDesc("block_correlation",
		"Correlation of neighboring blocks' values. Evidence needs one near 0.", "metric")
	descChanged = newDesc("changed",
		"1 while the candidate is changed against the baseline. With mode watch.", "metric", "direction")
	descChanges = newDesc("changes_total",
		"Changes that were found; back: the metric is as before. With mode watch.", "metric", "direction")
)

func newDesc(name, help string, extra ...string) *prometheus.Desc {
	d := prometheus.NewDesc("replayd_comparison_"+name, help, append([]string{"comparison"}, extra...), nil)
	descs = append(descs, d)
	return d
}

// A Collector exports the state of comparisons. It is safe for concurrent use.
type Collector struct {
	StateErrors prometheus.Counter // times that the state file could not be written, locked or read

	created time.Time

	mu       sync.Mutex
	all      []func() Status
	counters map[string]*canary.Counters // by name, also of names that are gone: they may come back
}

// maxNames bounds the names whose counters are kept after they are gone.
const maxNames = 1000

// NewCollector registers the series of comparisons with reg and panics if they are already registered.
func NewCollector(reg prometheus.Registerer) *Collector {
	c := &Collector{
		created:  time.Now(),
		counters: map[string]*canary.Counters{},
		StateErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "replayd_state_errors_total",
			Help: "Times that the state file, which keeps the evidence of comparisons, could not be written, " +
				"locked or read.",
		}),
	}
	reg.MustRegister(c, c.StateErrors)
	return c
}

// Show exports these comparisons, and no others any more. Their names are unique.
func (c *Collector) Show(all []func() Status) {
	c.mu.Lock()
	c.all = all
	many := len(c.counters) > maxNames
	c.mu.Unlock()
	if !many {
		return
	}
	kept := map[string]*canary.Counters{}
	for _, one := range all { // without the lock, for which a scrape waits
		now := one()
		kept[now.Name] = now.Counters
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counters = kept
}

// Counters returns the counters of all comparisons that have a name, one after the other: they begin at 0 with the
// process, and never fall. Whoever calls Show calls it.
func (c *Collector) Counters(name string) *canary.Counters {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.counters[name]
	if one == nil {
		one = canary.NewCounters()
		c.counters[name] = one
	}
	return one
}

// Now returns the present state of all comparisons.
func (c *Collector) Now() []Status {
	c.mu.Lock()
	all := c.all
	c.mu.Unlock()
	now := make([]Status, len(all))
	for i, one := range all {
		now[i] = one()
	}
	return now
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range descs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	for _, one := range c.Now() {
		series{ch, one.Name, c.created}.export(&one)
	}
}

// series exports the series of one comparison.
type series struct {
	ch      chan<- prometheus.Metric
	name    string
	created time.Time
}

func (s series) labels(more []string) []string {
	all := append([]string{s.name}, more...)
	for i, text := range all {
		all[i] = strings.ToValidUTF8(text, "\uFFFD")
	}
	return all
}

func (s series) gauge(d *prometheus.Desc, v float64, labels ...string) {
	s.ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, s.labels(labels)...)
}

func (s series) counter(d *prometheus.Desc, v int64, labels ...string) {
	s.ch <- prometheus.MustNewConstMetricWithCreatedTimestamp(d, prometheus.CounterValue, float64(v), s.created,
		s.labels(labels)...)
}

// stateSet exports 1 for the present value of a closed list, and 0 for each other one.
func stateSet[T ~string](s series, d *prometheus.Desc, all []T, present T) {
	for _, v := range all {
		s.gauge(d, map[bool]float64{true: 1}[v == present], string(v))
	}
}

// export exports a comparison. Every value of the closed lists has its series from the start.
func (s series) export(c *Status) {
	j := &c.Judgment
	s.gauge(descInfo, 1, c.Workload, c.Baseline, c.Candidate, string(c.Options.Mode))
	s.gauge(descEpoch, float64(c.Epoch.UnixMilli())/1e3)
	s.gauge(descVersion, 1, c.Version)
	s.gauge(descBlockMinPairs, float64(c.Options.MinPairs))
	s.gauge(descBlockMinTime, c.Options.MinTime.Seconds())
	totals := c.Counters.Totals()
	s.counter(descPairs, totals.Pairs.Judged, "judged")
	s.counter(descPairs, totals.Pairs.Void, "void")
	s.counter(descPairsDue, totals.Due)
	for _, why := range canary.Voids {
		s.counter(descPairsVoid, totals.Pairs.Voids[why], why.String())
	}
	for side, r := range totals.Requests {
		of := canary.Side(side).String()
		s.counter(descPairsBad, totals.Pairs.Bad[side], of)
		s.counter(descRequests, r.Sent, of, "sent")
		s.counter(descRequests, r.Unsent, of, "not_sent")
		s.counter(descOutputTokens, totals.Answers.Tokens[side], of)
		for f, n := range totals.Answers.Finishes[side] {
			s.counter(descAnswers, n, of, canary.Finish(f).String())
		}
	}
	s.gauge(descEpochPairs, float64(j.Pairs.Judged), "judged")
	s.gauge(descEpochPairs, float64(j.Pairs.Void), "void")
	s.gauge(descEpochBlocks, float64(j.Blocks))
	s.gauge(descOutputLength, j.Answers.Ratio)
	stateSet(s, descBlind, canary.BlindReasons, j.Blind)
	s.gauge(descCalm, j.Calm)
	s.gauge(descWander, c.Options.Wander)
	for side, share := range j.Others {
		if !math.IsNaN(share) {
			s.gauge(descOthers, share, canary.Side(side).String())
		}
	}
	for m, ratio := range j.Overall {
		s.gauge(descAllPairs, ratio, canary.Metric(m).String())
	}
	for _, why := range canary.Skips {
		s.counter(descBlocksSkipped, totals.Skipped[why], string(why))
	}
	for _, m := range canary.Metrics {
		blocks := &totals.Metrics[m]
		s.counter(descBlocks, blocks.Above, m.String(), "above")
		s.counter(descBlocks, blocks.At, m.String(), "at")
		s.counter(descBlocks, blocks.Below, m.String(), "below")
		s.gauge(descTolerance, c.Options.ToleranceOf(m), m.String())
	}
	if c.Options.Mode == canary.ModeWatch {
		s.exportWatch(c, &totals)
		return
	}
	stateSet(s, descVerdict, canary.Verdicts, j.Verdict)
	stateSet(s, descScope, canary.Scopes, j.Scope)
	s.exportPods(&j.Pods)
	stateSet(s, descUndecided, canary.Reasons, j.Reason)
	more := float64(j.More)
	if j.More < 0 {
		more = math.Inf(1)
	}
	s.gauge(descBlocksNeeded, more)
	fail, pass := c.Options.FailLog10(), c.Options.PassLog10()
	if c.Options.Require == canary.ScopePods { // evidence of blocks gives no verdict then, nor does that of several shards
		fail, pass = math.Inf(1), math.Inf(1)
	}
	s.gauge(descEvidenceNeeded, fail, "worse")
	s.gauge(descEvidenceNeeded, pass, "not_worse")
	for _, m := range j.Metrics {
		s.gauge(descBlockCorrelation, m.Correlation, m.Metric.String())
		s.gauge(descEvidence, m.WorseLog10, m.Metric.String(), "worse")
		if !m.Metric.IsLatency() {
			s.gauge(descExcess, m.Excess, m.Metric.String())
			s.gauge(descExcessUpper, m.ExcessUpper, m.Metric.String())
			continue
		}
		s.gauge(descEvidence, m.NotWorseLog10, m.Metric.String(), "not_worse")
		s.gauge(descRatio, m.Lower, m.Metric.String(), "lower")
		s.gauge(descRatio, m.Ratio, m.Metric.String(), "estimate")
		s.gauge(descRatio, m.Upper, m.Metric.String(), "upper")
	}
}

func (s series) exportPods(p *canary.PodsState) {
	if max(p.Pods[canary.Baseline], p.Pods[canary.Candidate]) <= 1 {
		return
	}
	stateSet(s, descPodsVerdict, canary.Verdicts, p.Verdict)
	for m, of := range p.Metrics {
		if canary.Metric(m).IsLatency() && !math.IsNaN(of.Estimate) {
			name := canary.Metric(m).String()
			s.gauge(descPodsRatio, of.Lower, name, "lower")
			s.gauge(descPodsRatio, of.Estimate, name, "estimate")
			s.gauge(descPodsRatio, of.Upper, name, "upper")
		}
	}
}

// exportWatch exports a comparison that never ends. Ratio and excess are those of the latest blocks.
func (s series) exportWatch(c *Status, totals *canary.Totals) {
	for _, m := range c.Judgment.Watch {
		name := m.Metric.String()
		s.gauge(descBlockCorrelation, m.Correlation, name)
		if m.Metric.IsLatency() {
			s.gauge(descRatio, m.Ratio, name, "estimate")
		} else {
			s.gauge(descExcess, m.Excess, name)
		}
		for _, d := range m.Metric.Directions() {
			s.counter(descChanges, totals.Metrics[m.Metric].Changes[d], name, string(d))
			// No sample says "not changed" where nothing is seen.
			seen := m.Blocks > 0 && (c.Judgment.Blind == "" || m.Metric == canary.Bad)
			if d != canary.Back && (seen || m.Direction != "") {
				s.gauge(descChanged, map[bool]float64{true: 1}[d == m.Direction], name, string(d))
			}
		}
	}
}
