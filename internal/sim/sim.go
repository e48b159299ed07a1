// Package sim simulates an inference engine: a queue, prefill, decode and a prefix cache behind the OpenAI HTTP API, with
// vLLM's /metrics page and a dcgm-exporter page whose power follows the load. It computes no model: an answer is as many
// one-token words as it has tokens, at the instants at which an engine of the given speed would have sent them.
//
// It is a test double for any load generator, so it can misbehave on demand (Faults) and keeps a log of what it
// received and wrote, by its own clock, against which a client's figures can be held.
//
// # The model
//
// A prompt has as many tokens as words between ASCII white space, or as token ids; a chat has TemplateTokens more. Of a
// chat only the texts of its messages count, not tools.
//
// Requests are served in order of arrival. When a slot is free and no other prompt is being computed, prefill begins: the
// longest prefix of whole blocks in the cache is free, but at least one token is always computed, as in vLLM, and each
// token that is not cached takes 1/PrefillRate. Then the prompt's whole blocks are stored and the first token goes out.
// Each further token takes (1 + BatchCost·(n−1)) / DecodeRate, n being the number of streams in decode when the token
// before it was ready. Prefill and decode do not slow each other, and output is not cached. With TTFT set, prefills do not
// wait for each other either; it counts from arrival, or from when a slot was freed.
//
// A real engine whose KV cache is full preempts requests and computes their tokens again later, so that its throughput falls
// while more come in. With PreemptCost set, all streams bear that together: where the prompts and answers in decode hold more
// tokens than CacheTokens, x times as many, a token takes 1 + PreemptCost·(x−1)² times as long as above. They are not refused,
// and what they share is held once for each.
//
// An instant is planned from the one planned before it. Go's timers fire up to 1 ms late, so single tokens are, but
// nothing adds up.
//
// An answer ends at its limit; without ignore_eos it may end earlier, by a geometric draw of mean 256.
package sim

import (
	"encoding/json"
	"hash/maphash"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// An Engine is a simulated engine with one GPU. It has no goroutines of its own: all happens in those of the HTTP server
// that calls its Handler, and ends with them.
type Engine struct {
	options Options
	seed    maphash.Seed
	model   string // as JSON
	created int64  // of the model, Unix seconds

	batch   *batch
	cache   *cache
	page    *page
	gpu     *gpuPage
	journal *journal // nil: no log
	number  atomic.Int64

	mu     sync.Mutex
	totals Totals
}

// Totals count finished requests since the start.
type Totals struct {
	Requests     int
	Outcomes     map[string]int // by the outcomes of the log
	PromptTokens int            // of requests whose prefill ended
	CachedTokens int            // of them found in the prefix cache
	OutputTokens int
	LogFailures  int // log lines that could not be written
}

// New makes an engine that has just started and is empty. The error names all options that are wrong.
func New(o Options) (*Engine, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	now := time.Now()
	p := &power{slots: o.Slots, at: now}
	e := &Engine{
		options: o,
		seed:    maphash.MakeSeed(),
		model:   quote(o.Model),
		created: now.Unix(),
		cache:   newCache(o.CacheTokens / o.BlockTokens),
		gpu:     newGPUPage(p),
		totals:  Totals{Outcomes: make(map[string]int)},
	}
	e.batch = &batch{options: o, power: p, observe: func(tokens int) { e.page.iteration.Observe(float64(tokens)) }}
	e.page = newPage(o, e.batch.load)
	if o.Log != nil {
		e.journal = &journal{out: o.Log}
	}
	return e, nil
}

// Handler serves the API, /health (also as /-/healthy, for `replayd health` in a container without a shell), vLLM's /metrics,
// and a dcgm-exporter's page at /dcgm/metrics.
func (e *Engine) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", e.serve(chat))
	mux.HandleFunc("POST /v1/completions", e.serve(completions))
	mux.HandleFunc("GET /v1/models", e.models)
	mux.Handle("GET /{$}", e.landing())
	healthy := func(http.ResponseWriter, *http.Request) {}
	mux.HandleFunc("GET /health", healthy)
	mux.HandleFunc("GET /-/healthy", healthy)
	mux.Handle("GET /metrics", e.page.handler())
	mux.Handle("GET /dcgm/metrics", e.gpu.handler())
	return mux
}

// Server returns an HTTP server for the engine that closes idle connections after 5 s, as uvicorn under vLLM does. It has
// no ReadTimeout or WriteTimeout: those would end long streams, and the handler has limits of its own.
func (e *Engine) Server() *http.Server {
	return &http.Server{
		Handler:           e.Handler(),
		IdleTimeout:       5 * time.Second,
		ReadHeaderTimeout: 10 * time.Second,
		MaxHeaderBytes:    64 << 10,
	}
}

// Totals returns the counts as they are now.
func (e *Engine) Totals() Totals {
	e.mu.Lock()
	t := e.totals
	t.Outcomes = maps.Clone(t.Outcomes)
	e.mu.Unlock()
	if e.journal != nil {
		e.journal.mu.Lock()
		t.LogFailures = e.journal.failed
		e.journal.mu.Unlock()
	}
	return t
}

func (e *Engine) models(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	model := func(id, parent, length string) string {
		return `{"id":` + id + `,"object":"model","created":` + strconv.FormatInt(e.created, 10) +
			`,"owned_by":"replayd sim","root":` + id + `,"parent":` + parent + `,"max_model_len":` + length + `}`
	}
	list := `{"object":"list","data":[` + model(e.model, "null", strconv.Itoa(e.options.MaxModelLen))
	for _, name := range e.options.Adapters {
		list += "," + model(quote(name), e.model, "null")
	}
	_, _ = w.Write([]byte(list + `]}`))
}

// quote makes a JSON string.
func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // no string fails
	}
	return string(b)
}
