package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/canary"
	"replayd/internal/config"
	"replayd/internal/measure"
	"replayd/internal/replay"
	"replayd/internal/sim"
)

// A stuckDaemon is a daemon with a workload "stuck", of which a step does not end until release, a workload "well", and a comparison of "load".
type stuckDaemon struct {
	*daemon
	dog     *watchdog
	release func()
	hold    chan chan struct{} // see holdComparison
	records string
	state   string

	mu  sync.Mutex
	log bytes.Buffer
}

func (d *stuckDaemon) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.log.Write(p)
}

func (d *stuckDaemon) said() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.log.String()
}

func startStuck(t *testing.T) *stuckDaemon {
	t.Helper()
	_, url := engine(t, func(*sim.Options) {})
	_, other := engine(t, func(*sim.Options) {})
	sessions := strings.ReplaceAll(rows(20), `"output_length": 4}`, `"output_length": 4, "session_id": "s"}`)
	c := conf([]config.Target{target("sim", url), target("canary", other)},
		looped("stuck", "sim", write(t, "sessions.jsonl", sessions)), looped("well", "sim", write(t, "trace.jsonl", rows(20))),
		looped("load", "sim", write(t, "load.jsonl", rows(20))))
	one := config.DefaultComparison()
	one.Name, one.Workload, one.Candidate = "rollout", "load", "canary"
	c.Comparisons = []config.Comparison{one}
	c.Web.EnableLifecycle, c.Drain = true, 0
	d := &stuckDaemon{records: filepath.Join(t.TempDir(), "records.jsonl"), state: filepath.Join(t.TempDir(), "state.json")}
	c.Records.Path, c.State.Path, d.hold = d.records, d.state, make(chan chan struct{})

	entered, gate := make(chan struct{}), make(chan struct{})
	d.release = sync.OnceFunc(func() { close(gate) })
	t.Cleanup(d.release)
	block := sync.OnceFunc(func() {
		close(entered)
		<-gate
	})
	base := &daemon{t: t, finished: make(chan measure.Request, 10000), ended: make(chan error, 1), config: c}
	d.daemon = base
	hard, abort := context.WithCancel(t.Context())
	ctx, stop := context.WithCancel(hard)
	base.stop, base.hard = stop, abort
	started := make(chan string, 1)
	go func() {
		base.ended <- Serve(ctx, hard, ServeOptions{
			Config: c, Version: "1.2.3", Log: slog.New(slog.NewTextHandler(d, nil)), Observers: []replay.Observer{base}, Load: base.load,
			Started: func(u string, _ func() measure.Ledger) { started <- u },
			change: func(o *Options) {
				d.dog = o.watchdog
				o.Within = time.Second
				o.Session = func(*measure.Session) { block() } // it is called with the runner's lock held
				o.Pair = func(*canary.Pair) {                  // and this one with that of the comparison
					select {
					case end := <-d.hold:
						<-end
					default:
					}
				}
			},
		})
		close(base.ended)
	}()
	t.Cleanup(func() {
		d.release()
		abort()
		for range base.ended {
		}
	})
	base.url = <-started
	<-entered
	return d
}

// holdComparison lets the comparison hold its lock until the function that it returns is called.
func (d *stuckDaemon) holdComparison() (end func()) {
	c := make(chan struct{})
	d.hold <- c
	return func() { close(c) }
}

var sample = regexp.MustCompile(`(?m)^(replayd_requests_[a-z_]+)\{.*workload="([^"]*)"\} (\S+)$`)

// balanced requires expected = finished + dropped + in flight + waiting of every workload on a page.
func balanced(t *testing.T, page string) {
	t.Helper()
	left := map[string]float64{}
	for _, m := range sample.FindAllStringSubmatch(page, -1) {
		v, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			t.Fatal(err)
		}
		switch m[1] {
		case "replayd_requests_expected_total":
			left[m[2]] += v
		case "replayd_requests_total", "replayd_requests_in_flight", "replayd_requests_waiting", "replayd_requests_dropped_total":
			left[m[2]] -= v
		}
	}
	if got := slices.Sorted(maps.Keys(left)); !slices.Equal(got, []string{"load", "load@canary", "stuck", "well"}) {
		t.Errorf("workloads on the page: %v", got)
	}
	for name, n := range left {
		if n != 0 {
			t.Errorf("%s: %v requests are unaccounted for", name, n)
		}
	}
}

