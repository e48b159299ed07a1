package records

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
	"replayd/test/measuretest"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func lostCounter() prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: "lost_total"})
}

// A heardSink is a sink with its log and its counter.
type heardSink struct {
	*Sink
	lost prometheus.Counter
	log  bytes.Buffer
}

func newHeardSink() *heardSink {
	s := &heardSink{lost: lostCounter()}
	s.Sink = NewSink(s.lost, slog.New(slog.NewTextHandler(&s.log, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	})))
	return s
}

// running starts a sink inside a bubble and returns a function that stops it.
func running(t *testing.T, s *Sink) (stop func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	return func() error { cancel(); return <-ended }
}

// pass advances the virtual time by d and waits until all goroutines are idle.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (s *heardSink) use(t *testing.T, o Options) {
	t.Helper()
	if err := s.Use(o); err != nil {
		t.Fatal(err)
	}
}

// heard checks the number of lost records and the log so far.
func (s *heardSink) heard(t *testing.T, lost float64, log string) {
	t.Helper()
	if got := testutil.ToFloat64(s.lost); got != lost {
		t.Errorf("%v records lost, want %v", got, lost)
	}
	if diff := cmp.Diff(log, s.log.String()); diff != "" {
		t.Errorf("log -want +got:\n%s", diff)
	}
}

func isFile(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s -want +got:\n%s", filepath.Base(path), diff)
	}
}

// numbered returns the nth request of a test. The records of all n below 10 have the same length.
func numbered(n int) *measure.Request {
	return measuretest.Request(fmt.Sprintf("w/0/%d", n), 0, measure.OK, time.Millisecond)
}

// lines returns the records of numbered requests.
func lines(numbers ...int) string {
	var b []byte
	for _, n := range numbers {
		b = appendRecord(b, numbered(n))
	}
	return string(b)
}

func TestSinkWritesWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "r.jsonl")
		s := newHeardSink()
		s.use(t, Options{Path: path})
		s.Observe(numbered(1)) // before Run
		stop := running(t, s.Sink)
		s.Observe(numbered(2))
		pass(time.Second)
		isFile(t, path, lines(1, 2))
		s.Observe(numbered(3))
		if err := stop(); err != nil {
			t.Error(err)
		}
		isFile(t, path, lines(1, 2, 3))
		s.heard(t, 0, "")
		s.Observe(numbered(4))
		s.heard(t, 1, "")
		if err := s.Use(Options{Path: path + "2"}); !errors.Is(err, errSinkEnded) {
			t.Errorf("want %v, got %v", errSinkEnded, err)
		}
	})
}

func TestSinkWritesAtOnceWhenMuchWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "r.jsonl")
		s := newHeardSink()
		s.use(t, Options{Path: path})
		stop := running(t, s.Sink)
		began := time.Now()
		r := measuretest.Request(strings.Repeat("x", sinkWake/2), 0, measure.OK, time.Millisecond)
		s.Observe(r)
		s.Observe(r)
		synctest.Wait()
		info, err := os.Stat(path)
		if err != nil || info.Size() < sinkWake || time.Since(began) != 0 {
			t.Errorf("want all bytes at once, got %v, %v after %v", info, err, time.Since(began))
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestSinkWithoutAPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newHeardSink()
		s.Observe(numbered(1))
		stop := running(t, s.Sink)
		s.use(t, Options{Keep: 3, MaxBytes: 100, Gzip: true})
		s.Observe(numbered(2))
		pass(time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		s.Observe(numbered(3))
		s.heard(t, 0, "")
	})
}

// Records observed before a change of path go to the old file.
func TestSinkChangesFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
		s := newHeardSink()
		s.use(t, Options{Path: a})
		s.Observe(numbered(1))
		s.use(t, Options{Path: b}) // before Run
		s.Observe(numbered(2))
		stop := running(t, s.Sink)
		s.use(t, Options{Path: a})
		s.Observe(numbered(3))
		open := s.file
		s.use(t, Options{Path: a})
		s.use(t, Options{Path: a, MaxBytes: 1 << 20, Keep: 1})
		if s.file != open {
			t.Error("opened anew, want the same file")
		}
		pass(time.Second)
		s.Observe(numbered(4))
		s.use(t, Options{})
		s.Observe(numbered(5)) // records are disabled
		pass(time.Second)
		s.use(t, Options{Path: b})
		s.Observe(numbered(6))
		if err := stop(); err != nil {
			t.Error(err)
		}
		isFile(t, a, lines(1, 3, 4))
		isFile(t, b, lines(2, 6))
		s.heard(t, 0, "")
	})
}

// The path changes while several goroutines observe requests: each record is in one file, and the records of each
// goroutine are in order.
func TestSinkChangesFilesMeanwhile(t *testing.T) {
	dir := t.TempDir()
	s := newHeardSink()
	paths := []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}
	s.use(t, Options{Path: paths[0]})
	stop := running(t, s.Sink)
	const each = 2000
	done := make(chan struct{})
	for g := range 2 {
		go func() {
			for n := range each {
				s.Observe(measuretest.Request(fmt.Sprintf("%d/%d", g, n), 0, measure.OK, time.Millisecond))
			}
			done <- struct{}{}
		}()
	}
	for left, n := 2, 1; left > 0; n++ {
		select {
		case <-done:
			left--
		default:
			s.use(t, Options{Path: paths[n%2]})
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	s.heard(t, 0, "")
	seen := map[string]bool{}
	for _, path := range paths {
		last := [2]int{-1, -1}
		for _, r := range records(t, path) {
			var g, n int
			if _, err := fmt.Sscanf(r, `{"id":"%d/%d"`, &g, &n); err != nil {
				t.Fatal(err)
			}
			if n <= last[g] || seen[r] {
				t.Fatalf("%s: %d/%d after %d", path, g, n, last[g])
			}
			last[g], seen[r] = n, true
		}
	}
	if len(seen) != 2*each {
		t.Errorf("%d records, want %d", len(seen), 2*each)
	}
}
