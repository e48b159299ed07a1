package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"replayd/internal/canary"
	"replayd/internal/comparison"
	"replayd/internal/config"
	"replayd/internal/dispatch"
	"replayd/internal/fault"
	"replayd/internal/file"
	"replayd/internal/gpu"
	"replayd/internal/metrics"
	"replayd/internal/openai"
	"replayd/internal/records"
	"replayd/internal/replay"
	"replayd/internal/scarce"
	"replayd/internal/scrape"
	"replayd/internal/token"
	"replayd/internal/trace"
	"replayd/internal/web"
)

// Build opens and checks everything that the configuration names. Nothing runs and nothing is sent before Start. The
// error has every fault; in that case nothing stays open.
func Build(ctx context.Context, o Options) (*Generation, error) {
	sleeper, err := o.sleeper()
	if err != nil {
		return nil, err
	}
	sink := records.NewSink(o.Meter.RecordErrors, o.Log)
	sink.Ledgers = o.Meter.AppendLedgers
	var failures prometheus.Counter
	if o.Comparisons != nil {
		failures = o.Comparisons.StateErrors
	}
	g := &Generation{options: o, shared: &shared{
		sink: sink, pacer: replay.NewPacer(sleeper), watchdog: o.watchdog, state: comparison.NewStore(o.Log, failures),
		waiting: dispatch.Waiting{Most: dispatch.MostWaiting},
	}}
	if g.shared.watchdog == nil {
		g.shared.watchdog = newWatchdog(o.Log, o.note)
	}
	return g, g.build(ctx, &Generation{})
}

func (g *Generation) build(ctx context.Context, old *Generation) error {
	err := g.options.Config.Refuse(g.open(ctx, old, nil))
	if err != nil {
		return errors.Join(err, g.discard())
	}
	g.options.Config.Places = nil // frees memory: without faults no line is needed
	return nil
}

// open opens and checks what the configuration names, except keys with a known fault. It returns the other faults. old
// is empty where there is no generation before.
func (g *Generation) open(ctx context.Context, old *Generation, known fault.List) fault.List {
	c, faulty := &g.options.Config, config.Faulty(known)
	g.servers, g.named = map[string]*server{}, map[string]*workload{}
	probed := probedTargets(c)
	faults := append(g.checkWeb(old), g.checkWritten(old)...)
	pipes := g.checkOpened()
	unopened := config.Faulty(pipes)
	faults = append(faults, pipes...)
	for i, t := range c.Targets {
		at := fmt.Sprintf("targets[%d]", i)
		if faulty[at+".name"] {
			continue // another target may have the name
		}
		if unopened[at+".http"] || unopened[at+".metrics"] || unopened[at+".router"] {
			continue
		}
		found := g.addServer(at, t, probed[t.Name], old)
		sound := !faulty[at+".url"] && !faulty[at+".metrics"]
		// without an address of its own, the page is where requests go, and has the same faults
		if sound && (len(found) == 0 || t.Metrics.URL != "") {
			found = append(found, config.Without(g.addEngine(at, t, old), found)...)
		}
		if !faulty[at+".url"] && !faulty[at+".router"] {
			found = append(found, config.Without(g.addRouter(at, t, old), found)...)
		}
		faults = append(faults, found...)
	}
	for i, one := range c.GPUs {
		if at := fmt.Sprintf("gpus[%d]", i); !faulty[at] && !unopened[at] {
			faults = append(faults, g.addGPU(at, one, old)...)
		}
	}
	g.addComparisons(old, faulty)
	for i := range c.Workloads {
		w, found := g.openWorkload(ctx, fmt.Sprintf("workloads[%d]", i), c.Workloads[i], old, faulty)
		faults = append(faults, found...)
		g.addOpened(w)
	}
	faults = append(faults, g.openCandidates(ctx, old, faulty)...)
	return config.Without(faults, known)
}

