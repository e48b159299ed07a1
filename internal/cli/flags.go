package cli

import (
	"encoding"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"replayd/internal/config"
)

// Flags are the flags of run. Many flags write directly to fields of Target and Workload.
type Flags struct {
	Target   config.Target
	Workload config.Workload
	client   string // file of prometheus/common's HTTP client configuration; "": no key, no CA
	records  string
	Listen   string
	shard    string
	Start    string

	sessionHeader string // --session-header

	Aliases aliases
	login   login
	Profile bool // the command was called as profile: without flags of another program, AIPerf's defaults hold
	peers   map[Spelling]*pflag.FlagSet

	concurrency string // one or several numbers of requests in flight
	Gpus        int
	Percentiles []float64
	table       string
	artifacts   string
	Gaps        bool
	HelpAliases bool

	duration config.Duration
	requests int
	Few      bool            // requests follows from the concurrency, as in AIPerf
	Wait     config.Duration // --wait-ready
	Hold     config.Duration

	maxWaiting config.Bytes

	KeepTrying bool // go on even if no connection is ever made
	SLO        string
	goodput    string
	Least      float64
}

// NewFlags returns the flags of run with their defaults.
func NewFlags() *Flags {
	return &Flags{Target: config.DefaultTarget(), Workload: config.DefaultWorkload()}
}

