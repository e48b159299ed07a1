// Package config reads the configuration file, the environment and the flags into option structs. It applies defaults,
// decodes and checks in three separate steps and reports every fault at once, with its line.
package config

import (
	"time"

	commoncfg "github.com/prometheus/common/config"

	"replayd/internal/canary"
	"replayd/internal/gpu"
	"replayd/internal/limits"
	"replayd/internal/openai"
	"replayd/internal/replay"
	"replayd/internal/scalar"
	"replayd/internal/schedule"
	"replayd/internal/scrape"
	"replayd/internal/synth"
	"replayd/internal/trace"
)

// Config is the whole configuration; docs/reference/configuration.md is its reference. Paths are relative to the
// working directory.
type Config struct {
	Web          Web           `koanf:"web"`
	Drain        time.Duration `koanf:"drain"`          // drain timeout on SIGTERM; the pod's grace period must be longer
	ExitWhenDone bool          `koanf:"exit_when_done"` // serve ends when all workloads are over
	Targets      []Target      `koanf:"targets"`
	Workloads    []Workload    `koanf:"workloads"`
	Records      Records       `koanf:"records"`
	State        State         `koanf:"state"`

	Comparisons []Comparison `koanf:"comparisons"`
	GPUs        []GPU        `koanf:"gpus"`

	Places *Places `koanf:"-"` // lines of the keys; nil: not from a file
}

// Places says where the keys of a configuration were given.
type Places struct {
	file  string
	lines map[string]int    // of the keys in the file
	named map[string]string // the flag or the variable of the environment that gave a key instead
}

// Web configures the HTTP server.
type Web struct {
	Listen     string `koanf:"listen"`
	ConfigFile string `koanf:"config_file"` // web configuration file of exporter-toolkit: TLS and passwords

	EnableLifecycle bool `koanf:"enable_lifecycle"` // reload, pause and resume over HTTP
	EnablePprof     bool `koanf:"enable_pprof"`

	MaxConnections int          `koanf:"max_connections"` // at once; one address has a quarter
	AllowedHosts   scalar.Words `koanf:"allowed_hosts"`   // names at which a browser may use it; "*": any

	// Where links in alerts lead, as people reach it: this process, the runbook, Grafana. "": not known.
	ExternalURL   string `koanf:"external_url"`
	RunbookURL    string `koanf:"runbook_url"`
	DashboardsURL string `koanf:"dashboards_url"`
}

// Target is a server that requests go to.
type Target struct {
	Name           string `koanf:"name"`
	openai.Options `koanf:",squash"`
	Tokenizer      string  `koanf:"tokenizer"` // a file or a name; empty: no tokenizer
	Metrics        Metrics `koanf:"metrics"`
	Router         Metrics `koanf:"router"` // the page of the router before the target's engines; without a URL there is none
}

// Metrics configures the scraping of the metrics page of a target's engines, or of its router.
type Metrics struct {
	URL      string        `koanf:"url"`      // empty: the engine's is derived from the target's URL
	Interval time.Duration `koanf:"interval"` // 0: no scraping
	Replicas string        `koanf:"replicas"` // a DNS name; each of its addresses is an engine. Empty: one engine
	HTTP     HTTP          `koanf:"http"`
	Map      []scrape.Row  `koanf:"map"`
}

// GPU is a source of a target's GPU metrics. Exactly one of DCGMExporter, LibDCGM and NvidiaSMI is set.
type GPU struct {
	Target       string        `koanf:"target"`
	DCGMExporter string        `koanf:"dcgm_exporter"` // URL of its metrics page
	LibDCGM      string        `koanf:"libdcgm"`       // host:port of an nv-hostengine; in builds with the tag dcgm
	NvidiaSMI    string        `koanf:"nvidia_smi"`    // the program, or "auto"
	Interval     time.Duration `koanf:"interval"`
	HTTP         HTTP          `koanf:"http"` // for dcgm_exporter
	Select       gpu.Select    `koanf:"select"`
}

