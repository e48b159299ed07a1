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

// Flags are run's own; the fields of config that flags write to directly are in it.
type Flags struct {
	Target   config.Target
	Workload config.Workload
	client   string // file of prometheus/common's HTTP client configuration; "": no key, no CA
	records  string
	Listen   string
	shard    string
	Start    string

	Aliases aliases
	login   login
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
	Few      bool            // requests follow from the concurrency, as AIPerf has it
	Wait     config.Duration // --wait-ready
	Hold     config.Duration

	maxWaiting config.Bytes

	KeepTrying bool // also where no connection is ever made
	SLO        string
	goodput    string
	Least      float64
}

// NewFlags are those of run with their defaults.
func NewFlags() *Flags {
	return &Flags{Target: config.DefaultTarget(), Workload: config.DefaultWorkload()}
}

// Add gives c the flags, in groups, and a help that shows them so.
func (o *Flags) Add(c *cobra.Command) {
	t, l := &o.Target, &o.Workload

	var help Headings
	f := help.Under("Target")
	f.StringVarP(&t.URL, "url", "u", "", "address of the server, such as http://127.0.0.1:8000 (required)")
	f.StringVar(&o.client, "http.config.file", "", "Prometheus' HTTP client configuration, for a server with a key, TLS or a password: authorization, tls_config and so on")
	f.StringVarP(&t.Model, "model", "m", "", "name of the model; empty: the one that the server lists")
	f.Var(Duration(&o.Wait), "wait-ready", "wait until the server lists its models, at most this long, such as 15m, and no longer than until --start; 0: do not wait")
	f.BoolVar(&o.KeepTrying, "keep-trying", false, "go on when no connection was made 30 s after the first request was due; without it the run ends with 1")
	f.StringVar(&t.API, "api", t.API, "chat or completions")
	f.StringVar(&t.Output, "output", t.Output, "length of the answers: exact (as in the trace), max (at most that) or free")
	f.BoolVar(&t.Stream, "stream", true, "stream the answers; false: one JSON answer, with e2e and tokens, and without TTFT and ITL")
	f.StringVar(&t.Tokenizer, "tokenizer", "", "what texts are counted with: a tokenizer.json, a tiktoken file, a folder, or a name in $HF_HOME; the name of a family whose word list is exact needs no file")
	f.Var(Duration(&t.Timeouts.Connect), "timeout-connect", "limit on opening a connection, such as 5s; 0: none")
	f.Var(Duration(&t.Timeouts.FirstToken), "timeout-first-token", "limit on the wait for the first token, such as 60s; 0: none")
	f.Var(Duration(&t.Timeouts.Stall), "timeout-stall", "limit on the gap between two chunks, such as 30s; 0: none")
	f.Var(Duration(&t.Timeouts.Total), "timeout-total", "limit on a whole request, such as 10m; 0: none")

	f = help.Under("Trace")
	f.StringVar(&l.Trace.Format, "format", l.Trace.Format, "format of the trace: auto, mooncake, azure, burstgpt, vllm or bailian")
	f.Var(scalar{&l.Trace.BlockTokens, "int"}, "block-tokens", "tokens in a block of hash_ids, or auto")
	f.BoolVar(&l.Trace.Strict, "strict", false, "refuse rows with more hash_ids than blocks instead of warning")
	f.Var(Duration(&l.Trace.From), "from", "start of the part of the trace to replay, such as 5m")
	f.Var(Duration(&l.Trace.To), "to", "end of the part of the trace to replay, such as 10m; 0: the end")
	f.IntVar(&o.requests, "requests", 0, "stop after so many rows; with an arrival by rate or concurrency a shorter trace comes round again. 0: all")
	f.IntVar(&l.Trace.MaxInput, "max-input", 0, "longest prompt in tokens; 0: no limit")
	f.IntVar(&l.Trace.MaxOutput, "max-output", 0, "longest answer in tokens; 0: no limit")
	f.IntVar(&l.Trace.MaxContext, "max-context", 0, "most tokens of a prompt and its answer together; 0: no limit")
	f.StringVar(&l.Trace.OverLimit, "over-limit", l.Trace.OverLimit, "rows over these limits: filter, clip or send")
	f.StringVar(&o.shard, "shard", "0/1", "INDEX/OF: this process' part of the trace; INDEX auto: the number of the pod in its StatefulSet or indexed Job")

	f = help.Under("Schedule")
	f.Float64Var(&l.Speed, "speed", l.Speed, "trace seconds per second, 0.001 to 1000")
	f.StringVar(&l.Arrival, "arrival", l.Arrival, "exact (the trace's own instants), spread (evenly over each tick), constant, poisson or gamma (by --rate), concurrency")
	f.StringVar(&o.concurrency, "concurrency", "", "so many requests in flight, the next one when one has ended; several, such as 10,50,100: a run each, and the knee")
	f.Float64Var(&l.Rate, "rate", 0, "requests per second, for the arrivals that have one")
	f.Float64Var(&l.Burstiness, "burstiness", l.Burstiness, "of gamma: 1 is poisson, less comes in bursts")
	f.IntVar(&l.Warmup.Requests, "warmup", 0, "requests to send first, that count in no figure")
	f.Float64Var(&l.Cancel.Ratio, "cancel", 0, "share of the requests to cancel, 0 to 1")
	f.Var(Duration(&l.Cancel.After), "cancel-after", "how long after it was sent a request is cancelled, such as 500ms")
	f.StringVar(&o.Start, "start", "", "instant of the trace's beginning: RFC 3339, rows due before now are left out; or next:1m for the next whole minute, after --wait-ready; empty: now")
	f.Var(Duration(&o.duration), "duration", "send only what is due within this time, such as 90s; 0: all")
	f.IntVar(&l.Lanes, "lanes", l.Lanes, "most requests in flight")
	f.StringVar(&l.Overload, "overload", l.Overload, "a request that finds no lane: wait (at most --max-wait) or drop")
	f.Var(Duration(&l.MaxWait), "max-wait", "longest wait for a lane, such as 10s; 0: without limit")
	o.maxWaiting = config.Default().MaxWaiting
	f.Var(scalar{&o.maxWaiting, "size"}, "max-waiting", "most memory of waiting requests; at the limit reading the trace pauses, so that later requests are late and none is dropped. 0: no limit")

	f = help.Under("Prompts")
	f.StringVar(&l.Prompt.Form, "prompt", l.Prompt.Form, "form of synthesized prompts: text or tokens (ids, completions only)")
	f.StringVar(&l.Prompt.Words, "words", l.Prompt.Words, "word list: main, or all (holds for Mistral and DeepSeek too)")
	f.Uint64Var(&l.Prompt.Seed, "seed", l.Prompt.Seed, "seed of the prompts' text")
	f.StringVar(&l.Prompt.Salt, "salt", l.Prompt.Salt, "loop (no run hits the cache of another), none or fixed:NAME. With another program's flags none, but for several --concurrency fixed:SEED+INDEX: each run has texts of its own, the same when the command is repeated")
	f.BoolVar(&l.Prompt.Calibrate, "calibrate", true, "take the chat template's own tokens off the prompts")

	f.BoolVar(&l.Prompt.History, "history", false, "later turns of a conversation hold what the server really answered")

	f = help.Under("Report")
	f.StringVar(&o.SLO, "slo", "", "what every request must keep, such as ttft:500ms,tpot:50ms,e2e:10s: else exit 3, or see --min-goodput")
	f.StringVar(&o.goodput, "goodput", "", "the same, only counted and reported; or as AIPerf has it: \"time_to_first_token:370 request_latency:648\", in milliseconds")
	f.Float64Var(&o.Least, "min-goodput", 0, "exit 3 unless the attainment, good ÷ expected requests, is at least this, 0 to 1; 1 with --slo")
	f.StringVar(&o.artifacts, "artifact-dir", "", "folder for profile_export.jsonl and the files made from it; what an earlier run or sweep left there moves to before/TIME. Empty: none")
	f.Float64SliceVar(&o.Percentiles, "percentiles", nil, "further percentiles of the report, such as 75,95,99.9")
	f.StringVar(&o.table, "table", "", "layout of the report: replayd, aiperf or tracereplay; empty: of the program whose flags were given")
	f.IntVar(&o.Gpus, "gpus", 0, "GPUs behind the server, for tokens per second and GPU; 0: as many as are read")
	f.BoolVar(&o.Gaps, "export-gaps", false, "put each gap between chunks into profile_export.jsonl")
	f.StringVar(&o.records, "records", "", "file to append a JSON line for each finished request to")
	f.StringVar(&o.Listen, "web.listen-address", "", "serve /metrics there meanwhile, such as :9797; empty: nowhere")
	f.Var(Duration(&o.Hold), "hold", "serve /metrics for this long after the report, for a last scrape, such as 30s; 0: not at all")
	f.StringVar(&l.Name, "name", "run", "name of the workload in series, records and request ids")
	help.Attach(c)
	o.addAliases(c)
}