// addServer takes over the server of the generation before if nothing about it changed, or makes one. probe says
// whether to measure the tokens of its chat template.
func (g *Generation) addServer(at string, t config.Target, probe bool, old *Generation) fault.List {
	tokenizer, digest, err := g.options.openTokenizer(t)
	if err != nil {
		return fault.At(at+".tokenizer", err)
	}
	s := old.servers[t.Name]
	same := s != nil && s.probe == probe && reflect.DeepEqual(s.config, requestsOf(t)) && s.digest == digest
	if same && s.share() {
		g.servers[t.Name] = s
		return nil
	}
	o := &g.options
	c, err := openai.New(openai.Target{
		Options: t.Options, Name: t.Name, UserAgent: o.UserAgent, Dial: o.Dial, Resolve: o.Resolve,
	})
	if err != nil {
		return fault.At(at, err)
	}
	if c.IgnoredProxy() {
		o.Log.Warn("the environment names a proxy for the target: it is not used, requests go straight to the target", "target", t.Name)
	}
	s = &server{
		config: requestsOf(t), probe: probe, client: c, tokenizer: tokenizer, digest: digest,
		lost: make(chan struct{}), users: 1,
	}
	s.watch = replay.NewTarget(replay.TargetOptions{
		Client: c, Template: probe, Patient: o.Patient, Named: func(model string) { s.shown.Serves(model) }, Log: o.Log,
	})
	s.shown = o.Meter.Target(t.Name, string(t.API), c.BaseURL(), func() metrics.TargetState {
		unread, _ := c.TLSFiles()
		return metrics.TargetState{
			Reached: s.watch.Health().Reached, Pods: c.NumPods(), LookupErrors: c.LookupErrors(), TLSErrors: unread,
		}
	})
	g.servers[t.Name] = s
	return nil
}

// addOpened adds an opened workload; nil: it has faults.
func (g *Generation) addOpened(w *workload) {
	switch {
	case w == nil:
	case g.checks:
		if text, err := w.outlook(time.Now()); err == nil && w.side.is == canary.Baseline {
			g.outlooks = append(g.outlooks, w.config.Name+": "+text)
		}
		_ = w.rows.Close() // it was only checked
	default:
		g.workloads = append(g.workloads, w)
		g.named[w.config.Name] = w
	}
}

// probedTargets returns the targets whose chat template is measured, by name.
func probedTargets(c *config.Config) map[string]bool {
	probed, calibrated := map[string]bool{}, map[string]bool{}
	for _, w := range c.Workloads {
		calibrated[w.Name] = calibrates(w)
		probed[w.Target] = probed[w.Target] || calibrates(w)
	}
	for _, one := range c.Comparisons {
		probed[one.Candidate] = probed[one.Candidate] || calibrated[one.Workload]
	}
	return probed
}

// checkWeb checks the file of TLS and passwords. A reload that does not change the section does not read the file.
func (g *Generation) checkWeb(old *Generation) fault.List {
	w := g.options.Config.Web
	if reflect.DeepEqual(old.options.Config.Web, w) {
		return nil
	}
	return fault.Of(web.CheckConfig(w.ConfigFile))
}

// checkOpened refuses a path that is no file before a library opens it: the library would wait for the writer of a
// pipe.
func (g *Generation) checkOpened() (faults fault.List) {
	for _, f := range g.options.Config.Files() {
		if f.Opened() {
			faults = append(faults, fault.At(f.Key, file.Check(f.Path, false))...)
		}
	}
	return faults
}

// discard closes what was opened for a generation that never ran, without the parts of the generation before.
func (g *Generation) discard() error {
	var errs []error
	for _, s := range g.scrapers {
		if s.end == nil && s.close != nil {
			errs = append(errs, s.close())
		}
	}
	if g.shared.pacer != nil && g.shared.endSink == nil { // the pacer will never run
		g.shared.pacer.Close()
	}
	for _, w := range g.workloads {
		if !w.started() {
			errs = append(errs, w.rows.Close())
		}
	}
	if g.claimed != nil {
		g.shared.state.Release(g.claimed)
		g.claimed = nil
	}
	g.releaseAsked()
	for _, s := range g.servers {
		s.release()
	}
	return errors.Join(errs...)
}

// releaseAsked releases the servers that settle has started; the workloads use them.
func (g *Generation) releaseAsked() {
	for _, s := range g.asked {
		s.release()
	}
	g.asked = nil
}

