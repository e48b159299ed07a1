package metrics

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"replayd/internal/limits"
	"replayd/internal/measure"

	"github.com/prometheus/client_golang/prometheus"
)

// series holds all client-side series with one set of labels.
type series struct {
	labels  Labels
	values  []string // the labels in the order of threeLabels
	created time.Time
	began   time.Time                     // created, or the start of the workload's counts under its previous model name
	hists   [numHists]prometheus.Observer // each one is also a prometheus.Metric
	users   int                           // workloads that count or have counted here; guarded by Meter.mu
	current int                           // workloads that currently count here; guarded by Meter.mu

	mu sync.Mutex
	n  counts
}

// counts is copied as a whole under the lock, so that a scrape sees a consistent state.
type counts struct {
	expected int64
	open     [numStages]int64
	finished [measure.NumOutcomes]int64
	dropped  [measure.NumDropReasons]int64
	past     *measure.Ledger // of models that have lost their place, in the series of goneModel

	retries, merged, withoutUsage, good, eligible, unjudged int64
	tokens                                                  [len(tokenKinds)]int64
	mismatch                                                [len(mismatchKinds)]int64
	violations                                              [measure.SLOKinds]int64
	source                                                  [len(stampSources)]int64

	replicas replicas
	models   names // that rows name
	sessions sessionCounts
	finishes map[string]int64 // answers of status 2xx, by the finish reason in the table of meaning
	rules    [measure.NumUsageRules]int64
	unread   int64

	options   WorkloadOptions // of the latest workload, without its target and its trace
	playback  playback
	loopsDone int64
	skipped   int64                   // activations
	loopsLeft int64                   // that were left out
	guard     [limits.NumLimits]int64 // workloads with an open limit: two while one drains
	latest    *Workload               // the latest workload, whose fault is shown
	fault     bool
	stuck     bool
}

// A playback is the state of a workload that does not depend on the name of its model.
type playback struct {
	trace  TraceInfo
	loop   int64
	every  time.Duration                                        // from the start of a loop to that of the next
	idle   float64                                              // share of that without rows; NaN: not known
	clock  func() (position, skew time.Duration, due time.Time) // nil: all are 0
	paused bool
}

func (m *Meter) newSeries(l Labels) *series {
	now := time.Now()
	s := &series{labels: l, values: []string{l.Workload, l.Target, l.Model}, created: now, began: now}
	s.n.finishes, s.n.playback.idle = map[string]int64{}, math.NaN()
	for _, reason := range usualFinishes {
		s.n.finishes[reason] = 0
	}
	for i, h := range m.hists {
		s.hists[i] = h.WithLabelValues(s.values...)
	}
	return s
}

func (s *series) configure(o WorkloadOptions) {
	trace := o.Trace.valid()
	o.Shard.Of, o.Target, o.Trace = max(o.Shard.Of, 1), nil, TraceInfo{}
	s.change(func(n *counts) {
		n.options, n.playback.trace, n.fault, n.stuck = o, trace, false, false
	})
}

func (t TraceInfo) valid() TraceInfo {
	t.Path = valid(t.Path)
	t.Format = valid(t.Format)
	t.SHA256 = valid(t.SHA256[:min(12, len(t.SHA256))])
	return t
}

// release drops the references to the runner and the workload.
func (s *series) release() { s.change(func(n *counts) { n.playback.clock, n.latest = nil, nil }) }

func (s *series) change(f func(n *counts)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.n)
}

// counts returns a copy of all counts, so that the reader does not hold the lock that each finished request needs.
func (s *series) counts() counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n.replicas.show()
	s.n.models.show()
	n := s.n
	n.finishes = maps.Clone(n.finishes)
	return n
}

// A shower exports a value of a series with its labels.
type shower func(d *prometheus.Desc, v float64, extra ...string)

