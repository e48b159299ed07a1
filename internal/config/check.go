package config

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net"
	"regexp"
	"slices"
	"strings"

	"replayd/internal/measure"
	"replayd/internal/openai"
	"replayd/internal/spelling"
	"replayd/internal/synth"
)

// names matches the names of workloads and targets, which are used in label values, file names and request ids.
var names = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,63}$`)

// IsName reports whether s is a valid name of a workload or a target.
func IsName(s string) bool { return names.MatchString(s) }

// Check returns every fault of a resolved configuration, each with its key, so that an operator can fix all at once. It
// opens no files and does not change the configuration.
func (c *Config) Check() Faults {
	var f Faults
	if _, _, err := net.SplitHostPort(c.Web.Listen); err != nil {
		f.add("web.listen", "want host:port or :port, got %q", c.Web.Listen)
	}
	f.notNegative("drain", c.Drain)
	if c.MaxWaiting < 0 {
		f.add("max_waiting", "want a size ≥ 0, got %d", c.MaxWaiting)
	}
	if c.Records.MaxBytes < 0 {
		f.add("records.max_bytes", "want a size ≥ 0, got %d", c.Records.MaxBytes)
	}
	f.atLeast("records.keep", c.Records.Keep, 0)
	if c.State.MaxBytes < 1 {
		f.add("state.max_bytes", "want a size ≥ 1, got %d", c.State.MaxBytes)
	}
	targets, seen := map[string]*Target{}, map[string]bool{}
	for i := range c.Targets {
		t := &c.Targets[i]
		at := fmt.Sprintf("targets[%d]", i)
		f.name(at, t.Name, seen)
		t.check(at, &f)
		if targets[t.Name] == nil {
			targets[t.Name] = t
		}
	}
	workloads := map[string]bool{}
	for i := range c.Workloads {
		w := &c.Workloads[i]
		at := fmt.Sprintf("workloads[%d]", i)
		f.name(at, w.Name, workloads)
		w.check(at, &f)
		t := targets[w.Target]
		if t == nil {
			f.add(at+".target", "want the name of a target, got %q", w.Target)
			continue
		}
		w.Guard.check(at+".guard", t, &f)
		w.SLO.check(at+".slo", t, &f)
		w.Request.checkAgainst(at+".request.echo_header", t, &f)
		if w.Trace.Path != "" && w.Dataset.Given() && t.Tokenizer == "" {
			f.add(at+".dataset", "want a tokenizer of the target too: texts are cut to the trace's lengths")
		}
	}
	for i := range c.GPUs {
		g := &c.GPUs[i]
		at := fmt.Sprintf("gpus[%d]", i)
		if targets[g.Target] == nil {
			f.add(at+".target", "want the name of a target, got %q", g.Target)
		}
		g.check(at, &f)
	}
	c.checkComparisons(targets, &f)
	if len(c.Targets) == 0 {
		f.add("targets", "want at least one target, got none")
	}
	if len(c.Workloads) == 0 {
		f.add("workloads", "want at least one workload, got none")
	}
	return f
}

func (t *Target) check(at string, f *Faults) {
	before := len(*f)
	f.address(at+".url", t.URL, "http://127.0.0.1:8000")
	if err := openai.CheckURL(t.URL); err != nil && len(*f) == before {
		f.add(at+".url", "%s", strings.TrimPrefix(err.Error(), "url: "))
	}
	f.oneOf(at+".api", t.API, "chat", "completions")
	f.oneOf(at+".output", t.Output, "exact", "max", "free")
	f.notNegative(at+".timeouts.connect", t.Timeouts.Connect)
	f.notNegative(at+".timeouts.first_token", t.Timeouts.FirstToken)
	f.notNegative(at+".timeouts.stall", t.Timeouts.Stall)
	f.notNegative(at+".timeouts.total", t.Timeouts.Total)
	if t.PerChunk && !t.Stream {
		f.add(at+".per_chunk_usage", "needs streamed answers, got stream: false")
	}
	if t.Idle <= 0 {
		f.add(at+".idle", "want a duration > 0, got %v", t.Idle)
	}
	if t.Replica != "" {
		if err := openai.CheckReplicaHeader(t.Replica); err != nil {
			f.add(at+".replica_header", "%v", err)
		}
	}
	t.Metrics.check(at+".metrics", f)
}

func (w *Workload) check(at string, f *Faults) {
	w.checkRows(at, f)
	f.oneOf(at+".prompt.form", w.Prompt.Form, "text", "tokens")
	f.oneOf(at+".prompt.words", w.Prompt.Words, "main", "all")
	if err := synth.Salt(w.Prompt.Salt).Check(); err != nil {
		f.add(at+".prompt.salt", "%v", err)
	}
	f.atLeast(at+".lanes", w.Lanes, 1)
	f.oneOf(at+".overload", w.Overload, "wait", "drop")
	f.notNegative(at+".max_wait", w.MaxWait)
	if w.Prebuild.Bytes < 1 || w.Prebuild.Bytes > math.MaxInt32 {
		f.add(at+".prebuild.bytes", "want a size of 1 byte to 2 GiB, got %d", w.Prebuild.Bytes)
	}
	f.atLeast(at+".budget.requests_per_minute", w.Budget.RequestsPerMinute, 0)
	f.atLeast(at+".budget.prompt_tokens_per_hour", w.Budget.PromptTokensPerHour, 0)
	f.atLeast(at+".budget.output_tokens_per_day", w.Budget.OutputTokensPerDay, 0)
	w.Request.check(at+".request", f)
}

// check also rejects bounds on streaming quantities of a target without streaming: no request could exceed them.
func (s SLO) check(at string, t *Target, f *Faults) {
	for _, b := range s.Bounds.check(at, f) {
		if !t.Stream && b.Quantity.Streamed() {
			f.add(at+"."+b.Quantity.String(), "needs streamed answers, got %v", b.Text(b.Limit))
		}
	}
	f.notNegative(at+".session.makespan", s.Session.Makespan)
	f.objective(at+".objective", s.Objective)
	f.objective(at+".session.objective", s.Session.Objective)
}

// objective checks a share that should be good: with 1 there is no error budget.
func (f *Faults) objective(path string, o float64) {
	if !(o > 0 && o < 1) {
		f.add(path, "want a number > 0 and < 1, got %v", o)
	}
}

// keysOfSLO lists the keys of an SLO.
func keysOfSLO() []string {
	keys := []string{"objective", "session"}
	for _, q := range measure.Quantities() {
		keys = append(keys, q.String(), q.Tag())
	}
	return keys
}

// check returns the valid bounds in the order of the quantities.
func (b Bounds) check(at string, f *Faults) (slo measure.SLO) {
	for _, name := range slices.Sorted(maps.Keys(b)) {
		if _, known := measure.QuantityOf(name); !known {
			f.add(at+"."+name, "%s%s: want objective, session or %s", unknownKey, spelling.DidYouMean(name, "", keysOfSLO()), measure.QuantityNames())
			continue
		}
		value := "0"
		switch v := b[name].(type) {
		case nil:
		case string, int, int64, uint64, float64, bool:
			value = cmp.Or(fmt.Sprint(v), value)
		default:
			f.add(at+"."+name, "want one value")
			continue
		}
		switch bound, err := measure.ParseBound(name, value); {
		case err != nil:
			f.add(at+"."+name, "%v", err)
		case slo.Limit(bound.Quantity) > 0 && bound.Limit > 0:
			f.add(at+"."+name, "want %s once, got it under both of its names", bound.Quantity)
		case bound.Limit > 0:
			slo = append(slo, bound)
		}
	}
	return measure.NewSLO(slo...)
}

func (f *Faults) add(path, format string, args ...any) {
	*f = append(*f, Fault{path, fmt.Sprintf(format, args...)})
}

func (f *Faults) name(at, name string, seen map[string]bool) {
	switch {
	case !names.MatchString(name):
		f.add(at+".name", "want 1 to 63 of A-Z a-z 0-9 _ . -, got %q", name)
	case seen[name]:
		f.add(at+".name", "want a name of its own, got %q a second time", name)
	}
	seen[name] = true
}

func (f *Faults) oneOf(path, got string, want ...string) {
	if !slices.Contains(want, got) {
		f.add(path, "%s", spelling.Want(want, got))
	}
}

func (f *Faults) atLeast(path string, got, least int) {
	if got < least {
		f.add(path, "want an integer ≥ %d, got %d", least, got)
	}
}

func (f *Faults) notNegative(path string, d Duration) {
	if d < 0 {
		f.add(path, "want a duration ≥ 0, got %v", d)
	}
}
