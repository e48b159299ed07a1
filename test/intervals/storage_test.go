package intervals_test

import (
	"context"
	"slices"
	"sort"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

// A memory is Prometheus' storage, without files: the series by their names. It is its own querier and appender.
type memory struct {
	inherited
	byName   map[string][]*promql.Series
	byLabels map[string]*promql.Series
}

// inherited are the methods that rules do not call.
type inherited struct {
	storage.HistogramAppender
	storage.ExemplarAppender
	storage.MetadataUpdater
	storage.StartTimestampAppender
	storage.LabelQuerier
}

func newMemory() *memory {
	return &memory{byName: map[string][]*promql.Series{}, byLabels: map[string]*promql.Series{}}
}

func (m *memory) Querier(_, _ int64) (storage.Querier, error) { return m, nil }
func (m *memory) Appender(context.Context) storage.Appender   { return m }
func (m *memory) SetOptions(*storage.AppendOptions)           {}
func (m *memory) Commit() error                               { return nil }
func (m *memory) Rollback() error                             { return nil }
func (m *memory) Close() error                                { return nil }
func (m *memory) Append(_ storage.SeriesRef, of labels.Labels, at int64, value float64) (storage.SeriesRef, error) {
	key := of.String()
	s := m.byLabels[key]
	if s == nil {
		s = &promql.Series{Metric: of}
		m.byLabels[key] = s
		name := of.Get(model.MetricNameLabel)
		m.byName[name] = append(m.byName[name], s)
	}
	if n := len(s.Floats); n > 0 && s.Floats[n-1].T >= at { // another rule with the same name has given it
		return 0, storage.ErrDuplicateSampleForTimestamp
	}
	s.Floats = append(s.Floats, promql.FPoint{T: at, F: value})
	return 0, nil
}

// Select gives what the rules ask for, all of which name their series.
func (m *memory) Select(_ context.Context, _ bool, hints *storage.SelectHints, by ...*labels.Matcher) storage.SeriesSet {
	of := &found{at: -1}
	for _, named := range by {
		if named.Name != model.MetricNameLabel || named.Type != labels.MatchEqual {
			continue
		}
		for _, s := range m.byName[named.Value] {
			if slices.ContainsFunc(by, func(one *labels.Matcher) bool { return !one.Matches(s.Metric.Get(one.Name)) }) {
				continue
			}
			from := sort.Search(len(s.Floats), func(i int) bool { return s.Floats[i].T >= hints.Start })
			to := sort.Search(len(s.Floats), func(i int) bool { return s.Floats[i].T > hints.End })
			if from < to {
				of.series = append(of.series, promql.Series{Metric: s.Metric, Floats: s.Floats[from:to]})
			}
		}
	}
	return of
}

// found is what a selector has found.
type found struct {
	series []promql.Series
	at     int
}

func (f *found) Next() bool                        { f.at++; return f.at < len(f.series) }
func (f *found) At() storage.Series                { return promql.NewStorageSeries(f.series[f.at]) }
func (f *found) Err() error                        { return nil }
func (f *found) Warnings() annotations.Annotations { return nil }
