package gpu

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
)

// A script is a source that returns its answers in order and repeats the last one.
type script struct {
	answers []answer
	reads   []time.Duration // start time of each reading, relative to start
	start   time.Time
	reading bool
	closed  int
	closing error
}

type answer struct {
	takes   time.Duration // duration of the reading; past the deadline it returns the context's error
	devices []Device
	sampled time.Duration // before the reading; 0: the source does not say
	bad     string        // why a sample was left out; "": none was
	err     error
}

// Read implements Source.
func (s *script) Read(ctx context.Context) (r Reading, err error) {
	if s.reading || s.closed > 0 {
		panic("a reading while another runs, or after the end")
	}
	s.reading = true
	defer func() { s.reading = false }()
	s.reads = append(s.reads, time.Since(s.start))
	a := s.answers[0]
	if len(s.answers) > 1 {
		s.answers = s.answers[1:]
	}
	if a.takes > 0 {
		select {
		case <-time.After(a.takes):
		case <-ctx.Done():
			return r, ctx.Err()
		}
	}
	if a.bad != "" {
		r.Drop("%s", a.bad)
	}
	if a.sampled != 0 {
		r.Sampled = time.Now().Add(-a.sampled)
	}
	r.Devices = a.devices
	return r, a.err
}

// Close implements Source.
func (s *script) Close() error {
	s.closed++
	return s.closing
}

// A bench is a collector with running watches, in virtual time.
type bench struct {
	*testing.T
	reg       *prometheus.Registry
	collector *Collector
	log       bytes.Buffer
	logger    *slog.Logger // shared by all watches: one handler serializes the writes
}

func newBench(t *testing.T) *bench {
	reg := prometheus.NewPedanticRegistry()
	b := &bench{T: t, reg: reg, collector: NewCollector(reg)}
	b.logger = slog.New(slog.NewTextHandler(&b.log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	return b
}

// watch starts a watch with an interval of 5 s. end stops it and waits.
func (b *bench) watch(o WatchOptions) (end func() error) { return b.run(b.made(o)) }

// made returns a watch with an interval of 5 s that does not run yet.
func (b *bench) made(o WatchOptions) *Watch {
	if o.Kind == "" {
		o.Kind = SourceExporter
	}
	if o.Address == "" {
		o.Address = "node-1:9400"
	}
	if o.Target == "" {
		o.Target = "vllm"
	}
	o.Interval = 5 * time.Second
	o.Log = b.logger
	if s, ok := o.Source.(*script); ok {
		s.start = time.Now()
	}
	return NewWatch(b.collector, o)
}

func (b *bench) run(w *Watch) (end func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	return func() error {
		cancel()
		return <-done
	}
}

// pass advances the virtual time by d and waits until all goroutines are idle.
func pass(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
	synctest.Wait()
}

func (b *bench) page() string {
	b.Helper()
	families, err := b.reg.Gather()
	if err != nil {
		b.Fatal(err)
	}
	var text bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			b.Fatal(err)
		}
	}
	return text.String()
}

// lines returns the lines of the page that begin with prefix, without the labels common to all.
func (b *bench) lines(prefix string) string {
	b.Helper()
	var found []string
	for line := range strings.Lines(b.page()) {
		if strings.HasPrefix(line, prefix) {
			name, rest, _ := strings.Cut(strings.TrimSpace(line), "{")
			_, value, _ := strings.Cut(rest, "} ")
			found = append(found, strings.TrimPrefix(name, namespace)+" "+value)
		}
	}
	return strings.Join(found, "; ")
}

