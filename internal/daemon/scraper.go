package daemon

import (
	"context"
	"errors"
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

// A scraper reads the metrics pages of a target's engines, or GPUs. Scrapers depend on the configuration only, so that a
// workload continues if only they change.
type scraper struct {
	config any    // the section that it was made from
	show   func() // registers its series
	run    func(ctx context.Context) error
	engine *scrape.Target     // nil: the scraper reads GPUs
	close  func() error       // frees a scraper that never ran; nil: nothing to free
	end    context.CancelFunc // nil before the scraper runs
}

// pageOf is everything on which the scraping of a target's engines depends.
type pageOf struct {
	name, url string
	metrics   config.Metrics
	http      config.HTTP
}

// addEngine takes over the scraper of the generation before, or makes one. A target with an interval of 0 has none.
func (g *Generation) addEngine(at string, t config.Target, old *Generation) config.Faults {
	if g.options.Engines == nil || t.Metrics.Interval == 0 {
		return nil
	}
	c := pageOf{t.Name, t.URL, t.Metrics, t.ScrapeHTTP()}
	if g.keep(c, old) {
		return nil
	}
	machine, _ := os.Hostname() // if it is unknown, a loopback address stays as it is
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

// hostOf returns an address without parts that may be secret.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(u.Host, "\uFFFD")
}

// keep takes over the scraper that was made from an equal section.
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

// A loadSource is the scraper of a target's engines, and the scraper before a reload: until the new one has scraped, guards use the
// load of the old one.
type loadSource struct{ now, before *scrape.Target }

// blind reports whether the new scraper has not scraped yet.
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

// startScrapers starts the new scrapers. Their series are registered when it returns.
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
		case old.blind(): // two reloads before the first scrape
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

// discardScrapers frees scrapers that never ran.
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

// load returns the load of the engines behind a target, as the latest generation knows it.
func (s *shared) load(target string) (limits.Load, error) {
	engine, known := (*s.engines.Load())[target]
	if !known {
		return limits.Load{Waiting: math.NaN(), KVCacheUsage: math.NaN()}, errNotScraped
	}
	l, err := engine.load()
	return limits.Load(l), err
}

// unread says that the metrics of a target cannot be read; "" if they can, or if the target is not scraped.
func (s *shared) unread(target string) string {
	if _, err := s.load(target); err != nil && !errors.Is(err, errNotScraped) {
		return "its metrics are not read"
	}
	return ""
}

// restarts returns how often the engines behind a target have restarted, as their metrics pages tell; 0 if the target is not scraped.
func (s *shared) restarts(target string) int64 {
	engines := s.engines.Load()
	if engines == nil {
		return 0
	}
	engine, known := (*engines)[target]
	if !known {
		return 0
	}
	return engine.now.Restarts()
}
