// Package config reads the configuration file, the environment and the flags into option structs. It applies defaults,
// decodes and checks in three separate steps and reports every fault at once, with its line.
package config

import (
	"time"

	commoncfg "github.com/prometheus/common/config"

	"replayd/internal/measure"
)

// Config is the whole configuration; docs/reference/configuration.md is its reference. Paths are relative to the working
// directory.
type Config struct {
	Web        Web        `koanf:"web"`
	Drain      Duration   `koanf:"drain"`       // drain timeout on SIGTERM; the pod's grace period must be longer
	MaxWaiting Bytes      `koanf:"max_waiting"` // size of the due rows that wait, in all workloads; 0: no limit
	Targets    []Target   `koanf:"targets"`
	Workloads  []Workload `koanf:"workloads"`
	Records    Records    `koanf:"records"`
	State      State      `koanf:"state"`

	Comparisons []Comparison `koanf:"comparisons"`
	GPUs        []GPU        `koanf:"gpus"`

	Places *Places `koanf:"-"` // lines of the keys; nil: not from a file
}

// Web configures the HTTP server.
type Web struct {
	Listen     string `koanf:"listen"`
	ConfigFile string `koanf:"config_file"` // web configuration file of exporter-toolkit: TLS and passwords

	EnableLifecycle bool `koanf:"enable_lifecycle"` // reload, pause and resume over HTTP
	EnablePprof     bool `koanf:"enable_pprof"`
}

// Target is a server that requests go to.
type Target struct {
	Name      string         `koanf:"name"`
	URL       string         `koanf:"url"`
	API       string         `koanf:"api"`
	Stream    bool           `koanf:"stream"`
	PerChunk  bool           `koanf:"per_chunk_usage"` // the server reports usage with each chunk
	Model     string         `koanf:"model"`           // empty: the model that /v1/models lists
	HTTP      HTTP           `koanf:"http"`
	ExtraBody map[string]any `koanf:"extra_body"`
	Output    string         `koanf:"output"`
	Replica   string         `koanf:"replica_header"` // header of answers that names the replica; empty: none
	Timeouts  Timeouts       `koanf:"timeouts"`
	Idle      Duration       `koanf:"idle"`      // a connection that was idle for longer is not reused
	Tokenizer string         `koanf:"tokenizer"` // a file or a name; empty: no tokenizer
	Metrics   Metrics        `koanf:"metrics"`
}

// Metrics configures the scraping of a target's metrics page.
type Metrics struct {
	URL      string      `koanf:"url"`      // empty: derived from the target's URL
	Interval Duration    `koanf:"interval"` // 0: no scraping
	Replicas string      `koanf:"replicas"` // a DNS name; each of its addresses is an engine. Empty: one engine
	HTTP     HTTP        `koanf:"http"`
	Map      []MetricRow `koanf:"map"`
}

// MetricRow maps a metric family of an engine to replayd's vocabulary; scrape.Row has the details.
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

// GPU is a source of a target's GPU metrics. Exactly one of DCGMExporter, LibDCGM and NvidiaSMI is set.
type GPU struct {
	Target       string    `koanf:"target"`
	DCGMExporter string    `koanf:"dcgm_exporter"` // URL of its metrics page
	LibDCGM      string    `koanf:"libdcgm"`       // host:port of an nv-hostengine; in builds with the tag dcgm
	NvidiaSMI    string    `koanf:"nvidia_smi"`    // the program, or "auto"
	Profiling    bool      `koanf:"profiling"`     // libdcgm also reads the fields of DCGM's profiling module
	Interval     Duration  `koanf:"interval"`
	HTTP         HTTP      `koanf:"http"` // for dcgm_exporter
	Select       GPUSelect `koanf:"select"`
}

// GPUSelect selects the target's GPUs; the zero value selects all.
type GPUSelect struct {
	Namespace string `koanf:"namespace"`
	Pod       string `koanf:"pod"`
	Container string `koanf:"container"`
	Index     Words  `koanf:"index"`
	UUID      Words  `koanf:"uuid"`
}

// HTTP is the HTTP client configuration of prometheus/common, with its keys.
type HTTP struct{ commoncfg.HTTPClientConfig }

// Timeouts limits the stages of one request; 0 means no limit.
type Timeouts struct {
	Connect    Duration `koanf:"connect"`
	FirstToken Duration `koanf:"first_token"`
	Stall      Duration `koanf:"stall"`
	Total      Duration `koanf:"total"`
}

