package config

import (
	"fmt"
	"net"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"replayd/internal/fault"
	"replayd/internal/gpu/dcgm"
	"replayd/internal/openai"
	"replayd/internal/scrape"
)

func (m Metrics) check(at string, of *scrape.Role, f *fault.List) {
	if m.URL != "" {
		checkAddress(f, at+".url", m.URL, "http://127.0.0.1:8000/metrics")
	}
	checkInterval(f, at+".interval", m.Interval, 0)
	f.If(m.Replicas != "" && !isName(m.Replicas),
		at+".replicas", "want a DNS name, with or without a port, got %q", m.Replicas)
	for i, r := range m.Map {
		if faults := r.Check(of); len(faults) > 0 {
			f.Add(fmt.Sprintf("%s.map[%d]", at, i), "%s", faults.Line())
		}
	}
}

// isName reports whether s is a DNS name, with or without a port.
func isName(s string) bool {
	if host, port, err := net.SplitHostPort(s); err == nil {
		n, err := strconv.ParseUint(port, 10, 16)
		return err == nil && n > 0 && openai.IsDNSName(host)
	}
	return openai.IsDNSName(s)
}

// ScrapeHTTP returns the HTTP client configuration for a metrics page of the target: the page's own if it is set, else
// the target's if the page is at the target's address or its replicas, else the default. The target's credentials are
// never sent to another address.
func (t Target) ScrapeHTTP(m Metrics) HTTP {
	if !reflect.DeepEqual(m.HTTP, defaultMetrics().HTTP) {
		return m.HTTP
	}
	own, _ := url.Parse(t.URL) // Check has parsed both URLs
	if page, _ := url.Parse(m.URL); m.URL == "" || page.Scheme == own.Scheme && page.Host == own.Host {
		return t.HTTP
	}
	return m.HTTP
}

func (g GPU) check(at string, f *fault.List) {
	sources := 0
	for _, s := range []string{g.DCGMExporter, g.LibDCGM, g.NvidiaSMI} {
		if s != "" {
			sources++
		}
	}
	f.If(sources != 1, at, "want one of dcgm_exporter, libdcgm and nvidia_smi, got %d", sources)
	if g.DCGMExporter != "" {
		checkAddress(f, at+".dcgm_exporter", g.DCGMExporter, "http://127.0.0.1:9400/metrics")
	}
	checkInterval(f, at+".interval", g.Interval, time.Second)
	s := g.Select
	if g.DCGMExporter == "" && s.Namespace+s.Pod != "" {
		f.Add(at+".select", "namespace and pod are labels of a dcgm-exporter's page: want dcgm_exporter, or uuid")
	}
	if g.LibDCGM != "" {
		if err := dcgm.CheckAddress(g.LibDCGM); err != nil {
			f.Add(at+".libdcgm", "%v", err)
		}
	}
	f.If(g.DCGMExporter == "" && !reflect.DeepEqual(g.HTTP, DefaultGPU().HTTP),
		at+".http", "needs dcgm_exporter: no other source is read over HTTP")
	if faults := s.Check(); len(faults) > 0 {
		f.Add(at+".select", "%s", faults.Line())
	}
}

func checkAddress(f *fault.List, path, got, such string) {
	u, err := url.Parse(got)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		if strings.Contains(got, "@") { // the part before the @ may be a password
			f.Add(path, "want an http or https address such as %s, got one that is none and has an @ in it", such)
			return
		}
		f.Add(path, "want an http or https address such as %s, got %q", such, got)
	}
}

// checkInterval checks a scrape interval. none is the value that disables scraping; a shorter interval loads the
// scraped server.
func checkInterval(f *fault.List, path string, d, none time.Duration) {
	f.If(d != none && (d < time.Second || d > time.Hour), path, "want a duration from 1s to 1h, got %v", d)
}

// RowsOf returns the rows that texts such as my_queue=requests_waiting say.
func RowsOf(texts []string) (rows []scrape.Row, err error) {
	var f fault.List
	for _, text := range texts {
		row := scrape.Row{}
		row.Family, row.Quantity, _ = strings.Cut(text, "=")
		if wrong := row.Check(scrape.Engines); len(wrong) > 0 {
			f.Add("", "want FAMILY=NAME, got %q: %s", text, wrong[0].Want)
		}
		rows = append(rows, row)
	}
	if len(f) > 0 {
		return nil, f.Err()
	}
	return rows, nil
}