// HTTP is the HTTP client configuration of prometheus/common, with its keys.
type HTTP = commoncfg.HTTPClientConfig

// Workload replays a trace, synthetic rows or rows from a dataset against a target.
type Workload struct {
	Name             string    `koanf:"name"`
	Target           string    `koanf:"target"`
	Trace            Trace     `koanf:"trace"`
	Synthetic        Synthetic `koanf:"synthetic"`
	Dataset          Dataset   `koanf:"dataset"`
	schedule.Pattern `koanf:",squash"`
	TurnDelay        schedule.TurnDelay `koanf:"turn_delay"`
	Repeat           schedule.Repeat    `koanf:"repeat"`
	Prompt           Prompt             `koanf:"prompt"`
	replay.Sending   `koanf:",squash"`
	Shard            schedule.Shard       `koanf:"shard"`
	SLO              SLO                  `koanf:"slo"`
	Guard            limits.Guard         `koanf:"guard"`
	Budget           limits.Budget        `koanf:"budget"`
	Request          replay.RequestFields `koanf:"request"`

	// Flags of run set these.
	Epoch       time.Time     `koanf:"-"` // --start; zero: set when the target first answers
	Rows        int           `koanf:"-"` // --requests: the plan ends after this many rows; 0: all rows
	WarmupLanes int           `koanf:"-"` // --concurrency of the warm-up where the plan has due times; 0: 1
	KeepLane    bool          `koanf:"-"` // in a closed loop, a conversation keeps its lane between turns, as in AIPerf
	Duration    time.Duration `koanf:"-"` // --duration for rows without timestamps: nothing is due after it; 0: no limit
}

// Trace is a trace file and the part of it to replay.
type Trace struct {
	Path                string        `koanf:"path"`
	Format              string        `koanf:"format"`
	Columns             trace.Columns `koanf:"columns"`
	BlockTokens         scalar.Auto   `koanf:"block_tokens"`
	From                time.Duration `koanf:"from"`
	To                  time.Duration `koanf:"to"` // 0: end of the trace
	replay.LengthLimits `koanf:",squash"`
	Shared              bool                  `koanf:"shared_prefix"`
	Deltas              bool                  `koanf:"deltas"`  // rows of a session have only what is new in each turn
	RowHeaders          scalar.Words          `koanf:"headers"` // that rows may set
	FromFirst           bool                  `koanf:"-"`       // as AIPerf: the first row is due at once
	Strict              bool                  `koanf:"-"`
	Rescale             *synth.RescaleOptions `koanf:"-"` // run's --synthesis-* flags, which change the trace before the replay; nil: no change
}

// Prompt configures the generated text of rows without text.
type Prompt struct {
	Form      synth.Form `koanf:"form"`
	Words     string     `koanf:"words"`
	Seed      uint64     `koanf:"seed"`
	Salt      synth.Salt `koanf:"salt"`
	Calibrate bool       `koanf:"calibrate"`
	History   bool       `koanf:"history"` // later turns include the server's answers
	Output    int        `koanf:"-"`       // run's --osl beside a file: tokens of an answer where a row does not say
}

// Synthetic configures rows with random lengths. It is unused if InputTokens and Lengths are both empty.
type Synthetic struct {
	InputTokens  float64       `koanf:"input_tokens"`
	OutputTokens float64       `koanf:"output_tokens"` // mean; 0: requests have no output limit
	Lengths      string        `koanf:"lengths"`       // length pairs with their shares, instead of the fields above
	SystemTokens int           `koanf:"system_tokens"`
	Turns        float64       `koanf:"turns"`      // mean turns of a conversation
	TurnDelay    time.Duration `koanf:"turn_delay"` // mean delay after the answer
	Requests     int           `koanf:"requests"`   // rows per loop; 0: endless

	// Standard deviations. AIPerf's flags of run set these.
	InputStddev, OutputStddev, TurnsStddev float64       `koanf:"-"`
	TurnDelayStddev                        time.Duration `koanf:"-"`
}

