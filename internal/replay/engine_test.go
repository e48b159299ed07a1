package replay

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/config"

	"replayd/internal/measure"
	"replayd/internal/metrics"
	"replayd/internal/openai"
	"replayd/internal/schedule"
	"replayd/internal/synth"
	"replayd/internal/token"
	"replayd/internal/trace"
)

// kept is an observer that keeps deep copies, because an observer must not retain the requests themselves.
type kept struct {
	mu      sync.Mutex
	all     []measure.Request
	dropped map[measure.DropReason]int
}

func (k *kept) Observe(r *measure.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c := *r
	c.Timeline.Chunks = append([]time.Duration(nil), r.Timeline.Chunks...)
	c.Text = bytes.Clone(r.Text)
	k.all = append(k.all, c)
}

func (k *kept) outcomes() map[measure.Outcome]int {
	m := map[measure.Outcome]int{}
	for _, r := range k.all {
		m[r.Outcome]++
	}
	return m
}

// source is a trace in memory. Rows without lengths get 4 input and 3 output tokens.
func source(rows ...trace.Record) schedule.Source {
	for i := range rows {
		if rows[i].InputTokens == 0 {
			rows[i].InputTokens = 4
		}
		if rows[i].OutputTokens == 0 {
			rows[i].OutputTokens = 3
		}
	}
	return source0(rows...)
}

// source0 is source without the default lengths.
func source0(rows ...trace.Record) schedule.Source {
	s := schedule.Source{HasTimestamps: true}
	last := map[string]int{}
	for i := range rows {
		_, known := last[rows[i].Session]
		rows[i].Number, rows[i].First = i, rows[i].Session != "" && !known
		last[rows[i].Session] = i
		s.Last = max(s.Last, rows[i].Offset)
	}
	for session, i := range last {
		rows[i].Last = session != ""
	}
	s.Rows = func(from time.Duration) (func() (trace.Record, error), error) {
		i := 0
		for i < len(rows) && rows[i].Offset < from {
			i++
		}
		return func() (trace.Record, error) {
			if i == len(rows) {
				return trace.Record{}, io.EOF
			}
			i++
			return rows[i-1], nil
		}, nil
	}
	return s
}

func every(n int, gap time.Duration) schedule.Source {
	rows := make([]trace.Record, n)
	for i := range rows {
		rows[i].Offset = time.Duration(i) * gap
	}
	return source(rows...)
}

// bench is a runner with a fake server, a target, an observer and a registry of its own.
type bench struct {
	*Runner
	fake     *fake
	kept     *kept
	registry *prometheus.Registry
	client   *openai.Client
	target   *Target
	paces    bool // the runner has a pacer of its own
}

// http returns the client's HTTP configuration.
func (f *fake) http() config.HTTPClientConfig {
	c := config.DefaultHTTPClientConfig
	c.BearerTokenFile = f.keyFile
	return c
}

func newBench(t *testing.T, src schedule.Source, o schedule.Options, f *fake, change func(*Workload)) *bench {
	t.Helper()
	f.arrivals, f.bodies, f.heads = map[string]time.Time{}, map[string][]byte{}, map[string]http.Header{}
	if o.Speed == 0 {
		o.Speed = 1
	}
	if o.Arrival == "" {
		o.Arrival = schedule.Exact
	}
	plan, err := schedule.New(src, o)
	if err != nil {
		t.Fatal(err)
	}
	api := openai.Completions
	if f.api != "" {
		api = f.api
	}
	client, err := openai.New(openai.Target{
		Options: openai.Options{
			URL: "http://engine", API: api, Output: openai.OutputExact, HTTP: f.http(), Replica: "X-Replica",
			Connections: f.connections, ConnectAhead: 250 * time.Millisecond,
			Timeouts: openai.Timeouts{Connect: time.Second, FirstToken: time.Minute, Stall: time.Minute, Total: time.Hour},
		},
		Name: "t", Dial: f.dial, UserAgent: "replayd/test",
	})
	if err != nil {
		t.Fatal(err)
	}
	words, err := token.List("main")
	if err != nil {
		t.Fatal(err)
	}
	prompter, err := synth.New(synth.Options{Words: words, Form: synth.Text})
	if err != nil {
		t.Fatal(err)
	}
	k := &kept{dropped: map[measure.DropReason]int{}}
	log := slog.New(slog.DiscardHandler)
	registry := prometheus.NewRegistry()
	target := NewTarget(TargetOptions{Client: client, Named: func(string) {}, Log: log})
	own := NewPacer(NewTimers())
	w := Workload{
		Traffic: Traffic{
			Name: "w", Plan: plan, Prompt: prompter, Salt: synth.SaltLoop, LengthLimits: LengthLimits{OverLimit: Filter},
			Sending: Sending{Lanes: 16, Overload: Wait, MaxWait: 10 * time.Second},
		},
		Hooks: Hooks{Observers: []Observer{k}, Dropped: func(why measure.DropReason, n int) {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.dropped[why] += n
		}},
		Environment: Environment{
			Client: client, Target: target, Log: log, Drain: 30 * time.Second, Pacer: own,
			Count: metrics.NewMeter(registry).Workload(metrics.Labels{Workload: "w", Target: "t"},
				metrics.WorkloadOptions{Replicas: true, Echo: true, Cron: o.Mode == schedule.Cron}),
		},
	}
	if change != nil {
		change(&w)
	}
	r := New(w)
	return &bench{r, f, k, registry, client, target, w.Pacer == own}
}

// run plays the plan to its end in the bubble.
func (b *bench) run(t *testing.T, ctx, hard context.Context) {
	t.Helper()
	side, end := context.WithCancel(context.Background())
	var watch sync.WaitGroup
	watch.Go(func() {
		if err := b.target.Run(side); err != nil {
			t.Error(err)
		}
	})
	if err := b.Run(ctx, hard); err != nil {
		t.Error(err)
	}
	end()
	watch.Wait()
	b.client.Close()
	b.fake.running.Wait()
}

// counter returns the value of a series, selected by name and by the value of one label ("" for the sum of all series).
// The value of a histogram is its count.
func (b *bench) counter(t *testing.T, name, label string) float64 {
	t.Helper()
	families, err := b.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if label == "" && l.GetName() == "workload" || l.GetValue() == label && label != "" {
					sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
				}
			}
		}
	}
	return sum
}
