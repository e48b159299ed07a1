package daemon

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"replayd/internal/config"
	"replayd/internal/gpu"
	"replayd/internal/gpu/dcgm"
	"replayd/internal/limits"
	"replayd/internal/scrape"
)

// A scraper reads what stands beside the requests: the pages of a target's engines, or GPUs. The configuration alone
// says which there are, so that a workload runs on untouched when only they change.
type scraper struct {
	config any    // what it was made from
	show   func() // has it on the page from now on
	run    func(ctx context.Context) error
	engine *scrape.Target     // nil: it reads GPUs
	close  func() error       // of one that never ran; nil: it holds nothing then
	end    context.CancelFunc // nil before it runs
}

// pageOf is all that the scraping of a target's engines depends on.
type pageOf struct {
	name, url string
	metrics   config.Metrics
	http      config.HTTP
}

// addEngine takes over the scraper of the generation before, or makes one. Targets whose interval is 0 have none.
func (g *Generation) addEngine(at string, t config.Target, old *Generation) config.Faults {
	if g.options.Engines == nil || t.Metrics.Interval == 0 {
		return nil
	}
	c := pageOf{t.Name, t.URL, t.Metrics, t.ScrapeHTTP()}
	if g.keep(c, old) {
		return nil
	}
	machine, _ := os.Hostname() // without one a loopback address says what it is
	o := scrape.TargetOptions{
		Hostname: machine, Target: t.Name, URL: t.URL, Page: t.Metrics.URL, Replicas: t.Metrics.Replicas, Interval: time.Duration(t.Metrics.Interval),
		HTTP: c.http.HTTPClientConfig, UserAgent: g.options.UserAgent, Log: g.options.Log, Dial: g.options.Dial,
	}
	for _, r := range t.Metrics.Map {
		o.Map = append(o.Map, r.Row())
	}
	target, err := g.options.Engines.NewTarget(o)
	if err != nil {
		return faultsAt(at+".metrics", err)
	}
	g.scrapers = append(g.scrapers, &scraper{config: c, show: target.Show, run: target.Run, engine: target})
	return nil
}

// addGPU takes over the scraper of the generation before, or makes one.
func (g *Generation) addGPU(at string, c config.GPU, old *Generation) config.Faults {
	if g.options.GPUs == nil || g.keep(c, old) {
		return nil
	}
	o := gpu.WatchOptions{
		Target: c.Target, Interval: time.Duration(c.Interval), Log: g.options.Log, Select: c.Select.Selection(),
	}
	var err error
	switch {
	case c.DCGMExporter != "":
		o.Kind, o.Address = gpu.SourceExporter, hostOf(c.DCGMExporter)
		var pages *scrape.Fetcher
		if pages, err = scrape.NewFetcher(scrape.FetchOptions{HTTP: c.HTTP.HTTPClientConfig, UserAgent: g.options.UserAgent}); err == nil {
			o.Source = gpu.NewExporter(pages, c.DCGMExporter)
		}
	case c.LibDCGM != "":
		o.Kind, o.Address = gpu.SourceDCGM, c.LibDCGM
		o.Source, err = dcgm.New(dcgm.Options{Address: c.LibDCGM, Interval: o.Interval, NoProfiling: !c.Profiling, Log: g.options.Log})
	default:
		o.Kind, o.Address = gpu.SourceSMI, c.NvidiaSMI
		o.Source = gpu.NewSMI(c.NvidiaSMI)
	}
	if err != nil {
		return faultsOf(at, err, nil)
	}
	w := gpu.NewWatch(g.options.GPUs, o)
	g.scrapers = append(g.scrapers, &scraper{config: c, show: w.Show, run: w.Run, close: w.Close})
	return nil
}

// hostOf is an address without what may be secret in it.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(u.Host, "\uFFFD")
}

// keep takes over the scraper that was made from the same.
func (g *Generation) keep(c any, old *Generation) bool {
	if old == nil {
		return false
	}
	for _, s := range old.scrapers {
		if reflect.DeepEqual(s.config, c) {
			g.scrapers = append(g.scrapers, s)
			return true
		}
	}
	return false
}

// A loadSource is what sees a target's engines, and what saw them before a reload: until the new one has looked they are known by
// the old, or a guard would be blind meanwhile.
type loadSource struct{ now, before *scrape.Target }

// blind says that the one of now has not looked yet.
func (s loadSource) blind() bool {
	_, err := s.now.Load()
	return errors.Is(err, scrape.ErrNotScraped)
}

func (s loadSource) load() (scrape.Load, error) {
	l, err := s.now.Load()
	if s.before != nil && errors.Is(err, scrape.ErrNotScraped) {
		return s.before.Load()
	}
	return l, err
}

// startScrapers lets run what is new. Its series are on the page when it returns.
func (g *Generation) startScrapers(ctx context.Context) {
	engines := map[string]loadSource{}
	before := g.shared.engines.Load()
	for _, s := range g.scrapers {
		if s.end == nil {
			s.show()
			var own context.Context
			own, s.end = context.WithCancel(context.WithoutCancel(ctx))
			g.shared.running.Go(func() { _ = s.run(own) }) // it ends only with its context
		}
		c, ok := s.config.(pageOf)
		if !ok {
			continue
		}
		engines[c.name] = loadSource{now: s.engine}
		if before == nil {
			continue
		}
		switch old, known := (*before)[c.name]; {
		case !known:
		case old.now == s.engine:
			engines[c.name] = old
		case old.blind(): // two reloads before it could look
			engines[c.name] = loadSource{s.engine, old.before}
		default:
			engines[c.name] = loadSource{s.engine, old.now}
		}
	}
	g.shared.engines.Store(&engines)
}

// endScrapers ends the scrapers that the next generation has not taken over.
func (g *Generation) endScrapers(next *Generation) {
	for _, s := range g.scrapers {
		if (next == nil || !slices.Contains(next.scrapers, s)) && s.end != nil {
			s.end()
		}
	}
}

// discardScrapers frees what those hold that never ran.
func (g *Generation) discardScrapers() error {
	var errs []error
	for _, s := range g.scrapers {
		if s.end == nil && s.close != nil {
			errs = append(errs, s.close())
		}
	}
	return errors.Join(errs...)
}

var errNotScraped = errors.New("the target is not scraped")

// load tells how busy the engines behind a target are, as the latest generation sees them.
func (s *shared) load(target string) (limits.Load, error) {
	engine, known := (*s.engines.Load())[target]
	if !known {
		return limits.Load{Waiting: math.NaN(), KVCacheUsage: math.NaN()}, errNotScraped
	}
	l, err := engine.load()
	return limits.Load(l), err
}

// words says the same for a person; nothing where the target is not scraped.
func (s *shared) words(target string) string {
	l, err := s.load(target)
	if errors.Is(err, errNotScraped) {
		return ""
	}
	if err != nil {
		return "its metrics are not read"
	}
	var parts []string
	if !math.IsNaN(l.Waiting) {
		parts = append(parts, fmt.Sprintf("%.0f waiting", l.Waiting))
	}
	if !math.IsNaN(l.KVCacheUsage) {
		parts = append(parts, fmt.Sprintf("KV cache %.0f %%", 100*l.KVCacheUsage))
	}
	return strings.Join(parts, ", ")
}
