package daemon

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"replayd/internal/comparison"
	"replayd/internal/config"
	"replayd/internal/live"
	"replayd/internal/metrics"
	"replayd/internal/replay"
	"replayd/internal/web"

	"replayd/test/outside"
)

// silent is a target that never answers. A reload waits 5 s for it. All other targets refuse connections.
const silent = "http://silent:1"

func dialNobody(ctx context.Context, _, address string) (net.Conn, error) {
	if strings.HasPrefix(address, "silent:") {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return nil, syscall.ECONNREFUSED
}

var errNothing = errors.New("want a workload, got none")

// A kept runs a supervisor and its generation in virtual time.
type kept struct {
	t    *testing.T
	k    *supervisor
	page web.Options
	reg  *prometheus.Registry
	stop context.CancelFunc
	over chan struct{}

	mu      sync.Mutex
	config  config.Config // read by reloads
	reading time.Duration // time that a reload takes to read it
	read    int           // number of reads
	path    string        // of the file that reloads read; "": they read config
}

func (b *kept) load() (config.Config, error) {
	b.mu.Lock()
	b.read++
	c, reading := b.config, b.reading
	b.mu.Unlock()
	<-time.After(reading)
	if b.path != "" {
		return config.Load(b.path, nil, nil, nil)
	}
	if len(c.Workloads) == 0 {
		return c, errNothing
	}
	return c, nil
}

// keep runs a supervisor until the test ends.
func keep(t *testing.T, c config.Config, change ...func(*Options)) *kept {
	t.Helper()
	return keepFile(t, c, "", change...)
}

// keepFile is keep with a file that is watched.
func keepFile(t *testing.T, c config.Config, path string, change ...func(*Options)) *kept {
	t.Helper()
	reg, log := prometheus.NewRegistry(), slog.New(slog.DiscardHandler)
	work, stop := context.WithCancel(t.Context())
	b := &kept{t: t, stop: stop, over: make(chan struct{}), config: c, path: path, reg: reg}
	b.k = newSupervisor(work, ServeOptions{Config: c, Log: log, Load: b.load}, metrics.NewProcess(reg, fstest.MapFS{}, time.Now(), nil))
	if path != "" {
		b.k.options.Watch = config.NewWatcher(path)
	}
	b.page = b.k.page(reg, live.New(live.Options{}), comparison.NewCollector(reg))
	o := Options{
		Virtual: Virtual{Dial: dialNobody, Sleeper: func() replay.Sleeper { return replay.NewTimers() }},
		Config:  c,
		Meter:   metrics.NewMeter(reg),
		Log:     log,
		Failed:  func(error) {},
	}
	for _, f := range change {
		f(&o)
	}
	var err error
	b.k.g, err = Build(work, o)
	if err != nil {
		t.Fatal(err)
	}
	b.k.g.Start(work, t.Context())
	go func() {
		defer close(b.over)
		b.k.run(work, t.Context(), stop)
		if err := b.k.g.Close(); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		stop()
		<-b.over
		<-time.After(b.reading) // a stop may have left the reading behind
	})
	return b
}

// reload changes the configuration and requests a reload. The result comes on ended.
func (b *kept) reload(change func(c *config.Config)) (ended chan error) {
	b.mu.Lock()
	b.config.Targets, b.config.Workloads = slices.Clone(b.config.Targets), slices.Clone(b.config.Workloads)
	change(&b.config)
	b.mu.Unlock()
	ended = make(chan error, 1)
	go func() { ended <- b.page.Reload(b.t.Context()) }()
	return ended
}

// pause sets or ends a pause, which must take no time.
func (b *kept) pause(workload string, paused bool) error {
	b.t.Helper()
	begin := time.Now()
	err := b.page.Pause(b.t.Context(), workload, paused)
	if took := time.Since(begin); took != 0 {
		b.t.Errorf("pause %q %v took %v", workload, paused, took)
	}
	return err
}

// workloads returns the running workloads.
func (b *kept) workloads() (all []*workload) {
	b.t.Helper()
	if b.k.call(b.t.Context(), func() { all = b.k.g.workloads }) != nil {
		b.t.Error("want the supervisor there")
	}
	return all
}

// paused returns the names of the paused workloads.
func (b *kept) paused() (names string) {
	for _, w := range b.workloads() {
		if w.runner.Paused() {
			names += w.config.Name
		}
	}
	return names
}

func (b *kept) reads() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.read
}

// rare returns a workload whose first row is due only after a long time.
func rare(name, path string) config.Workload {
	w := once(name, "t", path)
	w.Epoch = time.Now().Add(1000 * time.Hour)
	return w
}