// Dataset configures the texts to send. If there is a trace too, the trace gives the lengths.
type Dataset struct {
	Path   string `koanf:"path"`
	Format string `koanf:"format"` // empty: no dataset
	Turns  bool   `koanf:"turns"`  // for sharegpt: send whole conversations
}

// Records configures the files of finished requests.
type Records struct {
	Path     string       `koanf:"path"`
	MaxBytes scalar.Bytes `koanf:"max_bytes"` // size at which a file is rotated; 0: never
	Keep     int          `koanf:"keep"`      // number of rotated files to keep
	Gzip     bool         `koanf:"gzip"`      // compress rotated files
}

// Comparison sends the rows of a workload to a second target as well, at the same instants, and says whether that one
// is worse.
type Comparison struct {
	Name           string `koanf:"name"`
	Workload       string `koanf:"workload"`  // its target is the baseline
	Candidate      string `koanf:"candidate"` // a target
	canary.Options `koanf:",squash"`
}

// State configures the file that keeps the evidence of comparisons over a restart of replayd.
type State struct {
	Path string `koanf:"path"` // empty: nothing is kept
}

// Default returns the defaults of a configuration.
func Default() Config {
	return Config{
		Web: Web{Listen: ":9797", MaxConnections: 512}, Drain: 30 * time.Second,
		Records: Records{MaxBytes: 256 << 20, Keep: 4},
	}
}

// DefaultTarget returns the defaults of a target.
func DefaultTarget() Target {
	return Target{
		Options: openai.Options{
			API: openai.Chat, Stream: true, Output: openai.OutputExact, HTTP: commoncfg.DefaultHTTPClientConfig,
			Idle: openai.DefaultIdle, Retry: openai.RetryStale,
			Connections: openai.ConnectionsKept, ConnectAhead: 250 * time.Millisecond,
			Timeouts: openai.Timeouts{Connect: 5 * time.Second, FirstToken: time.Minute, Stall: 30 * time.Second, Total: 10 * time.Minute},
		},
		Metrics: defaultMetrics(), Router: defaultMetrics(),
	}
}

func defaultMetrics() Metrics {
	return Metrics{Interval: 5 * time.Second, HTTP: commoncfg.DefaultHTTPClientConfig}
}

// DefaultGPU returns the defaults of a source of GPU metrics.
func DefaultGPU() GPU {
	return GPU{Interval: 5 * time.Second, HTTP: commoncfg.DefaultHTTPClientConfig}
}

// DefaultWorkload returns the defaults of a workload.
func DefaultWorkload() Workload {
	return Workload{
		Trace: Trace{Format: "auto", BlockTokens: scalar.AutoValue, LengthLimits: replay.LengthLimits{OverLimit: replay.Filter}},
		Pattern: schedule.Pattern{
			Arrival: schedule.Exact, RateOf: schedule.Requests, Burstiness: 1,
			Speed: 1,
		}, TurnDelay: schedule.TurnDelay{Scale: 1},
		Repeat: schedule.Repeat{Mode: schedule.Loops}, Prompt: Prompt{
			Form: "text", Words: "main", Seed: 42,
			Salt: synth.SaltLoop, Calibrate: true,
		},
		Sending: replay.Sending{Lanes: 256, Overload: replay.Wait, MaxWait: 10 * time.Second},
		Shard:   schedule.Shard{Of: 1}, SLO: SLO{Objective: 0.99},
		Guard: limits.Guard{OnMissingMetrics: limits.BlindPause, ResumeAfter: 30 * time.Second},
	}
}

// DefaultComparison returns the defaults of a comparison.
func DefaultComparison() Comparison { return Comparison{Options: canary.Defaults()} }