// Workload replays a trace, synthetic rows or rows from a dataset against a target.
type Workload struct {
	Name       string    `koanf:"name"`
	Target     string    `koanf:"target"`
	Trace      Trace     `koanf:"trace"`
	Synthetic  Synthetic `koanf:"synthetic"`
	Dataset    Dataset   `koanf:"dataset"`
	Arrival    string    `koanf:"arrival"`
	Rate       float64   `koanf:"rate"`    // requests per second, for arrivals with a rate; sessions with rate_of: sessions
	RateOf     string    `koanf:"rate_of"` // unit of rate and stages
	Burstiness float64   `koanf:"burstiness"`
	Stages     []Stage   `koanf:"stages"`
	Users      int       `koanf:"users"`
	AtOnce     int       `koanf:"sessions_at_once"`
	Within     Within    `koanf:"start_within"`
	Speed      float64   `koanf:"speed"`
	TurnDelay  TurnDelay `koanf:"turn_delay"`
	Repeat     Repeat    `koanf:"repeat"`
	Prompt     Prompt    `koanf:"prompt"`
	Warmup     Warmup    `koanf:"warmup"`
	Cancel     Cancel    `koanf:"cancel"`
	Lanes      int       `koanf:"lanes"`
	Overload   string    `koanf:"overload"`
	MaxWait    Duration  `koanf:"max_wait"` // 0: no limit
	Prebuild   Prebuild  `koanf:"prebuild"`
	Shard      Shard     `koanf:"shard"`
	SLO        SLO       `koanf:"slo"`
	Guard      Guard     `koanf:"guard"`
	Budget     Budget    `koanf:"budget"`
	Request    Request   `koanf:"request"`

	Epoch       time.Time `koanf:"-"` // run's --start; zero: set when the target first answers
	Rows        int       `koanf:"-"` // run's --requests: the plan ends after this many rows, repeating them if necessary; 0: all rows
	WarmupLanes int       `koanf:"-"` // run's --concurrency of the warm-up where the plan has due times; 0: one request at a time
	KeepLane    bool      `koanf:"-"` // in a closed loop, a conversation keeps its lane between turns, as in AIPerf
	Duration    Duration  `koanf:"-"` // run's --duration for rows without timestamps: no request is due after it; 0: no limit
}

// Trace is a trace file and the part of it to replay.
type Trace struct {
	Path        string   `koanf:"path"`
	Format      string   `koanf:"format"`
	BlockTokens Auto     `koanf:"block_tokens"`
	From        Duration `koanf:"from"`
	To          Duration `koanf:"to"` // 0: end of the trace
	MaxInput    int      `koanf:"max_input"`
	MaxOutput   int      `koanf:"max_output"`
	MaxContext  int      `koanf:"max_context"`
	OverLimit   string   `koanf:"over_limit"`
	Shared      bool     `koanf:"shared_prefix"`
	Strict      bool     `koanf:"-"`
	Rescale     Rescale  `koanf:"-"`
}

// Repeat configures when loops begin.
type Repeat struct {
	Mode   string   `koanf:"mode"`
	Every  Duration `koanf:"every"` // 0: the shortest round length that holds the trace
	Gap    Duration `koanf:"gap"`
	Align  string   `koanf:"align"`
	Offset Duration `koanf:"offset"`

	Cron     string `koanf:"cron"`     // five fields
	Timezone string `koanf:"timezone"` // time zone of cron
	Overlap  string `koanf:"overlap"`  // for cron: what happens if the previous run is still going
}

// TurnDelay changes the time from the end of a turn to the next turn of its session.
type TurnDelay struct {
	Scale float64  `koanf:"scale"`
	Max   Duration `koanf:"max"` // 0: no limit
}

// Prompt configures the generated text of rows without text.
type Prompt struct {
	Form      string `koanf:"form"`
	Words     string `koanf:"words"`
	Seed      uint64 `koanf:"seed"`
	Salt      string `koanf:"salt"`
	Calibrate bool   `koanf:"calibrate"`
	History   bool   `koanf:"history"` // later turns include the server's answers
}

// Prebuild limits the size of requests built before they are due.
type Prebuild struct {
	Bytes Bytes `koanf:"bytes"`
}

// Shard is this process's part of the trace.
type Shard struct {
	Index Auto `koanf:"index"`
	Of    int  `koanf:"of"`
}

// SLO holds the bounds that a good request keeps, and the share of eligible requests that should be good.
type SLO struct {
	Bounds    Bounds     `koanf:",remain"`
	Objective float64    `koanf:"objective"` // greater than 0 and less than 1
	Session   SessionSLO `koanf:"session"`
}

// SessionSLO holds the bound that a good session keeps, and the share of eligible sessions that should be good.
type SessionSLO struct {
	Makespan  Duration `koanf:"makespan"`  // 0: no bound
	Objective float64  `koanf:"objective"` // greater than 0 and less than 1
}