// A pause does not wait for a reload, neither while the reload reads nor while it waits for a silent target. It also
// holds for the next generation, including its new workloads.
func TestPauseDuringReload(t *testing.T) {
	path := write(t, "trace.jsonl", rows(5))
	synctest.Test(t, func(t *testing.T) {
		b := keep(t, conf([]config.Target{target("t", nobody)}, rare("a", path), rare("b", path)))
		b.reading = 3 * time.Second
		begin := time.Now()
		ended := b.reload(func(c *config.Config) {
			c.Targets[0].URL = silent
			c.Workloads[0].Lanes, c.Workloads = 7, append(c.Workloads, rare("c", path))
		})
		for _, at := range []time.Duration{time.Second, 4 * time.Second} { // reading; waiting for the target
			<-time.After(at - time.Since(begin))
			for _, c := range []struct {
				workload string
				paused   bool
				want     string
			}{{"", true, "ab"}, {"b", false, "a"}, {"", false, ""}, {"a", true, "a"}, {"a", false, ""}, {"", true, "ab"}} {
				if err := b.pause(c.workload, c.paused); err != nil {
					t.Errorf("%+v: %v", c, err)
				}
				if got := b.paused(); got != c.want {
					t.Errorf("%v after the reload began, %+v: want %q paused, got %q", at, c, c.want, got)
				}
			}
		}
		if err := <-ended; err != nil || time.Since(begin) != 8*time.Second {
			t.Errorf("want a reload of 3 s and 5 s, got %v, %v", time.Since(begin), err)
		}
		synctest.Wait()
		if got := b.paused(); got != "abc" {
			t.Errorf("want all paused in the next generation, got %q", got)
		}
		if err := b.pause("", false); err != nil || b.paused() != "" {
			t.Errorf("want none paused, got %q, %v", b.paused(), err)
		}
	})
}

