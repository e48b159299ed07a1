// Package config reads the one configuration file, the environment and the flags into option structs. Decoding,
// defaults and checks are three steps; every fault is reported at once, with the line it stands on.
package config

import (
	"time"

	commoncfg "github.com/prometheus/common/config"

	"replayd/internal/measure"
)

// Config is the whole configuration; docs/configuration.md is its reference. Paths in it are relative to the
// working directory.
type Config struct {
	Web        Web        `koanf:"web"`
	Drain      Duration   `koanf:"drain"`       // on SIGTERM; a pod's grace period must be longer
	MaxWaiting Bytes      `koanf:"max_waiting"` // of rows that have come due and wait, in all workloads; 0: without limit
	Targets    []Target   `koanf:"targets"`
	Workloads  []Workload `koanf:"workloads"`
	GPUs       []GPU      `koanf:"gpus"`
	Records    Records    `koanf:"records"`

	Places *Places `koanf:"-"` // where the keys stand; nil: not in a file
}

// Web is the HTTP side.
type Web struct {
	Listen     string `koanf:"listen"`
	ConfigFile string `koanf:"config_file"` // exporter-toolkit's: TLS and passwords

	EnableLifecycle bool `koanf:"enable_lifecycle"` // reload, pause and resume by HTTP
	EnablePprof     bool `koanf:"enable_pprof"`
}

// Target is a server that requests go to.
type Target struct {
	Name      string         `koanf:"name"`
	URL       string         `koanf:"url"`
	API       string         `koanf:"api"`
	Stream    bool           `koanf:"stream"`
	Model     string         `koanf:"model"` // empty: the one that /v1/models lists
	HTTP      HTTP           `koanf:"http"`
	ExtraBody map[string]any `koanf:"extra_body"`
	Output    string         `koanf:"output"`
	Timeouts  Timeouts       `koanf:"timeouts"`
	Idle      Duration       `koanf:"idle"`      // a kept connection older than this is not used again
	Tokenizer string         `koanf:"tokenizer"` // a file, or a name; empty: none is needed
	Metrics   Metrics        `koanf:"metrics"`
}

// Metrics says how a target's own metrics page is scraped.
type Metrics struct {
	URL      string      `koanf:"url"`      // empty: found from the target's
	Interval Duration    `koanf:"interval"` // 0: it is not scraped
	Replicas string      `koanf:"replicas"` // a DNS name each of whose addresses is an engine; empty: one engine
	HTTP     HTTP        `koanf:"http"`
	Map      []MetricRow `koanf:"map"`
}

// MetricRow says what a family of an engine's page is in replayd's vocabulary: scrape.Row has the details.
type MetricRow struct {
	Family string  `koanf:"family"`
	As     string  `koanf:"as"` // requests_waiting, ttft_seconds and so on
	Engine string  `koanf:"engine"`
	Type   string  `koanf:"type"`
	Scale  float64 `koanf:"scale"`
	Take   string  `koanf:"take"`
	Select string  `koanf:"select"`
	Prefer string  `koanf:"prefer"`
	Merge  string  `koanf:"merge"`
	Rank   string  `koanf:"rank"`
	Less   string  `koanf:"less"`
	Plus   string  `koanf:"plus"`
}

// GPU says where the figures of a target's GPUs are read; one of the three sources is named.
type GPU struct {
	Target       string    `koanf:"target"`
	DCGMExporter string    `koanf:"dcgm_exporter"` // the address of its page
	LibDCGM      string    `koanf:"libdcgm"`       // host:port of an nv-hostengine; in builds with the tag dcgm
	NvidiaSMI    string    `koanf:"nvidia_smi"`    // the program, or "auto"
	Profiling    bool      `koanf:"profiling"`     // libdcgm reads the fields of DCGM's profiling module too
	Interval     Duration  `koanf:"interval"`
	HTTP         HTTP      `koanf:"http"` // of dcgm_exporter
	Select       GPUSelect `koanf:"select"`
}

// GPUSelect are the GPUs that are the target's; where nothing is named all are.
type GPUSelect struct {
	Namespace string `koanf:"namespace"`
	Pod       string `koanf:"pod"`
	Container string `koanf:"container"`
	Index     Words  `koanf:"index"`
	UUID      Words  `koanf:"uuid"`
}

