package config

import (
	"fmt"
	"net"
	"net/url"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"replayd/internal/gpu"
	"replayd/internal/gpu/dcgm"
	"replayd/internal/scrape"
)

func (m Metrics) check(at string, f *Faults) {
	if m.URL != "" {
		f.address(at+".url", m.URL, "http://127.0.0.1:8000/metrics")
	}
	f.interval(at+".interval", m.Interval, 0)
	if m.Replicas != "" && !isName(m.Replicas) {
		f.add(at+".replicas", "want a DNS name, with or without a port, got %q", m.Replicas)
	}
	for i, r := range m.Map {
		if err := r.Row().Check(); err != nil {
			f.add(fmt.Sprintf("%s.map[%d]", at, i), "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
		}
	}
}

// Row converts the row to a scrape.Row.
func (r MetricRow) Row() scrape.Row {
	return scrape.Row{
		Engine: r.Engine, Family: r.Family, Kind: scrape.Kind(r.Type), Quantity: r.As, Scale: r.Scale, Take: r.Take,
		Select: r.Select, Prefer: r.Prefer, Merge: r.Merge, Rank: r.Rank, Less: r.Less, Plus: r.Plus,
	}
}

// hosts matches DNS names.
var hosts = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9.])?$`)

// isName reports whether s is a DNS name, with or without a port.
func isName(s string) bool {
	if host, port, err := net.SplitHostPort(s); err == nil {
		n, err := strconv.ParseUint(port, 10, 16)
		return err == nil && n > 0 && hosts.MatchString(host)
	}
	return hosts.MatchString(s)
}

// ScrapeHTTP returns the HTTP client configuration for the target's metrics page: metrics.http if it is set, else the
// target's own if the page is at the target's address or its replicas, else the default. The target's credentials are
// never sent to another address.
func (t Target) ScrapeHTTP() HTTP {
	if !reflect.DeepEqual(t.Metrics.HTTP, DefaultTarget().Metrics.HTTP) {
		return t.Metrics.HTTP
	}
	own, _ := url.Parse(t.URL) // Check has parsed both URLs
	if page, _ := url.Parse(t.Metrics.URL); t.Metrics.URL == "" || page.Scheme == own.Scheme && page.Host == own.Host {
		return t.HTTP
	}
	return t.Metrics.HTTP
}

func (g GPU) check(at string, f *Faults) {
	sources := 0
	for _, s := range []string{g.DCGMExporter, g.LibDCGM, g.NvidiaSMI} {
		if s != "" {
			sources++
		}
	}
	if sources != 1 {
		f.add(at, "want one of dcgm_exporter, libdcgm and nvidia_smi, got %d", sources)
	}
	if g.DCGMExporter != "" {
		f.address(at+".dcgm_exporter", g.DCGMExporter, "http://127.0.0.1:9400/metrics")
	}
	f.interval(at+".interval", g.Interval, Duration(time.Second))
	s := g.Select
	if g.DCGMExporter == "" && s.Namespace+s.Pod+s.Container != "" {
		f.add(at+".select", "namespace, pod and container are labels of a dcgm-exporter's page: want dcgm_exporter, or index or uuid")
	}
	if g.LibDCGM != "" {
		if err := dcgm.CheckAddress(g.LibDCGM); err != nil {
			f.add(at+".libdcgm", "%v", err)
		}
	} else if !g.Profiling {
		f.add(at+".profiling", "needs libdcgm: the metrics of other sources are fixed")
	}
	if g.DCGMExporter == "" && !reflect.DeepEqual(g.HTTP, DefaultGPU().HTTP) {
		f.add(at+".http", "needs dcgm_exporter: no other source is read over HTTP")
	}
	selection := s.Selection()
	if err := selection.Check(); err != nil {
		f.add(at+".select", "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
}

// Selection converts s to a gpu.Select.
func (s GPUSelect) Selection() gpu.Select {
	return gpu.Select{Index: s.Index, UUID: s.UUID, Namespace: s.Namespace, Pod: s.Pod, Container: s.Container}
}

func (g Guard) check(at string, t *Target, f *Faults) {
	f.atLeast(at+".waiting", g.Waiting, 0)
	f.ratio(at+".kv_cache_usage", g.KVCacheUsage)
	f.ratio(at+".error_ratio", g.ErrorRatio)
	f.oneOf(at+".on_missing_metrics", g.OnMissingMetrics, "pause", "go")
	f.notNegative(at+".resume_after", g.ResumeAfter)
	if t.Metrics.Interval == 0 && (g.Waiting > 0 || g.KVCacheUsage > 0) {
		f.add(at, "waiting and kv_cache_usage are read from the target's metrics, and its metrics.interval is 0: they are not scraped")
	}
}

func (f *Faults) address(path, got, such string) {
	u, err := url.Parse(got)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		if strings.Contains(got, "@") { // the part before the @ may be a password
			f.add(path, "want an http or https address such as %s, got one that is none and has an @ in it", such)
			return
		}
		f.add(path, "want an http or https address such as %s, got %q", such, got)
	}
}

// interval checks a scrape interval. none is the value that disables scraping; a shorter interval loads the scraped
// server.
func (f *Faults) interval(path string, d, none Duration) {
	if d != none && (d < Duration(time.Second) || d > Duration(time.Hour)) {
		f.add(path, "want a duration from 1s to 1h, got %v", d)
	}
}

func (f *Faults) ratio(path string, got float64) {
	if !(got >= 0 && got <= 1) {
		f.add(path, "want 0 to 1, got %v", got)
	}
}