// openWorkload opens everything of a workload that can have a fault, or takes it over from the generation before. It
// returns nil with faults, and if a known one, of the workload or its target, prevents a run.
func (g *Generation) openWorkload(
	ctx context.Context, at string, c config.Workload, old *Generation, faulty map[string]bool,
) (*workload, fault.List) {
	server, before := g.servers[c.Target], old.named[c.Name]
	side := g.sides[c.Name]
	if before != nil && side.of != nil && before.side == side {
		return before, nil // playsOn has looked at it, and at the other side
	}
	same := before != nil && reflect.DeepEqual(before.config, c) && before.server == server &&
		!before.broken.Load() && before.side == side
	if same && slices.EqualFunc(before.files(), filesOf(c), unchanged) {
		return before, nil
	}
	if faulty[at+".trace"] || faulty[at+".synthetic"] || faulty[at+".dataset"] || server == nil && c.Dataset.Given() {
		return nil, nil
	}
	var counter *token.Tokenizer
	if server != nil {
		counter = server.tokenizer
	}
	opened, faults := g.options.openRows(ctx, at, c, counter)
	if len(faults) > 0 {
		return nil, faults
	}
	if same && before.plays(opened) { // the file was replaced by an equal one
		return before, fault.At(at+".trace.path", opened.Close())
	}
	w := &workload{config: c, server: server, played: played{rows: opened}, side: side, workloadEnd: workloadEnd{
		over: make(chan struct{}), leave: make(chan struct{}), quit: make(chan struct{}), lost: make(chan replay.Lost, 1),
	}}
	if !faulty[at] {
		faults = w.open(at)
	}
	if side.of != nil && !g.options.Patient { // compare
		faults = append(faults, overLimits(at, c.Trace, opened.stats)...)
	}
	if len(faults) > 0 || faulty[at] || server == nil {
		_ = opened.Close() // the faults are returned
		return nil, faults
	}
	if pass, interval, overlaps := w.plan.Overlaps(time.Now()); overlaps && side.is == canary.Baseline {
		g.options.Log.Warn("a pass is longer than the time between activations: those that fall into it are left out",
			"workload", c.Name, "pass", pass, "interval", interval)
	}
	return w, nil
}

// unchanged reports whether a path still has the same file.
func unchanged(before, now os.FileInfo) bool {
	return before != nil && now != nil && os.SameFile(before, now) &&
		before.Size() == now.Size() && before.ModTime().Equal(now.ModTime())
}

// overLimits returns a fault where a limit filters every row of a trace. Rows without a length are known later.
func overLimits(at string, c config.Trace, s trace.Stats) (faults fault.List) {
	lengths := func(of int64) bool { return of == int64(s.Requests) && of > 0 }
	if c.OverLimit != "filter" || !lengths(s.Input.Count) || !lengths(s.Output.Count) {
		return nil
	}
	for _, limit := range []struct {
		key   string
		most  int
		least float64
		of    string
	}{
		{"max_input", c.MaxInput, s.Input.Min, "prompt"},
		{"max_output", c.MaxOutput, s.Output.Min, "output"},
		{"max_context", c.MaxContext, s.Input.Min + s.Output.Min, "prompt and output together"},
	} {
		if limit.most > 0 && limit.least > float64(limit.most) {
			faults.Add(at+".trace."+limit.key,
				"want %.0f tokens or more, the shortest %s of the trace, got %d: every row is filtered",
				limit.least, limit.of, limit.most)
			break
		}
	}
	return faults
}

// Check opens everything that a configuration names, as Build does, one workload after the other, and keeps nothing
// open. It does not use the network. loaded is the error of loading the configuration, or nil. The error of Check has
// the faults of both, each with its line. A key with a known fault is not opened.
func Check(ctx context.Context, c config.Config, log *slog.Logger, loaded error) error {
	_, err := Outlook(ctx, c, log, loaded)
	return err
}

// Outlook is Check, and says of each workload when its next request is due.
func Outlook(ctx context.Context, c config.Config, log *slog.Logger, loaded error) (each []string, err error) {
	var known fault.List
	if loaded != nil {
		bad := (*config.Invalid)(nil)
		if !errors.As(loaded, &bad) {
			return nil, loaded // there is no configuration to check
		}
		known = bad.Faults
	}
	reg := prometheus.NewRegistry()
	meter := metrics.NewMeter(reg)
	g := &Generation{
		options: Options{
			Config: c, Meter: meter, Engines: scrape.NewCollector(reg, scrape.Engines), Routers: scrape.NewCollector(reg, scrape.Routers),
			GPUs: gpu.NewCollector(reg), Log: log,
		},
		shared: &shared{sink: records.NewSink(meter.RecordErrors, log)},
		checks: true,
	}
	faults := g.open(ctx, &Generation{}, known)
	closed := g.discard()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // the check was stopped
	}
	warnDescriptors(log, &c, scarce.DescriptorLimit())
	return g.outlooks, errors.Join(c.Refuse(append(known, faults...)), closed)
}
