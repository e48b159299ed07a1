package report

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"replayd/internal/measure"
	"replayd/internal/number"
	"replayd/internal/result"
)

// mostKept is the most requests that a Dashboard caches. The run read last is always cached.
const mostKept = 1 << 20

// A Dashboard serves the page of the selected runs, with a form to select runs and requests. It only reads files. It
// builds one page at a time.
type Dashboard struct {
	sources []result.Source
	theme   Theme
	made    string
	hosts   []string

	turn chan struct{} // holds one token: its holder owns the fields below
	kept []keptRun     // least recently used first
}

// A keptRun is a cached source: its runs and the stamp of its files when they were read.
type keptRun struct {
	name, stamp string
	runs        []result.Run
}

// NewDashboard returns a Dashboard of the runs that FindRuns found. It answers only requests for the given hosts, as a
// protection against DNS rebinding. Without hosts it answers all requests.
func NewDashboard(sources []result.Source, theme Theme, made string, hosts ...string) *Dashboard {
	d := &Dashboard{sources: sources, theme: theme, made: made, hosts: hosts, turn: make(chan struct{}, 1)}
	d.turn <- struct{}{}
	return d
}

// ServeHTTP answers GET / with the page.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", pagePolicy(true)+"; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	switch {
	case !d.known(r.Host):
		http.Error(w, fmt.Sprintf("want one of the hosts %s, got %q", strings.Join(d.hosts, ", "), r.Host), http.StatusMisdirectedRequest)
		return
	case r.URL.Path != "/":
		http.NotFound(w, r)
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "the dashboard only reads", http.StatusMethodNotAllowed)
		return
	}
	select {
	case <-d.turn:
		defer func() { d.turn <- struct{}{} }()
	case <-r.Context().Done():
		return
	}
	page, status := d.page(r.URL.Query())
	var body bytes.Buffer
	var err error
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		z, _ := gzip.NewWriterLevel(&body, gzip.BestSpeed) // the level is known
		err = page.Write(z)
		if err == nil {
			err = z.Close()
		}
	} else {
		err = page.Write(&body)
	}
	if err != nil {
		h.Del("Content-Encoding")
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h.Set("Vary", "Accept-Encoding")
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(status)
	if r.Method == http.MethodGet {
		_, _ = w.Write(body.Bytes())
	}
}

// known reports whether the dashboard answers requests for a host.
func (d *Dashboard) known(host string) bool {
	if len(d.hosts) == 0 {
		return true
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return slices.Contains(d.hosts, strings.ToLower(strings.Trim(host, "[]")))
}

// page builds the page of the selected runs and requests.
func (d *Dashboard) page(q url.Values) (Page, int) {
	filter, errs := readFilter(q)
	form := &form{Filter: filter, Outcomes: measure.Outcomes(), typed: q}
	chosen := slices.DeleteFunc(slices.Clone(d.sources), func(s result.Source) bool { return !slices.Contains(q["run"], s.Name) })
	for _, name := range q["run"] {
		if !slices.ContainsFunc(d.sources, func(s result.Source) bool { return s.Name == name }) {
			errs = append(errs, fmt.Sprintf("run: want one of those listed, got %q", cutText(name, 100)))
		}
	}
	if len(chosen) == 0 {
		chosen = d.sources[:min(len(d.sources), mostOverlaid)]
	}
	if len(d.sources) > 1 {
		for _, s := range d.sources {
			form.Runs = append(form.Runs, choice{s.Name, slices.ContainsFunc(chosen, func(c result.Source) bool { return c.Name == s.Name })})
		}
	}
	status := http.StatusOK
	if len(errs) > 0 {
		status = http.StatusBadRequest
	}
	var runs []result.Run
	shown, all := 0, 0
	for _, s := range chosen {
		read, err := d.read(s)
		if err != nil {
			errs = append(errs, err.Error())
			continue
		}
		for _, run := range read {
			all += len(run.Measured())
			run = filter.apply(run)
			shown += len(run.Measured())
			runs = append(runs, run)
		}
	}
	page := Page{Title: "No run"}
	if len(runs) > 0 {
		page = HTML(runs)
	}
	form.Shown = fmt.Sprintf("%s of %s shown.", number.Whole(shown), number.Count(all, "measured request"))
	form.Errors = errs
	page.form, page.Theme, page.Made = form, d.theme, d.made
	return page, status
}