// addAliases adds the flags of other programs, with a help of their own.
func (o *Flags) addAliases(c *cobra.Command) {
	o.peers = o.Aliases.sets()
	for _, who := range []Spelling{AIPerf, TraceReplay} {
		o.peers[who].VisitAll(func(f *pflag.Flag) {
			hidden := *f
			hidden.Hidden = true
			c.Flags().AddFlag(&hidden)
		})
	}
	c.Flags().SetNormalizeFunc(firstName)
	c.Flags().BoolVar(&o.HelpAliases, "help-aliases", false, "show the flags of aiperf and trace_replay.py that run takes too")
}

// ShowAliases prints the flags of other programs.
func (o *Flags) ShowAliases(w io.Writer) error {
	var err error
	for _, g := range []struct {
		who   Spelling
		about string
	}{
		{AIPerf, "AIPerf 0.5 (aiperf profile). With any of them its defaults hold: localhost:8000, chat, not streamed without --streaming,\nthe file's order at --concurrency 1 without --fixed-schedule, --artifact-dir artifacts"},
		{TraceReplay, "trace_replay.py. With any of them but the last three its defaults hold: streamed, due by the trace"},
	} {
		_, e := fmt.Fprintf(w, "%s:\n%s\n", g.about, o.peers[g.who].FlagUsages())
		err = errors.Join(err, e)
	}
	return err
}

// A scalar lets a flag write a value of the configuration, which reads itself.
type scalar struct {
	value interface {
		encoding.TextMarshaler
		encoding.TextUnmarshaler
	}
	kind string
}

// Duration lets a flag write a duration of the configuration.
func Duration(d *config.Duration) pflag.Value { return scalar{d, "duration"} }

func (s scalar) Set(text string) error { return s.value.UnmarshalText([]byte(text)) }
func (s scalar) Type() string          { return s.kind }

// String is what help shows as the default; a duration of 0 is none.
func (s scalar) String() string {
	text, _ := s.value.MarshalText() // it cannot fail
	if string(text) == "0s" {
		return ""
	}
	return string(text)
}
