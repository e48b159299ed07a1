// Package daemon runs a configuration: it builds everything that the configuration names, runs it, replaces it on a
// reload, and stops it in the reverse order.
package daemon

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"replayd/internal/comparison"
	"replayd/internal/dispatch"
	"replayd/internal/limits"
	"replayd/internal/openai"
	"replayd/internal/records"
	"replayd/internal/replay"
	"replayd/internal/scrape"
	"replayd/internal/secret"
)

// A Generation is everything that one configuration names, built, checked and then run. It takes over the running parts
// of the generation before that have not changed.
type Generation struct {
	options     Options
	servers     map[string]*server // by the target's name
	scrapers    []*scraper
	workloads   []*workload
	named       map[string]*workload // by name
	comparisons []*comparedSides
	sides       map[string]side // of comparisons, by the workload's name
	shared      *shared
	checks      bool              // only finds faults: no workload stays open
	outlooks    []string          // of the checked workloads
	claimed     *comparison.Claim // the state file, until the generation runs; nil: none
	asked       []*server         // kept until the generation runs: settle waits for their answers
	paused      bool              // all workloads are paused, and so are those that a reload adds
}

func (g *Generation) comparisonNamed(name string) *comparedSides {
	for _, c := range g.comparisons {
		if c.config.Name == name {
			return c
		}
	}
	return nil
}

// A scraper reads the metrics pages of engines, or GPUs. A workload continues where only its scraper changes.
type scraper struct {
	config any    // the section that it was made from
	show   func() // registers its series
	run    func(ctx context.Context) error
	engine *scrape.Target     // nil: the scraper reads GPUs, or a router
	close  func() error       // frees a scraper that never ran; nil: nothing to free
	end    context.CancelFunc // nil before the scraper runs
}

// shared is the state that all generations of a process share.
type shared struct {
	sink     *records.Sink
	endSink  context.CancelFunc // ends everything that outlives the workloads; nil: nothing runs
	sinkDone chan struct{}      // closed when the sink has ended
	sinkErr  error              // why records were lost; set before that
	ending   *ending            // nil: nothing runs
	watchdog *watchdog
	pacer    *replay.Pacer    // of all workloads; nil: nothing runs
	waiting  dispatch.Waiting // of all workloads
	begun    begun
	paced    sync.WaitGroup
	running  sync.WaitGroup                        // workloads, watches over targets, scrapers
	engines  atomic.Pointer[map[string]loadSource] // of the latest generation, by the target's name
	clients  atomic.Pointer[map[string]*openai.Client]
	state    *comparison.Store
}

// A loadSource is the scraper of a target's engines, and the one before, whose load counts until the new one scraped.
type loadSource struct{ now, before *scrape.Target }

// blind reports whether the new scraper has not scraped yet.
func (s loadSource) blind() bool {
	_, err := s.now.Load()
	return errors.Is(err, scrape.ErrNotScraped)
}

func (s loadSource) load() (limits.Load, error) {
	l, err := s.now.Load()
	if s.before != nil && errors.Is(err, scrape.ErrNotScraped) {
		return s.before.Load()
	}
	return l, err
}

// answered returns a function that counts the requests that have ended well at a target.
func (s *shared) answered(target string) func() int64 {
	return func() int64 {
		if clients := s.clients.Load(); clients != nil && (*clients)[target] != nil {
			return (*clients)[target].Answered()
		}
		return 0
	}
}

// hidden returns a function that returns the secrets of the requests of all targets with an address of a target: the
// engines there know them, so their pages may repeat them.
func (s *shared) hidden(target string) func() secret.Set {
	return func() secret.Set {
		clients := s.clients.Load()
		if clients == nil || (*clients)[target] == nil {
			return nil
		}
		addresses := (*clients)[target].Addresses()
		var all []secret.Set
		for _, c := range *clients {
			own := c.Hidden()
			known := func(s secret.Set) bool { return slices.Equal(s, own) }
			shares := slices.ContainsFunc(c.Addresses(), func(a string) bool { return slices.Contains(addresses, a) })
			if shares && !slices.ContainsFunc(all, known) {
				all = append(all, own)
			}
		}
		return secret.NewSet(nil, all...)
	}
}

var errNotScraped = errors.New("the target is not scraped")

// engine returns the scraper of the engines behind a target, as the latest generation knows it.
func (s *shared) engine(target string) (source loadSource, known bool) {
	if all := s.engines.Load(); all != nil {
		source, known = (*all)[target]
	}
	return source, known
}

func (s *shared) load(target string) (limits.Load, error) {
	if engine, known := s.engine(target); known {
		return engine.load()
	}
	return limits.Unknown(), errNotScraped
}

// unread says that the metrics of a target cannot be read; "" if they can, or if the target is not scraped.
func (s *shared) unread(target string) string {
	if _, err := s.load(target); err != nil && !errors.Is(err, errNotScraped) {
		return "its metrics are not read"
	}
	return ""
}

// generated returns the output tokens of the engines behind a target; known is false if they are not counted, and while
// the pages cannot be read.
func (s *shared) generated(target string) (tokens float64, known bool) {
	engine, scraped := s.engine(target)
	if !scraped || s.unread(target) != "" {
		return 0, false
	}
	return engine.now.Generated()
}

// restarts returns how often the engines behind a target have restarted; 0 if the target is not scraped.
func (s *shared) restarts(target string) int64 {
	if engine, known := s.engine(target); known {
		return engine.now.Restarts()
	}
	return 0
}
