// Package sim simulates an inference engine: a queue, prefill, decode and a prefix cache behind the OpenAI HTTP API,
// with vLLM's /metrics page and a dcgm-exporter page whose power follows the load. It computes no model: an answer has
// a word for each token, sent at the instant at which an engine of the given speed would send it.
//
// It is a test double for any load generator. It can misbehave on demand (Faults). It logs what it received and wrote,
// by its own clock, so that a client's figures can be compared with the log.
//
// # The model
//
// A prompt has one token per word between ASCII white space, or per token id; a chat has TemplateTokens more. Only the
// texts of a chat's messages count, not tools.
//
// Requests are served in order of arrival. Prefill begins when a slot is free and no other prompt is being computed.
// The longest prefix of whole blocks in the cache is free, but at least one token is always computed, as in vLLM, and
// each token that is not cached takes 1/PrefillRate. Then the prompt's whole blocks are stored and the first token is
// sent. Each further token takes (1 + BatchCost·(n−1)) / DecodeRate, where n is the number of streams in decode when
// the token before it was ready. Prefill and decode do not slow each other, and output is not cached. With TTFT set,
// prefills do not wait for each other. TTFT counts from arrival, or from the instant at which a slot became free.
//
// A real engine with a full KV cache preempts requests and computes their tokens again later, so its throughput falls
// as load rises. With PreemptCost set, all streams share this cost: if the prompts and answers in decode hold x times
// CacheTokens and x is above 1, a token takes 1 + PreemptCost·(x−1)² times as long as above. No request is refused, and
// a shared prefix counts once for each request.
//
// With StepTokens set, prefill and decode share the steps of the engine, as in vLLM with chunked prefill: each step computes
// one token of every stream in decode and, up to StepTokens, the next tokens of prompts. See steps.
//
// With Jitter or SlowShare set, each request has a noise of its own: its prefill and the gaps between its tokens take some
// times as long as above. The noise follows from the seed and the request's id. Two engines with different seeds differ by
// noise alone; with one seed and the same ids they would be slow and fast together.
//
// Each instant is planned from the planned instant before it. Go's timers fire up to 1 ms late, and so do single
// tokens, but the delays do not add up.
//
// An answer ends at its limit. Without ignore_eos it may end earlier, by a geometric draw of mean 256.
package sim

import (
	"encoding/json"
	"hash/maphash"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// An Engine is a simulated engine with one GPU. It has no goroutines of its own: it runs in the goroutines of the HTTP
// server that calls its Handler.
type Engine struct {
	options Options
	seed    maphash.Seed
	model   string // as JSON
	created int64  // of the model, Unix seconds

	batch   *Batch
	page    *page
	gpu     *gpuPage
	journal *journal // nil: no log
	number  atomic.Int64
}

// New returns an engine that has just started and is empty. The error names all invalid options.
func New(o Options) (*Engine, error) {
	b, err := NewBatch(o)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	e := &Engine{
		options: o,
		seed:    maphash.MakeSeed(),
		model:   quote(o.Model),
		created: now.Unix(),
		batch:   b,
		gpu:     newGPUPage(b.power),
	}
	b.virtual, b.power.at = false, now
	b.observe = func(tokens int) { e.page.iteration.Observe(float64(tokens)) }
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
	mux.Handle("GET /metrics", promhttp.HandlerFor(e.page.registry, promhttp.HandlerOpts{EnableOpenMetrics: true})) // as vLLM
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

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // no string fails
	}
	return string(b)
}
