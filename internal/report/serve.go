package report

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"replayd/internal/measure"
	"replayd/internal/number"
	"replayd/internal/result"
	"replayd/internal/visitors"
)

// A Dashboard serves the page of the selected runs, with a form to select runs and requests. It only reads files. It
// builds one page at a time.
type Dashboard struct {
	sources []result.Source
	theme   Theme
	made    string
	hosts   []string

	turn chan struct{} // holds one token: its holder owns the fields below
	kept keptRuns
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
	if err := page.Write(&body); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(status)
	if r.Method == http.MethodGet {
		_, _ = w.Write(body.Bytes())
	}
}

func (d *Dashboard) known(host string) bool {
	return len(d.hosts) == 0 || slices.Contains(d.hosts, strings.ToLower((&url.URL{Host: host}).Hostname()))
}

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
		chosen = d.sources[:min(len(d.sources), maxOverlaid)]
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
		read, err := d.kept.read(s)
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

// Limits of a request to the dashboard. A page of 100,000 requests takes a second.
const (
	headerTime  = 10 * time.Second
	answerTime  = 2 * time.Minute
	idleTime    = time.Minute
	headerBytes = 8 << 10 // net/http takes 4 to 8 KiB more
	leaveTime   = 5 * time.Second
)

// Run serves until ctx is canceled. Pages in progress then have leaveTime to finish.
func (d *Dashboard) Run(ctx context.Context, l net.Listener) error {
	s := &http.Server{
		Handler: gzhttp.GzipHandler(d), ReadHeaderTimeout: headerTime, ReadTimeout: headerTime, WriteTimeout: answerTime,
		IdleTimeout: idleTime, MaxHeaderBytes: headerBytes,
	}
	door := visitors.NewDoor(func() int { return visitors.Most })
	door.Serve(s)
	return visitors.Serve(ctx, s, door.Listener(l), leaveTime)
}

// maxKept is the most requests that a Dashboard caches. The run read last is always cached.
const maxKept = 1 << 20

// A keptRun is a cached source: its runs and the stamp of its files when they were read.
type keptRun struct {
	name, stamp string
	runs        []result.Run
}

// keptRuns are cached sources, the least recently used first.
type keptRuns []keptRun

// read returns the runs of a source. It reads the files again if they have changed.
func (kept *keptRuns) read(s result.Source) ([]result.Run, error) {
	stamp := s.Stamp()
	i := slices.IndexFunc(*kept, func(k keptRun) bool { return k.name == s.Name })
	if i >= 0 {
		k := (*kept)[i]
		*kept = slices.Delete(*kept, i, i+1)
		if k.stamp == stamp {
			*kept = append(*kept, k)
			return k.runs, nil
		}
	}
	runs, err := s.Read()
	if err != nil {
		return nil, err
	}
	*kept = append(*kept, keptRun{s.Name, stamp, runs})
	for kept.rows() > maxKept && len(*kept) > 1 {
		*kept = slices.Delete(*kept, 0, 1)
	}
	return runs, nil
}

func (kept keptRuns) rows() (n int) {
	for _, k := range kept {
		for _, run := range k.runs {
			n += len(run.Rows)
		}
	}
	return n
}