// Add adds the flags to c, in groups, with a help that shows the groups.
func (o *Flags) Add(c *cobra.Command) {
	t, l := &o.Target, &o.Workload

	var help Headings
	f := help.Under("Target")
	f.StringVarP(&t.URL, "url", "u", "", "address of the server; /v1 and an endpoint behind it are dropped (required)")
	f.StringVar(&o.client, "http.config.file", "", "Prometheus' HTTP client configuration: keys, passwords, TLS")
	f.StringVarP(&t.Model, "model", "m", "", "name of the model; empty: the only one that the server lists")
	f.Var(Duration(&o.Wait), "wait-ready", "longest wait until the server lists its models, such as 15m; --start ends it; 0: do not wait")
	f.BoolVar(&o.KeepTrying, "keep-trying", false, "go on without a connection 30 s after the first due time; else exit 1")
	f.StringVar(&t.API, "api", t.API, "chat or completions")
	f.StringVar(&t.Output, "output", t.Output, "output lengths: exact (as in the trace), max (at most that) or free")
	f.BoolVar(&t.Stream, "stream", true, "stream the answers; false: no TTFT and no ITL")
	f.BoolVar(&t.PerChunk, "per-chunk-usage", false, "ask for usage with each chunk, so that TPOT leaves out the first chunk's tokens")
	f.StringVar(&t.Tokenizer, "tokenizer", "", "tokenizer for texts: a file, a folder, a name in $HF_HOME, or a model family")
	f.StringVar(&o.sessionHeader, "session-header", "", "header in which each session sends an id of its own to a router, such as X-Session-Id")
	f.StringVar(&l.Request.SessionField, "session-field", "", "key of the body that has the same id, such as session_id")
	f.StringVar(&l.Request.EchoHeader, "echo-header", "", "header of an answer that the later requests of its session send back, such as x-session-token")
	f.StringVar(&t.Replica, "replica-header", "", "header of an answer that names the replica; requests are counted by it")
	f.Var(Duration(&t.Timeouts.Connect), "timeout-connect", "longest time to connect; 0: no limit")
	f.Var(Duration(&t.Timeouts.FirstToken), "timeout-first-token", "longest time to the first token; 0: no limit")
	f.Var(Duration(&t.Timeouts.Stall), "timeout-stall", "longest gap between two chunks; 0: no limit")
	f.Var(Duration(&t.Timeouts.Total), "timeout-total", "longest time of a request; 0: no limit")

	f = help.Under("Load: trace")
	f.StringVar(&l.Trace.Format, "format", l.Trace.Format, "auto, mooncake, azure, burstgpt, vllm, bailian, weka, agentic_mooncake, mooncake_delta, request_trace or sessions")
	f.Var(scalar{&l.Trace.BlockTokens, "int"}, "block-tokens", "tokens in a block of hash_ids, or auto")
	f.BoolVar(&l.Trace.Strict, "strict", false, "refuse rows with more hash_ids than blocks; else warn")
	f.Var(Duration(&l.Trace.From), "from", "start of the part to replay, such as 5m")
	f.Var(Duration(&l.Trace.To), "to", "end of the part to replay, such as 10m; 0: the end")
	f.IntVar(&o.requests, "requests", 0, "most requests to send; by rate or concurrency a shorter trace is repeated; 0: all rows")
	f.IntVar(&l.Trace.MaxInput, "max-input", 0, "longest prompt in tokens; 0: no limit")
	f.IntVar(&l.Trace.MaxOutput, "max-output", 0, "longest output in tokens; 0: no limit")
	f.IntVar(&l.Trace.MaxContext, "max-context", 0, "longest prompt with its output in tokens; 0: no limit")
	f.StringVar(&l.Trace.OverLimit, "over-limit", l.Trace.OverLimit, "longer rows: filter, clip or send")
	f.BoolVar(&l.Trace.Shared, "shared-prefix", false, "weka: the tools and system prompts of all sessions begin with the same blocks")
	f.StringVar(&o.shard, "shard", "0/1", "part of the trace for this process, INDEX/OF; auto/OF: INDEX is the ordinal of the pod")

	f = help.Under("Load: schedule")
	f.Float64Var(&l.Speed, "speed", l.Speed, "trace seconds per second, 0.001 to 1000")
	f.Float64Var(&l.TurnDelay.Scale, "turn-delay-scale", l.TurnDelay.Scale, "factor for the trace's delays between turns and waits after parents, 0 to 1000; 0: none")
	f.Var(Duration(&l.TurnDelay.Max), "turn-delay-max", "longest such delay or wait, after the factor, such as 60s; 0: no limit")
	f.StringVar(&l.Arrival, "arrival", l.Arrival, "due times: exact (the trace's), spread (over the tick), constant, poisson, gamma (at --rate), concurrency or sessions")
	f.StringVar(&o.concurrency, "concurrency", "", "closed loop with so many requests in flight; a list such as 10,50,100 is a sweep")
	f.Float64Var(&l.Rate, "rate", 0, "requests per second for constant, poisson and gamma")
	f.StringVar(&l.RateOf, "rate-of", l.RateOf, "unit of --rate: requests, or sessions (starts of sessions; their rows follow as their parents allow)")
	f.IntVar(&l.AtOnce, "sessions-at-once", 0, "closed loop with so many sessions in progress; the next begins when one has ended")
	f.Var(scalar{&l.Within, "range"}, "start-within", "where the first sessions of --sessions-at-once begin, a range of their rows such as 25-75%; empty: at the first")
	f.Float64Var(&l.Burstiness, "burstiness", l.Burstiness, "shape of gamma; 1 is Poisson, smaller is burstier")
	f.IntVar(&l.Warmup.Requests, "warmup", 0, "requests to send before the measurement")
	f.Float64Var(&l.Cancel.Ratio, "cancel", 0, "share of the requests to cancel, 0 to 1")
	f.Var(Duration(&l.Cancel.After), "cancel-after", "time from the send to the cancellation, such as 500ms")
	f.StringVar(&o.Start, "start", "", "start of the trace: RFC 3339 (rows due before now are left out) or next:1m (the next whole minute); empty: now")
	f.Var(Duration(&o.duration), "duration", "send the requests that are due within this time, such as 90s; 0: all")
	f.IntVar(&l.Lanes, "lanes", l.Lanes, "most requests in flight")
	f.StringVar(&l.Overload, "overload", l.Overload, "a request without a free lane: wait (up to --max-wait) or drop")
	f.Var(Duration(&l.MaxWait), "max-wait", "longest wait for a lane; 0: no limit")
	o.maxWaiting = config.Default().MaxWaiting
	f.Var(scalar{&o.maxWaiting, "size"}, "max-waiting", "memory of waiting requests; at the limit the trace is read later, so requests are late; 0: no limit")

	f = help.Under("Load: prompts")
	f.StringVar(&l.Prompt.Form, "prompt", l.Prompt.Form, "synthesized prompts: text, or tokens (ids, completions only)")
	f.StringVar(&l.Prompt.Words, "words", l.Prompt.Words, "word list: main, or all (Mistral and DeepSeek too)")
	f.Uint64Var(&l.Prompt.Seed, "seed", l.Prompt.Seed, "seed of the prompts' text")
	f.StringVar(&l.Prompt.Salt, "salt", l.Prompt.Salt, "makes prompts unique: loop (per run), session, none or fixed:NAME; sweeps and other programs have their own default")
	f.BoolVar(&l.Prompt.Calibrate, "calibrate", true, "subtract the tokens of the chat template from prompts")

	f.BoolVar(&l.Prompt.History, "history", false, "later turns have the server's own answers in their prompts")

	f = help.Under("Measurement")
	f.StringVar(&o.SLO, "slo", "", "bounds that every request must meet, such as ttft:500ms,tpot:50ms,e2e:10s; else exit 3")
	f.StringVar(&o.goodput, "goodput", "", "the same bounds, only counted; also as AIPerf writes them: \"time_to_first_token:370\" in ms")
	f.Var(Duration(&l.SLO.Session.Makespan), "slo-session", "longest makespan of a good session, such as 10m, only counted; 0: no bound")
	f.Float64Var(&o.Least, "min-goodput", 0, "least attainment (good ÷ expected requests), 0 to 1; else exit 3; 1 with --slo")
	f.Float64SliceVar(&o.Percentiles, "percentiles", nil, "more percentiles, such as 75,95,99.9")
	f.IntVar(&o.Gpus, "gpus", 0, "number of GPUs, for output per GPU; 0: as many as are scraped")

	f = help.Under("Output")
	f.StringVar(&o.artifacts, "artifact-dir", "", "folder for profile_export.jsonl and the files made from it; older files move to before/TIME")
	f.StringVar(&o.table, "table", "", "layout of the table: replayd, aiperf or tracereplay; empty: by the flags given")
	f.BoolVar(&o.Gaps, "export-gaps", false, "write each inter-chunk gap to profile_export.jsonl")
	f.StringVar(&o.records, "records", "", "file to append a JSON line per finished request to")
	f.StringVar(&o.Listen, "web.listen-address", "", "address of /metrics during the run, such as :9797")
	f.Var(Duration(&o.Hold), "hold", "keep /metrics for so long after the run, for a last scrape")
	f.StringVar(&l.Name, "name", "run", "name of the workload in series, records and request IDs")
	help.Attach(c)
	o.addAliases(c)
}

