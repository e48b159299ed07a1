package daemon

import (
	"bytes"
	"context"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"replayd/internal/canary"
	"replayd/internal/comparison"
	"replayd/internal/config"
	"replayd/internal/measure"
	"replayd/internal/sim"

	"replayd/test/outside"
)

// compareOnce compares two servers as `replayd compare` does, 12,000 output tokens a second on each, until seen
// returns true.
func compareOnce(t *testing.T, baseline, candidate string, seen func(j *canary.Judgment) bool) (last canary.Judgment) {
	t.Helper()
	one := config.DefaultComparison()
	one.Name, one.Workload, one.Candidate = "compare", "load", "candidate"
	trace := strings.Repeat(`{"timestamp": 0, "input_length": 20, "output_length": 600}`+"\n", 20)
	c := conf([]config.Target{target("baseline", baseline), target("candidate", candidate)},
		looped("load", "baseline", write(t, "trace.jsonl", trace)))
	for i := range c.Targets {
		c.Targets[i].Metrics.Interval = 50 * time.Millisecond
	}
	c.Comparisons = []config.Comparison{one}
	ctx, stop := context.WithTimeoutCause(t.Context(), outside.Patience, errors.New("it never came"))
	defer stop()
	o := (&heard{}).options(c)
	o.Listeners = comparison.Listeners{Judged: func(j canary.Judgment) {
		if ctx.Err() == nil && seen(&j) {
			last = j
			stop()
		}
	}}
	if err := (Once{Options: o, Started: nothing, Ended: func(measure.Ledger, error) {}}).Run(ctx, t.Context()); err != nil {
		t.Error(err)
	}
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return last
}

func fast(o *sim.Options) { o.TTFT, o.ITL = time.Microsecond, time.Microsecond }

// Of two simulated engines, one has another client. The sentence of a comparison that is made once says so, as that of
// a daemon does.
func TestComparisonOfUnequalLoads(t *testing.T) {
	_, baseline := engine(t, fast)
	_, candidate := engine(t, fast)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		var err error
		for err == nil {
			err = askFor5000(ctx, candidate)
		}
		ended <- err
	}()
	j := compareOnce(t, baseline, candidate, func(j *canary.Judgment) bool {
		return strings.Contains(j.Text(canary.Defaults()), ". Loads differ: other clients got ")
	})
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if j.Others[canary.Candidate] <= j.Others[canary.Baseline] || j.UnknownLoads() != "" {
		t.Errorf("want more other clients of the candidate, got the shares %v; %s", j.Others, j.UnknownLoads())
	}
}

func askFor5000(ctx context.Context, server string) error {
	const body = `{"model": "sim", "max_tokens": 5000, "ignore_eos": true, "messages": [{"role": "user", "content": "a b c"}]}`
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, server+"/v1/chat/completions", bytes.NewBufferString(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	if err := a.Body.Close(); err != nil {
		return err
	}
	if a.StatusCode != http.StatusOK {
		return errors.New(a.Status)
	}
	return nil
}

// A metrics page that hangs holds nothing up, and none that cannot be read is a fault. As long as one is not read, nothing
// is said about loads but that.
func TestComparisonWithoutAPage(t *testing.T) {
	_, baseline := engine(t, fast)
	_, behind := engine(t, fast)
	to, err := url.Parse(behind)
	if err != nil {
		t.Fatal(err)
	}
	const hangs, answers, fails = 0, 1, 2
	var page atomic.Int32
	whole := httputil.NewSingleHostReverseProxy(to)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch how := page.Load(); {
		case !strings.HasSuffix(r.URL.Path, "/metrics") || how == answers:
			whole.ServeHTTP(w, r)
		case how == hangs:
			<-r.Context().Done()
		default:
			http.Error(w, "no page", http.StatusInternalServerError)
		}
	}))
	t.Cleanup(s.Close)
	const unread = "the metrics page of the candidate was not read"
	unreadYet := func(j *canary.Judgment) bool {
		return j.Pairs.Judged > 0 && strings.Contains(j.UnknownLoads(), unread)
	}
	j := compareOnce(t, baseline, s.URL, unreadYet)
	if !math.IsNaN(j.Others[canary.Candidate]) {
		t.Errorf("want no share of other clients, got %v", j.Others)
	}
	page.Store(answers)
	read := false
	compareOnce(t, baseline, s.URL, func(j *canary.Judgment) bool {
		switch {
		case !read && j.UnknownLoads() == "":
			read = true
			page.Store(fails)
		case read:
			return unreadYet(j)
		}
		return false
	})
}
