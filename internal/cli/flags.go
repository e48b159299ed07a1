package cli

import (
	"encoding"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"replayd/internal/config"
	"replayd/internal/fault"
	"replayd/internal/spelling"
	"replayd/internal/trace"
)

// Flags are the flags of run.
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
	tables  map[Spelling]Table
	given   *pflag.FlagSet
	typed   map[string]string // by a flag's name, the other name of it that was typed
	Notes   [][2]string       // given flags that change nothing, and what is so here
	wrong   fault.List        // faults of the given flags, found so far

	concurrency string // one or several numbers of requests in flight
	Gpus        int
	Percentiles []float64
	table       string
	artifacts   string
	metricsMap  []string
	Gaps        bool
	HelpAliases bool

	Duration time.Duration // in which requests are due; 0: no end
	Few      bool          // requests follows from the concurrency, as in AIPerf
	Wait     time.Duration // --wait-ready
	Hold     time.Duration
	Grace    time.Duration // from the end of duration until requests in flight are cut
	Cut      bool          // they are cut then

	KeepTrying bool // go on even if no connection is ever made
	SLO        string
	goodput    joined
	Least      float64
}

// NewFlags returns the flags of run with their defaults.
func NewFlags() *Flags {
	o := &Flags{
		Target: config.DefaultTarget(), Workload: config.DefaultWorkload(), Aliases: defaultAliases(),
		shard: "0/1", typed: map[string]string{},
	}
	o.Workload.Name = "run"
	o.tables = map[Spelling]Table{Own: o.own(), AIPerf: o.ofAIPerf(), TraceReplay: o.Aliases.ofTraceReplay()}
	o.tables[VLLM] = slices.Concat(o.Aliases.ofVLLM(), o.tables[TraceReplay], o.tables[AIPerf]) // the names of faults
	return o
}