// addAliases adds the flags of other programs. They are hidden in run's help; --help-aliases shows them.
func (o *Flags) addAliases(c *cobra.Command) {
	o.peers = o.Aliases.sets()
	for _, who := range []Spelling{AIPerf, TraceReplay} {
		o.peers[who].VisitAll(func(f *pflag.Flag) {
			hidden := *f
			hidden.Hidden = true
			if _, no := f.Value.(refused); !no {
				hidden.Annotations = map[string][]string{group: {string(who)}}
			}
			c.Flags().AddFlag(&hidden)
		})
	}
	addLogLevels(c.Flags())
	c.Flags().SetNormalizeFunc(firstName)
	c.Flags().BoolVar(&o.HelpAliases, "help-aliases", false, "show the flags of aiperf and trace_replay.py that run takes too")
}

// Taken returns the flags of run that are another program's, in the order of definition.
func Taken(run *pflag.FlagSet, who Spelling) *pflag.FlagSet {
	taken := pflag.NewFlagSet(string(who), pflag.ContinueOnError)
	taken.SortFlags = false
	run.VisitAll(func(f *pflag.Flag) {
		if titles := f.Annotations[group]; len(titles) > 0 && titles[0] == string(who) {
			shown := *f
			shown.Hidden = false
			taken.AddFlag(&shown)
		}
	})
	return taken
}

// ShowAliases prints the flags of run that are other programs'.
func ShowAliases(w io.Writer, run *pflag.FlagSet) error {
	var err error
	for _, g := range []struct {
		who   Spelling
		about string
	}{
		{AIPerf, "AIPerf 0.13 (aiperf profile). With any but those of the log its defaults hold: localhost:8000, chat, not streamed without --streaming,\nthe file's order at --concurrency 1 without --fixed-schedule, --artifact-dir artifacts"},
		{TraceReplay, "trace_replay.py. With any of them but the last three its defaults hold: streamed, due by the trace"},
	} {
		_, e := fmt.Fprintf(w, "%s:\n%s\n", g.about, Taken(run, g.who).FlagUsages())
		err = errors.Join(err, e)
	}
	return err
}

// A scalar is a flag whose value is a configuration value that parses itself.
type scalar struct {
	value interface {
		encoding.TextMarshaler
		encoding.TextUnmarshaler
	}
	kind string
}

// Duration returns a flag value that writes to a duration of the configuration.
func Duration(d *config.Duration) pflag.Value { return scalar{d, "duration"} }

func (s scalar) Set(text string) error { return s.value.UnmarshalText([]byte(text)) }
func (s scalar) Type() string          { return s.kind }

// String returns the default that help shows; "" for a duration of 0.
func (s scalar) String() string {
	text, _ := s.value.MarshalText() // never fails
	if string(text) == "0s" {
		return ""
	}
	return string(text)
}