func one(watts float64) []Device {
	return []Device{{Index: "0", UUID: "GPU-10000000", Model: "M", Hostname: "node-1", Values: map[*Field]float64{fieldOf(155): watts}}}
}

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		lost := errors.New("GPU is lost")
		s := &script{answers: []answer{
			{takes: time.Second, devices: one(100)}, {devices: one(200)}, // at 0 and 5 s
			{err: lost}, {takes: time.Hour}, {err: lost}, // at 10, 15 and 20 s
			{err: lost}, {err: lost}, // at 30 and 50 s
			{takes: 2 * time.Second, devices: one(300)}, // at 90 s
			{takes: 4 * time.Second}, {devices: one(400)},
		}, closing: errors.New("it stays open")}
		end := b.watch(WatchOptions{Source: s})
		f := func(after time.Duration, want string) {
			t.Helper()
			pass(after)
			var got []string
			for _, name := range []string{"up{", "power_watts{", "age_seconds{", "scrape_duration_seconds{", "scrape_errors_total{"} {
				if l := b.lines(namespace + name); l != "" {
					got = append(got, l)
				}
			}
			if diff := cmp.Diff(want, strings.Join(got, "; ")); diff != "" {
				t.Errorf("at %v (-want +got):\n%s", time.Since(s.start), diff)
			}
		}
		f(0, "up 0; scrape_duration_seconds 0; scrape_errors_total 0")
		f(time.Second, "up 1; power_watts 100; age_seconds 0; scrape_duration_seconds 1; scrape_errors_total 0")
		f(3*time.Second, "up 1; power_watts 100; age_seconds 3; scrape_duration_seconds 1; scrape_errors_total 0")
		f(time.Second, "up 1; power_watts 200; age_seconds 0; scrape_duration_seconds 0; scrape_errors_total 0")
		f(5*time.Second, "up 0; power_watts 200; age_seconds 5; scrape_duration_seconds 0; scrape_errors_total 1")
		f(8*time.Second, "up 0; power_watts 200; age_seconds 13; scrape_duration_seconds 0; scrape_errors_total 1")
		f(time.Second, "up 0; power_watts 200; age_seconds 14; scrape_duration_seconds 3.75; scrape_errors_total 2") // ended at 18.75 s
		f(time.Second, "up 0; age_seconds 15; scrape_duration_seconds 0; scrape_errors_total 3")
		f(72*time.Second, "up 1; power_watts 300; age_seconds 0; scrape_duration_seconds 2; scrape_errors_total 5")
		f(3*time.Second, "up 1; power_watts 300; age_seconds 3; scrape_duration_seconds 2; scrape_errors_total 5")
		f(5*time.Second, "up 1; power_watts 400; age_seconds 0; scrape_duration_seconds 0; scrape_errors_total 6")
		if err := end(); !errors.Is(err, s.closing) || s.closed != 1 {
			t.Errorf("closed %d times with %v, want once with %v", s.closed, err, s.closing)
		}
		if got := b.page(); got != "" {
			t.Errorf("after the end the page has\n%s", got)
		}
		want := []time.Duration{0, 5, 10, 15, 20, 30, 50, 90, 95, 100}
		for i := range want {
			want[i] *= time.Second
		}
		if diff := cmp.Diff(want, s.reads); diff != "" {
			t.Errorf("readings (-want +got):\n%s", diff)
		}
		golden(t, "testdata/watch.log", b.log.String())
	})
}

// What a source leaves out is counted, also beside a reading that fails, and told once. A source that says when it has
// sampled says how old the figures are; one whose clock is ahead does not.
func TestWatchOfBadSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		bad, good := answer{devices: one(100), bad: "it is lost", sampled: 4 * time.Second}, answer{devices: one(200), sampled: time.Second}
		ahead := answer{devices: one(300), sampled: -time.Hour}
		end := b.watch(WatchOptions{Source: &script{answers: []answer{good, bad, bad, {err: errors.New("gone"), bad: "it is lost"}, good, ahead}}})
		series := []string{"up{", "power_watts{", "age_seconds{", "bad_samples_total{"}
		for _, want := range []string{
			"up 1; power_watts 200; age_seconds 1; bad_samples_total 0", "up 1; power_watts 100; age_seconds 4; bad_samples_total 1",
			"up 1; power_watts 100; age_seconds 4; bad_samples_total 2", "up 0; power_watts 100; age_seconds 9; bad_samples_total 3",
			"up 1; power_watts 200; age_seconds 1; bad_samples_total 3", "up 1; power_watts 300; age_seconds 0; bad_samples_total 3",
		} {
			synctest.Wait()
			b.holds(want, series...)
			pass(5 * time.Second)
		}
		if told := strings.Count(b.log.String(), `samples=1 first="it is lost"`); told != 1 {
			t.Errorf("told %d times: %s", told, b.log.String())
		}
		_ = end()
	})
}