// own returns run's own flags. Many of them write directly to fields of Target and Workload.
func (o *Flags) own() Table {
	t, l := &o.Target, &o.Workload
	return Table{
		{"Target", "targets[0]", []Row{
			{"url,u", "url", &t.URL, "address of the server, with or without /v1 or an endpoint (required)"},
			{"http.config.file", "http", &o.client, "Prometheus' HTTP client configuration: keys, passwords, TLS"},
			{"model,m", "model", &t.Model, "name of the model; empty: the only one that the server lists"},
			{"wait-ready", "", &o.Wait, "longest wait until the server lists its models, such as 15m; --start ends it; 0: " +
				"do not wait"},
			{"keep-trying", "", &o.KeepTrying, "go on without a connection 30 s after the first due time; else exit 1"},
			{"api", "api", (*string)(&t.API), "chat or completions; when not given, by the end of --url or --endpoint-path"},
			{"endpoint-path", "endpoint_path", &t.Path, "path and query of the endpoint, in place of /v1/chat/completions"},
			{"server", "server", &t.Server, "engine behind a gateway, such as vllm or tgi; exact lengths depend on it"},
			{"output", "output", (*string)(&t.Output), "output lengths: exact (as in the trace), max (at most that) or free"},
			{"stream", "stream", &t.Stream, "stream the answers; false: no TTFT and no ITL"},
			{"per-chunk-usage", "per_chunk_usage", &t.PerChunk, "ask for usage with each chunk, so that TPOT leaves out the " +
				"first chunk's tokens"},
			{"omit-stream-options", "omit_stream_options", &t.OmitStreamOptions, "send no stream_options, which some servers " +
				"refuse; most then send no usage"},
			{"tokenizer", "tokenizer", &t.Tokenizer, "tokenizer for texts: a file, a folder, a name in $HF_HOME, " +
				"or a model family"},
			{"session-header", "", &o.sessionHeader, "header in which each session sends an id of its own to a router, " +
				"such as X-Session-Id"},
			{"session-field", "workloads[0].request.session_field", &l.Request.SessionField, "key of the body that has the " +
				"same id, such as session_id"},
			{"echo-header", "workloads[0].request.echo_header", &l.Request.EchoHeader, "header of an answer that the later " +
				"requests of its session send back, such as x-session-token"},
			{"replica-header", "replica_header", &t.Replica, "header of an answer that names the replica; " +
				"requests are counted by it"},
			{"metrics-map", "targets[0].metrics.map[0].family targets[0].metrics.map[0].as", &o.metricsMap, "figures of an engine that replayd does not know, as FAMILY=NAME with " +
				"a name such as requests_waiting, one or several"},
			{"retry", "retry", (*string)(&t.Retry), "which requests are sent again: stale (a kept connection had just been " +
				"closed) or never"},
			{"host-header", "host_header", &t.Host, "Host of the requests, where it is not that of --url"},
			{"connections", "connections", (*string)(&t.Connections), "kept: a request takes an idle connection; each: it opens its own"},
			{"connect-ahead", "connect_ahead", &t.ConnectAhead, "how long before its due instant a request gets a connection; 0: at " +
				"the instant"},
			{"timeout-connect", "timeouts.connect", &t.Timeouts.Connect, "longest time to connect; 0: no limit"},
			{"timeout-first-token", "timeouts.first_token", &t.Timeouts.FirstToken, "longest time to the first token; 0: " +
				"no limit"},
			{"timeout-stall", "timeouts.stall", &t.Timeouts.Stall, "longest gap between two chunks; 0: no limit"},
			{"timeout-total", "timeouts.total", &t.Timeouts.Total, "longest time of a request; 0: no limit"},
		}},
		{"Load: trace", "workloads[0].trace", []Row{
			{"format", "format", &l.Trace.Format, spelling.Or(trace.Readable)},
			{
				"columns", "columns columns.timestamp columns.input columns.output columns.session columns.unit",
				Columns(&l.Trace.Columns), columnsUsage,
			},
			{"block-tokens", "block_tokens", &l.Trace.BlockTokens, "tokens in a block of hash_ids, or auto"},
			{"strict", "strict", &l.Trace.Strict, "refuse rows with more or fewer hash_ids than blocks, and other units; else warn"},
			{"from", "from", &l.Trace.From, "start of the part to replay, such as 5m"},
			{"to", "to", &l.Trace.To, "end of the part to replay, such as 10m; 0: the end"},
			{"requests", "workloads[0].rows", &l.Rows, "most requests to send; by rate or concurrency a shorter trace is " +
				"repeated; 0: all rows"},
			{"max-input", "max_input", &l.Trace.MaxInput, "longest prompt in tokens; 0: no limit"},
			{"max-output", "max_output", &l.Trace.MaxOutput, "longest output in tokens; 0: no limit"},
			{"max-context", "max_context", &l.Trace.MaxContext, "longest prompt with its output in tokens; 0: no limit"},
			{"over-limit", "over_limit", (*string)(&l.Trace.OverLimit), "longer rows: filter, clip or send"},
			{"shared-prefix", "shared_prefix", &l.Trace.Shared, "weka: the tools and system prompts of all sessions begin " +
				"with the same blocks"},
			{"deltas", "deltas", &l.Trace.Deltas, "rows of a session have only what is new in each turn: " +
				"the turns before are sent with it"},
			{"row-headers", "headers", (*[]string)(&l.Trace.RowHeaders), "headers that rows may set, such as x-tenant,x-priority; others are " +
				"not sent"},
			{"shard", "workloads[0].shard.index workloads[0].shard.of", &o.shard, "part of the trace for this process, " +
				"INDEX/OF; auto/OF: INDEX is the ordinal of the pod"},
		}},
		{"Load: schedule", "workloads[0]", []Row{
			{"speed", "speed", &l.Speed, "trace seconds per second, 0.001 to 1000"},
			{"turn-delay-scale", "turn_delay.scale", &l.TurnDelay.Scale, "factor for the trace's delays between turns and " +
				"waits after parents, 0 to 1000; 0: none"},
			{"turn-delay-max", "turn_delay.max", &l.TurnDelay.Max, "longest such delay or wait, after the factor, " +
				"such as 60s; 0: no limit"},
			{"arrival", "arrival", (*string)(&l.Arrival), "due times: exact (the trace's), spread (over the tick), constant, " +
				"poisson, gamma (at --rate), concurrency or sessions"},
			{"concurrency", "", &o.concurrency, "closed loop with so many requests in flight; " +
				"a list such as 10,50,100 is a sweep"},
			{"rate", "rate", &l.Rate, "requests per second for constant, poisson and gamma"},
			{"rate-of", "rate_of", (*string)(&l.RateOf), "unit of --rate: requests, or sessions (starts of sessions; " +
				"their rows follow as their parents allow)"},
			{"sessions-at-once", "sessions_at_once", &l.AtOnce, "closed loop with so many sessions in progress; " +
				"the next begins when one has ended"},
			{"start-within", "start_within", &l.Within, "where the first sessions of --sessions-at-once begin, " +
				"a range of their rows such as 25-75%; empty: at the first"},
			{"burstiness", "burstiness", &l.Burstiness, "shape of gamma; 1 is Poisson, smaller is burstier"},
			{"warmup", "warmup.requests", &l.Warmup.Requests, "requests to send before the measurement"},
			{"cancel", "cancel.ratio", &l.Cancel.Ratio, "share of the requests to cancel, 0 to 1"},
			{"cancel-after", "cancel.after", &l.Cancel.After, "time from the send to the cancellation, such as 500ms"},
			{"start", "epoch", &o.Start, "start of the trace: RFC 3339 (rows due before now are left out) or next:1m (the " +
				"next whole minute); empty: now"},
			{"duration", "duration", &o.Duration, "send the requests that are due within this time, such as 90s; 0: all"},
			{"lanes", "lanes", &l.Lanes, "most requests in flight"},
			{"overload", "overload", (*string)(&l.Overload), "a request without a free lane: wait (up to --max-wait) or drop"},
			{"max-wait", "max_wait", &l.MaxWait, "longest wait for a lane; 0: no limit"},
		}},
		{"Load: prompts", "workloads[0].prompt", []Row{
			{"prompt", "form", (*string)(&l.Prompt.Form), "synthesized prompts: text, or tokens (ids, completions only)"},
			{"words", "words", &l.Prompt.Words, "word list: main, or all (Mistral and DeepSeek too)"},
			{"seed", "seed", &l.Prompt.Seed, "seed of the prompts' text"},
			{"salt", "salt", (*string)(&l.Prompt.Salt), "makes prompts unique: loop (per run), session, none or fixed:NAME; " +
				"sweeps and other programs have their own default"},
			{"calibrate", "calibrate", &l.Prompt.Calibrate, "subtract the tokens of the chat template from prompts"},
			{"history", "history", &l.Prompt.History, "later turns have the server's own answers in their prompts"},
		}},
		{"Measurement", "workloads[0]", []Row{
			{"slo", "", &o.SLO, "bounds that every request must meet, such as ttft:500ms,tpot:50ms,e2e:10s; else exit 3"},
			{"goodput", "slo", &o.goodput, "the same bounds, only counted; also as AIPerf writes them: " +
				"\"time_to_first_token:370\" in ms"},
			{"slo-session", "slo.session.makespan", &l.SLO.Session.Makespan, "longest makespan of a good session, " +
				"such as 10m, only counted; 0: no bound"},
			{"min-goodput", "slo.objective", &o.Least, "least attainment (good ÷ expected requests), 0 to 1; else exit 3; " +
				"1 with --slo"},
			{"percentiles", "", &o.Percentiles, "more percentiles, such as 75,95,99.9"},
			{"gpus", "", &o.Gpus, "number of GPUs, for output per GPU; 0: as many as are scraped"},
		}},
		{"Output", "", []Row{
			{"artifact-dir", "", &o.artifacts, "folder for profile_export.jsonl and the files made from it; " +
				"older files move to before/TIME"},
			{"table", "", &o.table, "layout of the table: replayd, aiperf or tracereplay; empty: by the flags given"},
			{"export-gaps", "", &o.Gaps, "write each inter-chunk gap to profile_export.jsonl"},
			{"records", "records.path", &o.records, "file to append a JSON line per finished request to"},
			{"web.listen-address", "web.listen", &o.Listen, "address of /metrics during the run, such as :9797"},
			{"hold", "", &o.Hold, "keep /metrics for so long after the run, for a last scrape"},
			{"name", "workloads[0].name", &l.Name, "name of the workload in series, records and request IDs"},
		}},
		{"", "workloads[0]", []Row{
			{"TRACE", "trace.path", nil, ""},
			{"--tokenizer", "dataset", nil, ""},
		}},
	}
}