// HTTP is prometheus/common's HTTP client configuration, as the file spells it.
type HTTP struct{ commoncfg.HTTPClientConfig }

// Timeouts bound one request; 0 is no limit.
type Timeouts struct {
	Connect    Duration `koanf:"connect"`
	FirstToken Duration `koanf:"first_token"`
	Stall      Duration `koanf:"stall"`
	Total      Duration `koanf:"total"`
}

// Workload is a trace, or rows that are made up or drawn from a dataset, that is replayed against a target.
type Workload struct {
	Name       string    `koanf:"name"`
	Target     string    `koanf:"target"`
	Trace      Trace     `koanf:"trace"`
	Synthetic  Synthetic `koanf:"synthetic"`
	Dataset    Dataset   `koanf:"dataset"`
	Arrival    string    `koanf:"arrival"`
	Rate       float64   `koanf:"rate"` // requests per second, for the arrivals that have one
	Burstiness float64   `koanf:"burstiness"`
	Stages     []Stage   `koanf:"stages"`
	Users      int       `koanf:"users"`
	Speed      float64   `koanf:"speed"`
	Repeat     Repeat    `koanf:"repeat"`
	Prompt     Prompt    `koanf:"prompt"`
	Warmup     Warmup    `koanf:"warmup"`
	Cancel     Cancel    `koanf:"cancel"`
	Lanes      int       `koanf:"lanes"`
	Overload   string    `koanf:"overload"`
	MaxWait    Duration  `koanf:"max_wait"` // 0: without limit
	Prebuild   Prebuild  `koanf:"prebuild"`
	Shard      Shard     `koanf:"shard"`
	SLO        SLO       `koanf:"slo"`
	Guard      Guard     `koanf:"guard"`
	Budget     Budget    `koanf:"budget"`
	Request    Request   `koanf:"request"`

	Epoch    time.Time `koanf:"-"` // run's --start; zero: set when the target answers
	Rows     int       `koanf:"-"` // run's --requests: rows after which the plan is over, coming round again if need be; 0: all
	KeepLane bool      `koanf:"-"` // in a closed loop a conversation keeps its lane between turns, as AIPerf has it
	Duration Duration  `koanf:"-"` // run's --duration where rows have no instants of their own: nothing is due after it; 0: none
}

// Trace is a trace file and the part of it that is replayed.
type Trace struct {
	Path        string   `koanf:"path"`
	Format      string   `koanf:"format"`
	BlockTokens Auto     `koanf:"block_tokens"`
	From        Duration `koanf:"from"`
	To          Duration `koanf:"to"` // 0: the end
	MaxInput    int      `koanf:"max_input"`
	MaxOutput   int      `koanf:"max_output"`
	MaxContext  int      `koanf:"max_context"`
	OverLimit   string   `koanf:"over_limit"`
	Strict      bool     `koanf:"-"`
	Rescale     Rescale  `koanf:"-"`
}

// Repeat says when loops begin.
type Repeat struct {
	Mode   string   `koanf:"mode"`
	Every  Duration `koanf:"every"` // 0: the shortest round length that holds the trace
	Gap    Duration `koanf:"gap"`
	Align  string   `koanf:"align"`
	Offset Duration `koanf:"offset"`

	Cron     string `koanf:"cron"`     // five fields
	Timezone string `koanf:"timezone"` // of cron
	Overlap  string `koanf:"overlap"`  // of cron: what happens to an activation while the run before goes on
}

// Prompt says how text is made for rows that bring none.
type Prompt struct {
	Form      string `koanf:"form"`
	Words     string `koanf:"words"`
	Seed      uint64 `koanf:"seed"`
	Salt      string `koanf:"salt"`
	Calibrate bool   `koanf:"calibrate"`
	History   bool   `koanf:"history"` // later turns hold what the server answered
}

// Prebuild bounds what is built before its instant.
type Prebuild struct {
	Bytes Bytes `koanf:"bytes"`
}

// Shard is this process' part of the trace.
type Shard struct {
	Index Auto `koanf:"index"`
	Of    int  `koanf:"of"`
}

// SLO holds what an ok request must keep to be good, and the share of the eligible requests that should be good.
type SLO struct {
	Bounds    Bounds  `koanf:",remain"`
	Objective float64 `koanf:"objective"` // above 0 and below 1
}