// The pause of an unknown workload waits for a running reload, because the next generation may have a workload of that
// name.
func TestPauseOfWhatAReloadBrings(t *testing.T) {
	path := write(t, "trace.jsonl", rows(5))
	synctest.Test(t, func(t *testing.T) {
		b := keep(t, conf([]config.Target{target("t", nobody)}, rare("a", path)))
		b.reading = 3 * time.Second
		ended := b.reload(func(c *config.Config) { c.Workloads = append(c.Workloads, rare("b", path)) })
		synctest.Wait()
		begin := time.Now()
		if err := b.page.Pause(t.Context(), "b", true); err != nil || time.Since(begin) != 3*time.Second || b.paused() != "b" {
			t.Errorf("want it paused with the reload's end, got %v, after %v, and %q paused", err, time.Since(begin), b.paused())
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		ended = b.reload(func(c *config.Config) { c.Workloads = nil })
		synctest.Wait()
		want := `want the name of a workload, got "c"`
		if err := b.page.Pause(t.Context(), "c", true); err == nil || err.Error() != want {
			t.Errorf("want %s, got %v", want, err)
		}
		if err := <-ended; err == nil {
			t.Error("want the reload to fail")
		}
		if err := b.pause("c", true); err == nil || err.Error() != want {
			t.Errorf("want %s, got %v", want, err)
		}
		ended = b.reload(func(c *config.Config) { c.Workloads = nil })
		synctest.Wait()
		waits := make(chan error, 1)
		go func() { waits <- b.page.Pause(t.Context(), "c", true) }()
		synctest.Wait()
		b.stop()
		if err := <-waits; !errors.Is(err, errStopping) {
			t.Errorf("want %v, got %v", errStopping, err)
		}
		if err := <-ended; !errors.Is(err, errStopping) {
			t.Errorf("want %v, got %v", errStopping, err)
		}
	})
}

// Reloads that are requested during another reload are done together after it: the file is read once for all of them.
func TestReloadsDuringReload(t *testing.T) {
	path := write(t, "trace.jsonl", rows(5))
	synctest.Test(t, func(t *testing.T) {
		b := keep(t, conf([]config.Target{target("t", nobody)}, rare("a", path)))
		b.reading = 3 * time.Second
		begin := time.Now()
		first := b.reload(func(c *config.Config) { c.Workloads[0].Lanes = 2 })
		synctest.Wait()
		var later []chan error
		for lanes := 3; lanes < 9; lanes++ {
			later = append(later, b.reload(func(c *config.Config) { c.Workloads[0].Lanes = lanes }))
		}
		if err := <-first; err != nil || time.Since(begin) != 3*time.Second || b.workloads()[0].config.Lanes != 2 {
			t.Errorf("first: got %v after %v", err, time.Since(begin))
		}
		for _, ended := range later {
			if err := <-ended; err != nil || time.Since(begin) != 6*time.Second {
				t.Errorf("later: got %v after %v", err, time.Since(begin))
			}
		}
		if got := b.workloads()[0].config.Lanes; b.reads() != 2 || got != 8 {
			t.Errorf("want the file read twice, 8 lanes, got %d times, %d lanes", b.reads(), got)
		}
	})
}

// A handover follows a second after its reload. Until then a pause holds all runners of the workload: the first one, with the row that is due before the
// handover, and the last one. The second one was replaced before its first row, and may have ended before the first.
func TestPauseAfterTwoReloads(t *testing.T) {
	path := write(t, "trace.jsonl", `{"timestamp": 10500, "input_length": 20, "output_length": 4}
{"timestamp": 60000, "input_length": 20, "output_length": 4}
`)
	synctest.Test(t, func(t *testing.T) {
		w := once("a", "t", path)
		w.Epoch = time.Now()
		b := keep(t, conf([]config.Target{target("t", nobody)}, w))
		pass(10 * time.Second) // the target has been asked
		all := []*workload{b.workloads()[0]}
		for lanes := range 2 {
			if err := <-b.reload(func(c *config.Config) { c.Workloads[0].Lanes = 1 + lanes }); err != nil {
				t.Fatal(err)
			}
			all = append(all, b.workloads()[0])
		}
		synctest.Wait()
		if err := b.pause("a", true); err != nil {
			t.Fatal(err)
		}
		for i, w := range all {
			if ended := w.ended(); ended && i != 1 || !ended && !w.current().Paused() {
				t.Errorf("workload %d of %d: ended %v, paused %v", i, len(all), w.ended(), w.current().Paused())
			}
		}
	})
}

// In any order of reloads, pauses and a stop, a pause of an existing workload takes no time, and the last pause of each
// workload holds.
func TestOrdersOfReloadsAndPauses(t *testing.T) {
	path := write(t, "trace.jsonl", rows(5))
	orders := 100
	if testing.Short() {
		orders = 40
	}
	for seed := range outside.Knob(t, "RELOAD_ORDERS", orders, strconv.Atoi) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(seed), 1))
			names := []string{"a", "b", "c"}
			var all []config.Workload
			for _, name := range names {
				all = append(all, rare(name, path))
			}
			b := keep(t, conf([]config.Target{target("t", nobody)}, all[:2]...))
			var running sync.WaitGroup
			brake, held := false, map[string]bool{} // pause of all workloads; pauses by name
			for range 1 + r.IntN(60) {
				switch r.IntN(3) {
				case 0:
					b.mu.Lock()
					b.reading = time.Duration(1+r.IntN(3)) * time.Second
					b.mu.Unlock()
					ended := b.reload(func(c *config.Config) {
						c.Targets[0].URL = []string{nobody, silent}[r.IntN(2)]
						c.Workloads = slices.Clone(all[:r.IntN(4)]) // a configuration without workloads is a fault
						for i := range c.Workloads {
							c.Workloads[i].Lanes = 1 + r.IntN(3)
						}
					})
					running.Go(func() {
						if err := <-ended; err != nil && !errors.Is(err, errNothing) && !errors.Is(err, errStopping) {
							t.Errorf("seed %d: %v", seed, err)
						}
					})
				case 1:
					<-time.After(time.Duration(r.IntN(1000)) * time.Millisecond) // at most one reload ends meanwhile
				default:
					name, paused := append(names, "")[r.IntN(4)], r.IntN(2) == 0
					if name != "" && !slices.ContainsFunc(b.workloads(), func(w *workload) bool { return w.config.Name == name }) {
						continue // this pause may wait for a reload
					}
					if err := b.pause(name, paused); err != nil {
						t.Errorf("seed %d: %v", seed, err)
					}
					if name == "" {
						brake = paused
						clear(held)
						for _, name := range names {
							held[name] = paused
						}
					}
					held[name] = paused
				}
				synctest.Wait()
				there := map[string]bool{}
				for _, w := range b.workloads() {
					name := w.config.Name
					if there[name] = true; w.runner.Paused() != held[name] {
						t.Errorf("seed %d: %s: want paused %v, got %v", seed, name, held[name], !held[name])
					}
				}
				for _, name := range names {
					if !there[name] {
						held[name] = brake // applies when the workload returns
					}
				}
			}
			b.stop()
			running.Wait()
			<-b.over
		})
		if t.Failed() {
			return
		}
	}
}