// While a step of a workload does not end, and the locks of a comparison are held, every page answers, with exact balances. Pause, resume, reload and
// restart answer 503 naming what is stuck; everything else can still be paused, reloaded and stopped.
func TestPagesAndChangesWhileLocksAreHeld(t *testing.T) {
	d := startStuck(t)
	end := d.holdComparison()
	defer end()
	for range 10 {
		balanced(t, fetch(t, d.url+"/metrics"))
		for path, want := range map[string]string{
			"/": "replayd", "/live": "<html", "/-/comparisons": `"rollout"`, "/-/healthy": "healthy", "/-/ready": "ready", "/config": "rollout", "/runbook": "Stuck",
		} {
			if got := fetch(t, d.url+path); !strings.Contains(got, want) {
				t.Errorf("%s: want %q in\n%s", path, want, got)
			}
		}
	}
	f := func(path string, status int, want string) {
		t.Helper()
		if got, text := d.post(path); got != status || !strings.Contains(text, want) {
			t.Errorf("%s: want %d with %q, got %d: %s", path, status, want, got, text)
		}
	}
	paused := func(workload string, n int) string {
		return fmt.Sprintf(`replayd_paused{model="sim",target="sim",workload=%q} %d`, workload, n)
	}
	f("/-/pause?workload=stuck", http.StatusServiceUnavailable, `workload "stuck": no answer within 1s`)
	f("/-/pause?workload=stuck", http.StatusServiceUnavailable, `workload "stuck"`) // while the first is still waiting
	f("/-/pause?workload=well", http.StatusOK, "")
	d.see(paused("well", 1))
	f("/-/resume", http.StatusServiceUnavailable, `workload "stuck"`)
	d.see(paused("well", 0), paused("stuck", 0))
	f("/-/comparisons/rollout/restart", http.StatusServiceUnavailable, `comparison "rollout"`)
	f("/-/comparisons/other/restart", http.StatusNotFound, "other")

	change := func(name string) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.config.Workloads = slices.Clone(d.config.Workloads)
		i := slices.IndexFunc(d.config.Workloads, func(w config.Workload) bool { return w.Name == name })
		d.config.Workloads[i].Lanes++
	}
	change("well")
	f("/-/reload", http.StatusOK, "")
	change("stuck")
	f("/-/reload", http.StatusServiceUnavailable, `workload "stuck"`)
	f("/-/pause?workload=well", http.StatusOK, "") // the refused reload has changed nothing
	d.see(paused("well", 1))
	balanced(t, fetch(t, d.url+"/metrics"))
}

// A stop ends without a workload that is stuck: records and state are written, and the log says what is lost.
func TestStopWithoutAStuckWorkload(t *testing.T) {
	for _, hard := range []bool{false, true} {
		d := startStuck(t)
		d.next()
		if d.stop(); hard {
			d.hard()
		}
		err := <-d.ended
		left := (*LeftError)(nil)
		if !errors.As(err, &left) || !strings.Contains(err.Error(), `workload "stuck" (`) || strings.Contains(err.Error(), "well") {
			t.Errorf("want an error about the workload alone, got %v", err)
		}
		if said := d.said(); !strings.Contains(said, "left behind") || !strings.Contains(said, "workload=stuck in_flight=") {
			t.Errorf("want what is lost in the log, got\n%s", said)
		}
		records, err := os.ReadFile(d.records)
		if err != nil || !bytes.Contains(records, []byte(`"workload":"stuck"`)) || !bytes.HasSuffix(records, []byte("}\n")) {
			t.Errorf("want the records whole, got %v\n%s", err, records)
		}
		if state, err := os.ReadFile(d.state); err != nil || !bytes.Contains(state, []byte("rollout")) {
			t.Errorf("want the state, got %v\n%s", err, state)
		}
	}
}

// A comparison that is stuck keeps neither the stop nor the state of others.
func TestStopWithoutAStuckComparison(t *testing.T) {
	d := startStuck(t)
	d.release()
	for status := 0; status != http.StatusOK; { // a restart writes the evidence
		status, _ = d.post("/-/comparisons/rollout/restart")
	}
	end := d.holdComparison()
	defer end()
	d.stop()
	if err := <-d.ended; !strings.Contains(fmt.Sprint(err), `comparison "rollout": stuck`) || strings.Contains(fmt.Sprint(err), "workload") {
		t.Errorf("want an error about the comparison, got %v", err)
	}
	if state, err := os.ReadFile(d.state); err != nil || !bytes.Contains(state, []byte("rollout")) {
		t.Errorf("want the state as it was, got %v\n%s", err, state)
	}
}

// The first signal ends a start that hangs in a file.
func TestStopOfAStartThatHangs(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	hang := make(chan struct{})
	defer close(hang)
	stop()
	_, err := startWithin(ctx, func() (*Generation, error) {
		<-hang
		return nil, nil
	})
	if !errors.Is(err, errSlowStart) {
		t.Errorf("want %v, got %v", errSlowStart, err)
	}
}

// A reload that hangs in a file holds up no pause, and a stop only briefly: no request is in flight, so the drain has nothing to wait for.
func TestStopOfAReloadThatHangs(t *testing.T) {
	path := write(t, "trace.jsonl", rows(5))
	synctest.Test(t, func(t *testing.T) {
		c := conf([]config.Target{target("t", nobody)}, rare("a", path))
		c.Drain = time.Hour
		b, hang := keep(t, c), make(chan struct{})
		defer close(hang)
		b.k.options.Load = func() (config.Config, error) {
			<-hang
			return config.Config{}, errors.New("at last")
		}
		b.reload(func(*config.Config) {})
		synctest.Wait()
		if err := b.pause("a", true); err != nil {
			t.Error(err)
		}
		begin := time.Now()
		b.stop()
		<-b.over
		if took := time.Since(begin); took != endWithin {
			t.Errorf("want the end after %v, got it after %v", endWithin, took)
		}
	})
}

// A stop does not wait for a restart that is stuck, and reads nothing that the restart may still write. The race
// detector sees that.
func TestStopDuringARestart(t *testing.T) {
	stopped := 0
	for range 1000 {
		over := make(chan struct{})
		k := &supervisor{calls: make(chan func()), over: over, ending: newEnding(), g: &Generation{}}
		result := make(chan error, 1)
		go func() {
			_, err := k.restartComparison(t.Context(), "gone", "")
			result <- err
		}()
		call := <-k.calls
		close(over)
		k.ending.limits[0]()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			call()
		}()
		switch err := <-result; {
		case errors.Is(err, errStopping):
			stopped++
		case err == nil:
			t.Fatal("want an error: there is no comparison")
		}
		<-ended
	}
	t.Logf("a stop came before the end of %d of 1,000 restarts", stopped)
}