// collect exports the counts and, if now is true, the current state. A series of a model that is not served any more
// has no state, because a second value of the workload's state would distort sums and joins.
func (s *series) collect(ch chan<- prometheus.Metric, now bool) {
	n := s.counts()

	counter := func(d *prometheus.Desc, v float64, extra ...string) {
		ch <- prometheus.MustNewConstMetricWithCreatedTimestamp(d, prometheus.CounterValue, v, s.created,
			slices.Concat(s.values, extra)...)
	}
	gauge := func(d *prometheus.Desc, v float64, extra ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, slices.Concat(s.values, extra)...)
	}

	counter(descExpected, float64(n.expected))
	for i, o := range allOutcomes {
		counter(descRequests, float64(n.finished[i]), string(o))
	}
	for i, r := range allDropReasons {
		counter(descDropped, float64(n.dropped[i]), string(r))
	}
	gauge(descInFlight, float64(n.open[inFlight]))
	gauge(descWaiting, float64(n.open[waiting]))

	counter(descRetries, float64(n.retries))
	counter(descMerged, float64(n.merged))
	for i, v := range n.tokens {
		counter(descTokens, float64(v), tokenKinds[i])
	}
	for i, v := range n.mismatch {
		counter(descMismatch, float64(v), mismatchKinds[i])
	}
	counter(descNoUsage, float64(n.withoutUsage))
	for i, name := range usageRules {
		counter(descRules, float64(n.rules[i]), name)
	}
	for _, reason := range slices.Sorted(maps.Keys(n.finishes)) {
		counter(descFinishes, float64(n.finishes[reason]), reason)
	}
	counter(descUnread, float64(n.unread))
	counter(descGoodput, float64(n.good))
	counter(descEligible, float64(n.eligible))
	counter(descUnjudged, float64(n.unjudged))
	for i, v := range n.violations {
		if v > 0 || i == measure.SLOError || measure.Quantity(i) <= measure.E2E || n.options.SLO.Limit(measure.Quantity(i)) > 0 {
			counter(descViolation, float64(v), measure.SLOName(i))
		}
	}
	for _, r := range n.replicas.shown {
		ch <- prometheus.MustNewConstMetricWithCreatedTimestamp(descReplica, prometheus.CounterValue, float64(r.all()), r.began,
			slices.Concat(s.values, []string{r.name})...)
	}
	for _, m := range n.models.shown {
		for i, ended := range m.ended {
			if ended > 0 || allOutcomes[i] == measure.OK {
				ch <- prometheus.MustNewConstMetricWithCreatedTimestamp(descRequested, prometheus.CounterValue, float64(ended), m.began,
					slices.Concat(s.values, []string{m.name, string(allOutcomes[i])})...)
			}
		}
	}
	if n.options.Replicas {
		counter(descMoved, float64(n.replicas.moved))
	}
	if n.options.Echo {
		for e := measure.EchoKept; e < measure.NumEchoes; e++ {
			counter(descEcho, float64(n.replicas.echoes[e]), e.String())
		}
	}
	counter(descLoopsDone, float64(n.loopsDone))
	if n.options.Cron {
		counter(descSkipped, float64(n.skipped))
	}
	counter(descLoopsLeft, float64(n.loopsLeft))
	if n.hasSessions() {
		n.collectSessions(counter, gauge)
	}
	if now {
		n.collectState(gauge)
	}

	for i, h := range s.hists {
		if i < numPlainHists || n.hasSessions() {
			ch <- h.(prometheus.Metric)
		}
	}
}

// collectState exports the gauges of the current state.
func (n *counts) collectState(gauge shower) {
	for i, v := range n.source {
		gauge(descSource, float64(v), stampSources[i])
	}
	for _, b := range n.options.SLO {
		switch name := b.Quantity.String(); b.Quantity.Unit() {
		case measure.Milliseconds:
			gauge(descThreshold, b.Limit/1e3, name)
		case measure.Tokens:
			gauge(descLeastLen, b.Limit, name)
		case measure.TokensPerSecond:
			gauge(descLeastRate, b.Limit, name)
		}
	}
	gauge(descObjective, n.options.Objective)
	if n.hasSessions() {
		if most := n.options.Sessions.Makespan; most > 0 {
			gauge(descSessionThreshold, most.Seconds())
		}
		gauge(descSessionObjective, SessionObjective)
	}
	gauge(descUp, map[bool]float64{false: 1}[n.fault])
	gauge(descStuck, map[bool]float64{true: 1}[n.stuck])
	for i, users := range n.guard {
		gauge(descGuard, float64(min(users, 1)), limits.Limit(i).String())
	}
	gauge(descShards, float64(n.options.Shard.Of))
	gauge(descShard, float64(n.options.Shard.Index))
	n.playback.collect(gauge)
}

func (p *playback) collect(gauge shower) {
	gauge(descLoop, float64(p.loop))
	var position, skew time.Duration
	var due time.Time
	if p.clock != nil {
		position, skew, due = p.clock()
	}
	if !due.IsZero() {
		gauge(descNextDue, float64(due.UnixNano())/1e9)
	}
	if !math.IsNaN(p.idle) {
		gauge(descIdle, p.idle)
	}
	gauge(descPosition, position.Seconds())
	gauge(descLoopTime, p.every.Seconds())
	gauge(descSkew, skew.Seconds())
	gauge(descPaused, map[bool]float64{true: 1}[p.paused])
	t := p.trace
	gauge(descTrace, 1, t.Path, t.Format, t.SHA256, strconv.Itoa(t.Requests), strconv.Itoa(t.BlockTokens))
	if !math.IsNaN(t.PrefixHitRatio) {
		gauge(descHitRatio, t.PrefixHitRatio)
	}
}
