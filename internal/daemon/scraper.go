package daemon

import (
	"context"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"

	"replayd/internal/config"
	"replayd/internal/fault"
	"replayd/internal/gpu"
	"replayd/internal/gpu/dcgm"
	"replayd/internal/openai"
	"replayd/internal/scrape"
)

// pageOf is everything on which the scraping of a target's engines, or of its router, depends.
type pageOf struct {
	name, url string
	metrics   config.Metrics
	http      config.HTTP
	alone     bool // its page counts all requests to the target
	router    bool
}

// addEngine adds the scraper of a target's engines. A target with an interval of 0 has none.
func (g *Generation) addEngine(at string, t config.Target, old *Generation) fault.List {
	if g.options.Engines == nil || t.Metrics.Interval == 0 {
		return nil
	}
	c := pageOf{name: t.Name, url: t.Base(), metrics: t.Metrics, http: t.ScrapeHTTP(t.Metrics)}
	c.alone = t.Metrics.Replicas == "" && len(t.Pods) == 0 && (t.Metrics.URL == "" || hostOf(t.Metrics.URL) == hostOf(c.url))
	return g.addPages(at+".metrics", t, c, g.options.Engines, old)
}

// addRouter adds the scraper of a target's router. Its figures are exported, and nothing else uses them.
func (g *Generation) addRouter(at string, t config.Target, old *Generation) fault.List {
	if g.options.Routers == nil || t.Router.URL == "" || t.Router.Interval == 0 {
		return nil
	}
	c := pageOf{name: t.Name, url: t.Base(), metrics: t.Router, http: t.ScrapeHTTP(t.Router), router: true}
	return g.addPages(at+".router", t, c, g.options.Routers, old)
}

// addPages takes over the scraper of the generation before, or makes one.
func (g *Generation) addPages(at string, t config.Target, c pageOf, shown *scrape.Collector, old *Generation) fault.List {
	if g.keep(c, old) {
		return nil
	}
	machine, _ := os.Hostname() // if it is unknown, a loopback address stays as it is
	o := scrape.TargetOptions{
		Hostname: machine, Target: t.Name, URL: c.url, Page: c.metrics.URL, Replicas: c.metrics.Replicas,
		Interval: c.metrics.Interval, HTTP: c.http, UserAgent: g.options.UserAgent, Log: g.options.Log, Dial: g.options.Dial,
		Hidden: g.shared.hidden(t.Name), Map: c.metrics.Map,
	}
	if c.alone {
		o.Answered = g.shared.answered(t.Name)
	}
	target, err := shown.NewTarget(o)
	if err != nil {
		if reflect.DeepEqual(c.http, t.HTTP) {
			at = at[:strings.LastIndexByte(at, '.')] // the page has the target's credentials, and their faults
		}
		return fault.At(at, err)
	}
	s := &scraper{config: c, show: target.Show, run: target.Run}
	if !c.router {
		s.engine = target
	}
	g.scrapers = append(g.scrapers, s)
	return nil
}

// addGPU takes over the scraper of the generation before, or makes one.
func (g *Generation) addGPU(at string, c config.GPU, old *Generation) fault.List {
	if g.options.GPUs == nil || g.keep(c, old) {
		return nil
	}
	o := gpu.WatchOptions{
		Target: c.Target, Interval: c.Interval, Log: g.options.Log, Select: c.Select,
	}
	var err error
	switch {
	case c.DCGMExporter != "":
		o.Kind, o.Address = gpu.SourceExporter, hostOf(c.DCGMExporter)
		var pages *scrape.Fetcher
		if pages, err = scrape.NewFetcher(scrape.FetchOptions{
			HTTP: c.HTTP, UserAgent: g.options.UserAgent,
			Hidden: g.shared.hidden(c.Target),
		}); err == nil {
			o.Source = gpu.NewExporter(pages, c.DCGMExporter)
		}
	case c.LibDCGM != "":
		o.Kind, o.Address = gpu.SourceDCGM, c.LibDCGM
		o.Source, err = dcgm.New(dcgm.Options{
			Address: c.LibDCGM, Interval: o.Interval, Log: g.options.Log,
		})
	default:
		o.Kind, o.Address = gpu.SourceSMI, c.NvidiaSMI
		o.Source = gpu.NewSMI(c.NvidiaSMI)
	}
	if err != nil {
		return fault.At(at, err)
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
	for _, s := range old.scrapers {
		if reflect.DeepEqual(s.config, c) {
			g.scrapers = append(g.scrapers, s)
			return true
		}
	}
	return false
}

// startScrapers starts the new scrapers. Their series are registered when it returns.
func (g *Generation) startScrapers(ctx context.Context) {
	clients := map[string]*openai.Client{}
	for name, s := range g.servers {
		clients[name] = s.client
	}
	g.shared.clients.Store(&clients) // before a page is read
	engines := map[string]loadSource{}
	for _, s := range g.scrapers {
		if s.end == nil {
			s.show()
			var own context.Context
			own, s.end = context.WithCancel(context.WithoutCancel(ctx))
			g.shared.running.Go(func() { _ = s.run(own) }) // it ends only with its context
		}
		c, ok := s.config.(pageOf)
		if !ok || c.router {
			continue
		}
		switch old, known := g.shared.engine(c.name); {
		case known && old.now == s.engine:
			engines[c.name] = old
		case known && old.blind(): // two reloads before the first scrape
			engines[c.name] = loadSource{s.engine, old.before}
		default:
			engines[c.name] = loadSource{s.engine, old.now} // nil: there is no old one
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