// A reading that replayd cannot make for want of a descriptor says nothing about the source. Old figures disappear all the same.
func TestWatchOwnShortage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		own := answer{err: os.NewSyscallError("pipe2", syscall.EMFILE)}
		end := b.watch(WatchOptions{Source: &script{answers: []answer{{devices: one(100)}, own, own, own, {devices: one(200)}}}})
		for _, want := range []string{"up 1; power_watts 100", "up 1; power_watts 100", "up 1; power_watts 100", "up 1", "up 1; power_watts 200"} {
			synctest.Wait()
			got := b.lines(namespace + "up{")
			if l := b.lines(namespace + "power_watts{"); l != "" {
				got += "; " + l
			}
			if got != want || b.lines(namespace+"scrape_errors_total{") != "scrape_errors_total 0" {
				t.Errorf("want %s and no error, got %s, %s", want, got, b.lines(namespace+"scrape_errors_total{"))
			}
			pass(5 * time.Second)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestWatchBacksOff checks the pauses while a source stays lost: whole intervals of at most a minute.
func TestWatchBacksOff(t *testing.T) {
	f := func(interval time.Duration, want ...time.Duration) {
		t.Helper()
		w := NewWatch(nil, WatchOptions{Interval: interval, Log: slog.New(slog.DiscardHandler)})
		for missed, d := range want {
			w.state.missed = missed
			if got := w.pause(); got != d {
				t.Errorf("%v after %d misses, with an interval of %v, want %v", got, missed, interval, d)
			}
		}
	}
	const s, m = time.Second, time.Minute
	f(s, s, s, s, 2*s, 4*s, 8*s, 16*s, 32*s, 32*s, 32*s)
	f(15*s, 15*s, 15*s, 15*s, 30*s, 60*s, 60*s)
	f(45*s, 45*s, 45*s, 45*s, 45*s)
	f(5*m, 5*m, 5*m, 5*m, 5*m)
}

// TestWatchEndsInMidReading stops a watch during a reading, which is not a failure of the source.
func TestWatchEndsInMidReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		end := b.watch(WatchOptions{Source: &script{answers: []answer{{takes: time.Hour}}}})
		pass(time.Second)
		if err := end(); err != nil {
			t.Error(err)
		}
		if got := b.log.String(); got != "" {
			t.Errorf("log %s", got)
		}
	})
}

// TestErrorsOutliveAWatch checks that the error counter of a source continues when the source is watched again.
func TestErrorsOutliveAWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		lost := []answer{{err: errors.New("lost")}}
		first := b.watch(WatchOptions{Source: &script{answers: lost}})
		pass(6 * time.Second)
		second := b.watch(WatchOptions{Source: &script{answers: lost}})
		pass(0)
		f := func(want string) {
			t.Helper()
			if got := b.lines(namespace + "scrape_errors_total"); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		f("scrape_errors_total 3")
		_ = first()
		f("scrape_errors_total 3")
		_ = second()
		f("")
		third := b.watch(WatchOptions{Source: &script{answers: []answer{{devices: one(1)}}}})
		pass(0)
		f("scrape_errors_total 3")
		_ = third()
		for i := range keptIdle { // keptIdle other sources evict it
			_ = b.watch(WatchOptions{Source: &script{answers: lost}, Target: strconv.Itoa(i)})()
		}
		fourth := b.watch(WatchOptions{Source: &script{answers: []answer{{devices: one(1)}}}})
		pass(0)
		f("scrape_errors_total 0")
		_ = fourth()
		if n := len(b.collector.origins); n > keptIdle {
			t.Errorf("%d sources are remembered, want %d at most", n, keptIdle)
		}
	})
}