// Add adds the flags to c. Those of other programs are hidden in its help; --help-aliases shows them.
func (o *Flags) Add(c *cobra.Command) {
	o.given = c.Flags()
	o.tables[AIPerf].Add(c)
	o.tables[TraceReplay].Add(c)
	o.Aliases.ofVLLM().Add(c)
	c.Flags().VisitAll(func(f *pflag.Flag) { f.Hidden = true })
	o.tables[Own].Add(c)
	o.addForeign(c.Flags())
	addLogLevels(c.Flags())
	refuseSecond(c.Flags())
	c.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName { return o.firstName(c, name) })
	c.Flags().BoolVar(&o.HelpAliases, "help-aliases", false,
		"show the flags of aiperf, vllm bench serve and trace_replay.py that run takes too")
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
	names := slices.Sorted(maps.Keys(VLLMNames))
	for i, name := range names {
		names[i] = fmt.Sprintf("--%s (--%s)", name, VLLMNames[name])
	}
	_, err := fmt.Fprintf(w, "%s:\n%s\n%s:\n%s      %s\n\n%s:\n%s\n",
		"AIPerf 0.13 (aiperf profile). With any but those of the log its defaults hold: localhost:8000, chat,\nthe file's order at --concurrency 1 without --fixed-schedule, --artifact-dir artifacts; profile streams with --streaming alone",
		Taken(run, AIPerf).FlagUsages(),
		"vllm bench serve. With any of them and no TRACE its defaults hold: 127.0.0.1:8000, completions, 1000 requests of 1024 and 128 tokens at once.\nOf trace_replay.py's it has --backend to --dataset-path and the last two",
		Taken(run, VLLM).FlagUsages(), strings.Join(names, "\n      "),
		"trace_replay.py. With any of them but the last three its defaults hold: streamed, due by the trace",
		Taken(run, TraceReplay).FlagUsages())
	return err
}

// A scalarFlag is a flag whose value is a configuration value that parses itself.
type scalarFlag struct {
	value interface {
		encoding.TextMarshaler
		encoding.TextUnmarshaler
	}
	kind string
}

func (s scalarFlag) Set(text string) error { return s.value.UnmarshalText([]byte(text)) }
func (s scalarFlag) Type() string          { return s.kind }

// String returns the default that help shows; "" for a duration of 0.
func (s scalarFlag) String() string {
	text, _ := s.value.MarshalText() // never fails
	if string(text) == "0s" {
		return ""
	}
	return string(text)
}
