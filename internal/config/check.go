package config

import (
	"fmt"
	"net"
	"reflect"
	"regexp"
	"strings"

	commoncfg "github.com/prometheus/common/config"

	"replayd/internal/fault"
	"replayd/internal/openai"
	"replayd/internal/schedule"
	"replayd/internal/scrape"
	"replayd/internal/synth"
)

// names matches the names of workloads and targets, which are used in label values, file names and request ids.
var names = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,63}$`)

// IsName reports whether s is a valid name of a workload or a target.
func IsName(s string) bool { return names.MatchString(s) }

// variable matches what other programs replace by a variable of the environment.
var variable = regexp.MustCompile(`\$\{\w+\}|\$\(\w+\)|^\$[A-Z_][A-Z0-9_]+$`)

// checkVariables refuses secrets and paths that name a variable: they would be used as they stand.
func (c *Config) checkVariables(f *fault.List) {
	eachText(reflect.ValueOf(*c), "", func(key string, v reflect.Value) {
		switch found := variable.FindString(v.String()); {
		case found == "":
		case v.Type() == reflect.TypeFor[commoncfg.Secret]():
			f.Add(key, "want the secret itself, got a text with a variable, which is not replaced: "+
				"put the secret into a file, and its path into the key that ends in _file")
		case namesFile(key):
			f.Add(key, "want a path, got one with %s, which is not replaced: write the path itself", found)
		}
	})
}

// Check returns every fault of a resolved configuration, each with its key, so that an operator can fix all at once. It
// opens no files and does not change the configuration.
func (c *Config) Check() fault.List {
	f := &fault.List{}
	c.checkVariables(f)
	_, port, err := net.SplitHostPort(c.Web.Listen)
	if err == nil {
		_, err = net.LookupPort("tcp", port) // a number or the name of a service; it asks no server
	}
	f.If(err != nil, "web.listen", "want host:port or :port, got %q", c.Web.Listen)
	f.AtLeast("web.max_connections", c.Web.MaxConnections, 1)
	for i, host := range c.Web.AllowedHosts {
		f.If(host == "" || strings.ContainsAny(host, ":/ ") || strings.Contains(host, "*") && host != "*",
			fmt.Sprintf("web.allowed_hosts[%d]", i), "want a host name without a port, or * for any, got %q", host)
	}
	c.Web.checkLinks(f)
	f.NotNegative("drain", c.Drain)
	f.If(c.Records.MaxBytes < 0, "records.max_bytes", "want a size ≥ 0, got %d", c.Records.MaxBytes)
	f.AtLeast("records.keep", c.Records.Keep, 0)
	targets, seen := map[string]*Target{}, map[string]bool{}
	for i := range c.Targets {
		t := &c.Targets[i]
		at := fmt.Sprintf("targets[%d]", i)
		checkName(f, at, t.Name, seen)
		t.check(at, f)
		if targets[t.Name] == nil {
			targets[t.Name] = t
		}
	}
	workloads := map[string]bool{}
	for i := range c.Workloads {
		w := &c.Workloads[i]
		at := fmt.Sprintf("workloads[%d]", i)
		checkName(f, at, w.Name, workloads)
		w.check(at, f)
		f.If(c.ExitWhenDone && w.Repeat.Mode != schedule.Once, at+".repeat.mode",
			`want "once" for exit_when_done, got %q: this workload is never over`, w.Repeat.Mode)
		t := targets[w.Target]
		if t == nil {
			f.Add(at+".target", "want the name of a target, got %q", w.Target)
			continue
		}
		if t.Metrics.Interval == 0 && w.Guard.Scraped() {
			f.Add(at+".guard", "waiting and kv_cache_usage are read from the target's metrics, "+
				"and its metrics.interval is 0: they are not scraped")
		}
		w.SLO.check(at+".slo", t, f)
		w.checkEcho(at+".request.echo_header", t, f)
		w.checkRowHeaders(at+".trace.headers", t, f)
		f.If(w.Trace.Path != "" && w.Dataset.Given() && t.Tokenizer == "",
			at+".dataset", "want a tokenizer of the target too: texts are cut to the trace's lengths")
	}
	for i := range c.GPUs {
		g := &c.GPUs[i]
		at := fmt.Sprintf("gpus[%d]", i)
		f.If(targets[g.Target] == nil, at+".target", "want the name of a target, got %q", g.Target)
		g.check(at, f)
	}
	c.checkComparisons(targets, f)
	f.If(len(c.Targets) == 0, "targets", "want at least one target, got none")
	f.If(len(c.Workloads) == 0, "workloads", "want at least one workload, got none")
	return *f
}

func (t *Target) check(at string, f *fault.List) {
	before := len(*f)
	checkAddress(f, at+".url", t.URL, "http://127.0.0.1:8000")
	if len(*f) == before {
		*f = append(*f, t.CheckAddress().Under(at)...)
	}
	*f = append(*f, t.Options.Check().Under(at)...)
	f.If(t.Idle == 0, at+".idle", "want a duration > 0, got 0s")
	t.Metrics.check(at+".metrics", scrape.Engines, f)
	t.Router.check(at+".router", scrape.Routers, f)
	f.If(t.Router.URL == "" && (t.Router.Replicas != "" || len(t.Router.Map) > 0),
		at+".router.url", "want the address of the router's metrics page, such as http://127.0.0.1:29000/metrics, got none")
}

func (w *Workload) check(at string, f *fault.List) {
	w.checkRows(at, f)
	f.OneOf(at+".prompt.form", string(w.Prompt.Form), string(synth.Text), string(synth.Tokens))
	f.OneOf(at+".prompt.words", w.Prompt.Words, "main", "all")
	if err := w.Prompt.Salt.Check(); err != nil {
		f.Add(at+".prompt.salt", "%v", err)
	}
	*f = append(*f, w.Sending.Check().Under(at)...)
	*f = append(*f, w.Guard.Check().Under(at+".guard")...)
	*f = append(*f, w.Budget.Check().Under(at+".budget")...)
	*f = append(*f, w.Request.Check().Under(at+".request")...)
}

func checkName(f *fault.List, at, name string, seen map[string]bool) {
	switch {
	case !names.MatchString(name):
		f.Add(at+".name", "want 1 to 63 of A-Z a-z 0-9 _ . -, got %q", name)
	case seen[name]:
		f.Add(at+".name", "want a name of its own, got %q a second time", name)
	}
	seen[name] = true
}

func (c *Config) checkComparisons(targets map[string]*Target, f *fault.List) {
	workloads := map[string]*Workload{}
	for i := range c.Workloads {
		workloads[c.Workloads[i].Name] = &c.Workloads[i]
	}
	seen, compared := map[string]bool{}, map[string]string{}
	for i := range c.Comparisons {
		one := &c.Comparisons[i]
		at := fmt.Sprintf("comparisons[%d]", i)
		checkName(f, at, one.Name, seen)
		w := workloads[one.Workload]
		switch other, twice := compared[one.Workload]; {
		case w == nil:
			f.Add(at+".workload", "want the name of a workload, got %q", one.Workload)
		case twice:
			f.Add(at+".workload", "want a workload of its own, got %q, which comparison %q has", one.Workload, other)
		case !w.Timed() && (!w.ByRate() || w.Arrival == schedule.Users):
			f.Add(at+".workload", "want a workload with planned instants (arrival exact, spread, constant, poisson or gamma), "+
				"got arrival %s", w.Arrival)
		default:
			compared[one.Workload] = one.Name
		}
		candidate := targets[one.Candidate]
		if candidate == nil {
			f.Add(at+".candidate", "want the name of a target, got %q", one.Candidate)
		} else if w != nil {
			w.checkSides(at, targets[w.Target], candidate, f)
		}
		*f = append(*f, one.Check().Under(at)...)
	}
}

// checkSides checks that both targets of a comparison are asked in the same way, so that their answers can be compared.
func (w *Workload) checkSides(at string, baseline, candidate *Target, f *fault.List) {
	if baseline == nil {
		return // the workload has the fault
	}
	if baseline.Stream != candidate.Stream || baseline.API != candidate.API || baseline.Output != candidate.Output {
		f.Add(at+".candidate", "want a target with the api, stream and output of %q (%s, %v, %s), got %s, %v, %s",
			baseline.Name, baseline.API, baseline.Stream, baseline.Output, candidate.API, candidate.Stream, candidate.Output)
	}
	w.checkEcho(at+".candidate", candidate, f)
	w.checkRowHeaders(at+".candidate", candidate, f)
}

// checkEcho checks the header that is sent back against those of the target.
func (w *Workload) checkEcho(path string, t *Target, f *fault.List) {
	if w.Request.EchoHeader == "" {
		return
	}
	if name := openai.HeaderSet(t.HTTP.HTTPHeaders, openai.EchoedAs(w.Request.EchoHeader)); name != "" {
		f.Add(path, "contradicts http.http_headers.%s of target %q: want one of them", name, t.Name)
	}
}