// Bounds holds the other keys of an SLO: values by quantity name, in the format of measure.ParseBound; empty or 0 means
// no bound.
type Bounds map[string]any

// BoundsOf returns the bounds of an SLO.
func BoundsOf(s measure.SLO) Bounds {
	all := Bounds{}
	for _, b := range s {
		all[b.Quantity.String()] = b.Text(b.Limit)
	}
	return all
}

// Levels returns the SLO of a checked configuration.
func (b Bounds) Levels() measure.SLO { return b.check("", &Faults{}) }

// Guard holds the limits above which no requests are sent; 0 means no limit.
type Guard struct {
	Waiting          int      `koanf:"waiting"`        // requests in the engine's queue
	KVCacheUsage     float64  `koanf:"kv_cache_usage"` // 0 to 1
	ErrorRatio       float64  `koanf:"error_ratio"`    // of the workload's requests in the last minute
	OnMissingMetrics string   `koanf:"on_missing_metrics"`
	ResumeAfter      Duration `koanf:"resume_after"`
}

// Budget limits the requests and tokens that a workload sends in any minute, hour or day; 0 means no limit.
type Budget struct {
	RequestsPerMinute   int `koanf:"requests_per_minute"`
	PromptTokensPerHour int `koanf:"prompt_tokens_per_hour"`
	OutputTokensPerDay  int `koanf:"output_tokens_per_day"`
}

// Records configures the files of finished requests.
type Records struct {
	Path     string `koanf:"path"`
	MaxBytes Bytes  `koanf:"max_bytes"` // size at which a file is rotated; 0: never
	Keep     int    `koanf:"keep"`      // number of rotated files to keep
	Gzip     bool   `koanf:"gzip"`      // compress rotated files
}

// Duration is a length of time; the file requires a unit ("500ms", "1h30m", "1d").
type Duration time.Duration

// Bytes is a size in bytes; the file allows a unit ("8MiB", "64KB").
type Bytes int64

// A Within is the first and the last of a range of shares: 25-75%. The zero value is none.
type Within [2]float64

// Words is a list of words; in the file a list, or a string with words separated by commas.
type Words []string

// Auto is a number, or -1 for "auto".
type Auto int

// Integer is an integer that is distinct from no value; the file has no fraction, and null for no value.
type Integer int64

// AutoValue is the value of "auto".
const AutoValue Auto = -1

// Default returns the defaults of a configuration.
func Default() Config {
	return Config{
		Web: Web{Listen: ":9797"}, Drain: Duration(30 * time.Second), MaxWaiting: 64 << 20,
		Records: Records{MaxBytes: 256 << 20, Keep: 4}, State: State{MaxBytes: 64 << 20},
	}
}

// DefaultTarget returns the defaults of a target.
func DefaultTarget() Target {
	return Target{
		API: "chat", Stream: true, Output: "exact", HTTP: HTTP{commoncfg.DefaultHTTPClientConfig},
		Timeouts: Timeouts{
			Connect: Duration(5 * time.Second), FirstToken: Duration(time.Minute),
			Stall: Duration(30 * time.Second), Total: Duration(10 * time.Minute),
		},
		Idle:    Duration(4 * time.Second), // uvicorn closes connections that are idle for 5 s
		Metrics: Metrics{Interval: Duration(5 * time.Second), HTTP: HTTP{commoncfg.DefaultHTTPClientConfig}},
	}
}

// DefaultGPU returns the defaults of a source of GPU metrics.
func DefaultGPU() GPU {
	return GPU{Profiling: true, Interval: Duration(5 * time.Second), HTTP: HTTP{commoncfg.DefaultHTTPClientConfig}}
}

// DefaultWorkload returns the defaults of a workload.
func DefaultWorkload() Workload {
	return Workload{
		Trace: Trace{Format: "auto", BlockTokens: AutoValue, OverLimit: "filter"}, Arrival: "exact", Burstiness: 1, Speed: 1,
		RateOf: "requests", Repeat: Repeat{Mode: "loop"}, TurnDelay: TurnDelay{Scale: 1}, Prompt: Prompt{Form: "text", Words: "main", Seed: 42, Salt: "loop", Calibrate: true},
		Lanes: 256, Overload: "wait", MaxWait: Duration(10 * time.Second), Prebuild: Prebuild{Bytes: 8 << 20}, Shard: Shard{Of: 1},
		SLO: SLO{Objective: 0.99, Session: SessionSLO{Objective: 0.9}}, Guard: Guard{OnMissingMetrics: "pause", ResumeAfter: Duration(30 * time.Second)},
	}
}
