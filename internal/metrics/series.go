package metrics

import (
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

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

	mu sync.Locker // a sync.Mutex; tests replace it to check n before each Unlock
	n  counts
}

// counts is copied as a whole under the lock, so that a scrape sees a consistent state.
type counts struct {
	expected, waiting, inFlight int64
	finished                    [measure.NumOutcomes]int64
	dropped                     [measure.NumDropReasons]int64

	retries, merged, withoutUsage, good, eligible int64
	tokens                                        [len(tokenKinds)]int64
	mismatch                                      [len(mismatchKinds)]int64
	violations                                    [measure.SLOKinds]int64
	source                                        [len(stampSources)]int64

	replicas replicas
	sessions sessionCounts

	loop, loopsDone int64
	paused          bool
	guard           [measure.NumGuardLimits]int64 // workloads with an open limit: two while one drains
	loopDuration    time.Duration
	clock           func() (position, skew time.Duration) // nil: both are 0
	slo             measure.SLO
	objective       float64
	sessionSLO      SessionSLO
	shard           Shard
	trace           TraceInfo
	latest          *Workload // the latest workload, whose fault is shown
	fault           bool
}

func (m *Meter) newSeries(l Labels) *series {
	now := time.Now()
	s := &series{labels: l, values: []string{l.Workload, l.Target, l.Model}, created: now, began: now, mu: &sync.Mutex{}}
	for i, h := range m.hists {
		s.hists[i] = h.WithLabelValues(s.values...)
	}
	return s
}

func (s *series) configure(o WorkloadOptions) {
	o.Trace = o.Trace.valid()
	o.Shard.Of = max(o.Shard.Of, 1)
	s.change(func(n *counts) {
		n.slo, n.objective, n.sessionSLO, n.shard, n.trace, n.fault = o.SLO, o.Objective, o.Sessions, o.Shard, o.Trace, false
		n.replicas.named, n.replicas.echoed = o.Replicas, o.Echo
	})
}

func (t TraceInfo) valid() TraceInfo {
	t.Path = valid(t.Path)
	t.Format = valid(t.Format)
	t.SHA256 = valid(t.SHA256[:min(12, len(t.SHA256))])
	return t
}

// release drops the references to the runner and the workload.
func (s *series) release() { s.change(func(n *counts) { n.clock, n.latest = nil, nil }) }

func (s *series) change(f func(n *counts)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.n)
}

// counts returns a copy of all counts, so that the reader does not hold the lock that each finished request needs.
func (s *series) counts() counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.n
	n.replicas.ended = slices.Clone(n.replicas.ended)
	return n
}

// collect exports the counts and, if now is true, the current state. A series of a model that is not served any more
// has no state, because a second value of the workload's state would distort sums and joins.
func (s *series) collect(ch chan<- prometheus.Metric, now bool) {
	n := s.counts()

	counter := func(d *prometheus.Desc, v int64, extra ...string) {
		ch <- prometheus.MustNewConstMetricWithCreatedTimestamp(d, prometheus.CounterValue, float64(v), s.created, slices.Concat(s.values, extra)...)
	}
	gauge := func(d *prometheus.Desc, v float64, extra ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, slices.Concat(s.values, extra)...)
	}

	counter(descExpected, n.expected)
	for i, o := range allOutcomes {
		counter(descRequests, n.finished[i], string(o))
	}
	for i, r := range allDropReasons {
		counter(descDropped, n.dropped[i], string(r))
	}
	gauge(descInFlight, float64(n.inFlight))
	gauge(descWaiting, float64(n.waiting))

	counter(descRetries, n.retries)
	counter(descMerged, n.merged)
	for i, v := range n.tokens {
		counter(descTokens, v, tokenKinds[i])
	}
	for i, v := range n.mismatch {
		counter(descMismatch, v, mismatchKinds[i])
	}
	counter(descNoUsage, n.withoutUsage)
	counter(descGoodput, n.good)
	counter(descEligible, n.eligible)
	for i, v := range n.violations {
		if v > 0 || i == measure.SLOError || measure.Quantity(i) <= measure.E2E || n.slo.Limit(measure.Quantity(i)) > 0 {
			counter(descViolation, v, measure.SLOName(i))
		}
	}
	for i, name := range n.replicas.names {
		counter(descReplica, n.replicas.ended[i], name)
	}
	if n.replicas.named {
		counter(descMoved, n.replicas.moved)
	}
	if n.replicas.echoed {
		for e := measure.EchoKept; e < measure.NumEchoes; e++ {
			counter(descEcho, n.replicas.echoes[e], e.String())
		}
	}
	counter(descLoopsDone, n.loopsDone)
	if n.hasSessions() {
		s.collectSessions(ch, &n.sessions)
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
func (n *counts) collectState(gauge func(d *prometheus.Desc, v float64, extra ...string)) {
	for i, v := range n.source {
		gauge(descSource, float64(v), stampSources[i])
	}
	for _, b := range n.slo {
		switch name := b.Quantity.String(); b.Quantity.Unit() {
		case measure.Milliseconds:
			gauge(descThreshold, b.Limit/1e3, name)
		case measure.Tokens:
			gauge(descLeastLen, b.Limit, name)
		case measure.TokensPerSecond:
			gauge(descLeastRate, b.Limit, name)
		}
	}
	gauge(descObjective, n.objective)
	if n.hasSessions() {
		n.sessionSLO.collect(gauge)
	}
	gauge(descLoop, float64(n.loop))
	var position, skew time.Duration
	if n.clock != nil { // called without the lock, because clock may lock the runner
		position, skew = n.clock()
	}
	gauge(descPosition, position.Seconds())
	gauge(descLoopTime, n.loopDuration.Seconds())
	gauge(descSkew, skew.Seconds())
	gauge(descUp, map[bool]float64{false: 1}[n.fault])
	gauge(descPaused, map[bool]float64{true: 1}[n.paused])
	for i, users := range n.guard {
		gauge(descGuard, float64(min(users, 1)), string(allGuardLimits[i]))
	}
	gauge(descShards, float64(n.shard.Of))
	gauge(descShard, float64(n.shard.Index))
	t := n.trace
	gauge(descTrace, 1, t.Path, t.Format, t.SHA256, strconv.Itoa(t.Requests), strconv.Itoa(t.BlockTokens))
	if !math.IsNaN(t.PrefixHitRatio) {
		gauge(descHitRatio, t.PrefixHitRatio)
	}
}