// Bounds are the other keys of a service level: values by the name of a quantity, as measure.ParseBound reads them; empty or 0 is
// none.
type Bounds map[string]any

// BoundsOf are those of a service level.
func BoundsOf(s measure.SLO) Bounds {
	all := Bounds{}
	for _, b := range s {
		all[b.Quantity.String()] = b.Text(b.Limit)
	}
	return all
}

// Levels is the service level of a configuration that was checked.
func (b Bounds) Levels() measure.SLO { return b.check("", &Faults{}) }

// Guard holds the limits at which requests are held back; 0 is no limit.
type Guard struct {
	Waiting          int      `koanf:"waiting"`        // requests in the engine's queue
	KVCacheUsage     float64  `koanf:"kv_cache_usage"` // 0 to 1
	ErrorRatio       float64  `koanf:"error_ratio"`    // of the workload's own requests of the last minute
	OnMissingMetrics string   `koanf:"on_missing_metrics"`
	ResumeAfter      Duration `koanf:"resume_after"`
}

// Budget bounds what a workload may send in any minute, hour or day; 0 is no limit.
type Budget struct {
	RequestsPerMinute   int `koanf:"requests_per_minute"`
	PromptTokensPerHour int `koanf:"prompt_tokens_per_hour"`
	OutputTokensPerDay  int `koanf:"output_tokens_per_day"`
}

// Records are the files of finished requests.
type Records struct {
	Path     string `koanf:"path"`
	MaxBytes Bytes  `koanf:"max_bytes"` // a larger file is rotated; 0: never
	Keep     int    `koanf:"keep"`      // rotated files that stay
	Gzip     bool   `koanf:"gzip"`      // rotated files are compressed
}

// Duration is a length of time; in the file it has a unit ("500ms", "1h30m", "1d").
type Duration time.Duration

// Bytes is a size; in the file it may have a unit ("8MiB", "64KB").
type Bytes int64

// Words is a list of words; in the file one word, several with commas between them, or a list.
type Words []string

// Auto is a number, or -1 for "auto".
type Auto int

// Integer is a whole number where none is not the same as 0; in the file it has no fraction, and none is null.
type Integer int64

// AutoValue is what "auto" reads as.
const AutoValue Auto = -1

// Default is the configuration before any file.
func Default() Config {
	return Config{
		Web: Web{Listen: ":9797"}, Drain: Duration(30 * time.Second), MaxWaiting: 64 << 20,
		Records: Records{MaxBytes: 256 << 20, Keep: 4},
	}
}

// DefaultTarget is a target before its entry in the file.
func DefaultTarget() Target {
	return Target{
		API: "chat", Stream: true, Output: "exact", HTTP: HTTP{commoncfg.DefaultHTTPClientConfig},
		Timeouts: Timeouts{
			Connect: Duration(5 * time.Second), FirstToken: Duration(time.Minute),
			Stall: Duration(30 * time.Second), Total: Duration(10 * time.Minute),
		},
		Idle:    Duration(4 * time.Second), // uvicorn closes a connection that was idle for 5 s
		Metrics: Metrics{Interval: Duration(5 * time.Second), HTTP: HTTP{commoncfg.DefaultHTTPClientConfig}},
	}
}

// DefaultGPU is a source of GPU figures before its entry in the file.
func DefaultGPU() GPU {
	return GPU{Profiling: true, Interval: Duration(5 * time.Second), HTTP: HTTP{commoncfg.DefaultHTTPClientConfig}}
}

// DefaultWorkload is a workload before its entry in the file.
func DefaultWorkload() Workload {
	return Workload{
		Trace: Trace{Format: "auto", BlockTokens: AutoValue, OverLimit: "filter"}, Arrival: "exact", Burstiness: 1, Speed: 1,
		Repeat: Repeat{Mode: "loop"}, Prompt: Prompt{Form: "text", Words: "main", Seed: 42, Salt: "loop", Calibrate: true},
		Lanes: 256, Overload: "wait", MaxWait: Duration(10 * time.Second), Prebuild: Prebuild{Bytes: 8 << 20}, Shard: Shard{Of: 1},
		SLO: SLO{Objective: 0.99}, Guard: Guard{OnMissingMetrics: "pause", ResumeAfter: Duration(30 * time.Second)},
	}
}
