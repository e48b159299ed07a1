package sim

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Bucket bounds of vLLM V1 (vllm/v1/metrics/loggers.py), in seconds or tokens.
var (
	ttftBounds      = []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	itlBounds       = []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	latencyBounds   = []float64{.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
	iterationBounds = []float64{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}
)

// Finish reasons of vLLM.
const (
	reasonStop   = "stop"
	reasonLength = "length"
	reasonAbort  = "abort"
	reasonError  = "error"
)

// page is vLLM's /metrics page with its names, labels and bucket bounds.
type page struct {
	registry *prometheus.Registry

	queries, hits           prometheus.Counter
	promptTokens, generated prometheus.Counter
	finished                map[string]prometheus.Counter

	iteration, ttft, itl prometheus.Histogram
	whole                []func(x *exchange) // each observes a figure of a request whose answer is complete
}

func newPage(o Options, load func() load) *page {
	r := prometheus.NewRegistry()
	with := promauto.With(prometheus.WrapRegistererWith(prometheus.Labels{"model_name": o.Model, "engine": "0"}, r))
	counter := func(name, help string) prometheus.Counter {
		return with.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	histogram := func(name, help string, bounds []float64) prometheus.Histogram {
		return with.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: bounds})
	}
	gauge := func(name, help string, value func() float64) {
		with.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}

	gauge("vllm:num_requests_running", "Requests in prefill or decode.", func() float64 { return float64(load().running) })
	gauge("vllm:num_requests_waiting", "Requests that wait for their prefill.", func() float64 { return float64(load().waiting) })
	gauge("vllm:kv_cache_usage_perc", "Share of the KV cache that running requests use, 0 to 1.", func() float64 { return load().kvUsage })
	counter("vllm:num_preemptions_total", "Preemptions; the simulated engine has none.")

	tokens := oneTwoFive(o.MaxModelLen)
	p := &page{
		registry:     r,
		queries:      counter("vllm:prefix_cache_queries_total", "Prompt tokens looked for in the prefix cache."),
		hits:         counter("vllm:prefix_cache_hits_total", "Prompt tokens found in the prefix cache."),
		promptTokens: counter("vllm:prompt_tokens_total", "Prompt tokens, cached ones included."),
		generated:    counter("vllm:generation_tokens_total", "Output tokens."),
		finished:     make(map[string]prometheus.Counter),

		iteration: histogram("vllm:iteration_tokens_total", "Tokens in an engine step.", iterationBounds),
		ttft:      histogram("vllm:time_to_first_token_seconds", "From arrival to the first token.", ttftBounds),
		itl:       histogram("vllm:inter_token_latency_seconds", "From one token to the next.", itlBounds),
	}
	whole := func(name, help string, bounds []float64, of func(x *exchange) float64) {
		h := histogram("vllm:"+name, help, bounds)
		p.whole = append(p.whole, func(x *exchange) { h.Observe(of(x)) })
	}
	// All instants are real, not planned.
	whole("request_time_per_output_token_seconds", "Mean of a request's time per output token.", itlBounds, func(x *exchange) float64 {
		if x.sent < 2 {
			return 0 // as vLLM
		}
		return x.last.Sub(x.first).Seconds() / float64(x.sent-1)
	})
	whole("e2e_request_latency_seconds", "From arrival to the last token.", latencyBounds, func(x *exchange) float64 { return x.last.Sub(x.arrival).Seconds() })
	whole("request_queue_time_seconds", "From arrival to prefill.", latencyBounds, func(x *exchange) float64 { return x.seat.began.Sub(x.arrival).Seconds() })
	whole("request_inference_time_seconds", "Prefill and decode.", latencyBounds, func(x *exchange) float64 { return x.last.Sub(x.seat.began).Seconds() })
	whole("request_prefill_time_seconds", "From prefill to the first token.", latencyBounds, func(x *exchange) float64 { return x.first.Sub(x.seat.began).Seconds() })
	whole("request_decode_time_seconds", "From the first to the last token.", latencyBounds, func(x *exchange) float64 { return x.last.Sub(x.first).Seconds() })
	whole("request_prompt_tokens", "Prompt tokens of a request.", tokens, func(x *exchange) float64 { return float64(x.request.tokens) })
	whole("request_generation_tokens", "Output tokens of a request.", tokens, func(x *exchange) float64 { return float64(x.sent) })
	whole("request_params_max_tokens", "The max_tokens of a request.", tokens, func(x *exchange) float64 { return float64(x.request.max) })
	finished := with.NewCounterVec(prometheus.CounterOpts{Name: "vllm:request_success_total", Help: "Finished requests."}, []string{"finished_reason"})
	for _, reason := range []string{reasonStop, reasonLength, reasonAbort, reasonError} {
		p.finished[reason] = finished.WithLabelValues(reason)
	}

	bare := promauto.With(r)
	bare.NewGauge(prometheus.GaugeOpts{
		Name: "vllm:cache_config_info", Help: "Settings of the KV cache.",
		ConstLabels: prometheus.Labels{
			"engine": "0", "block_size": strconv.Itoa(o.BlockTokens), "num_gpu_blocks": strconv.Itoa(o.CacheTokens / o.BlockTokens),
			"enable_prefix_caching": map[bool]string{true: "True", false: "False"}[o.CacheTokens > 0],
		},
	}).Set(1)
	// The start of the engine, not of the process: readers of the page detect restarts by it.
	bare.NewGauge(prometheus.GaugeOpts{Name: "process_start_time_seconds", Help: "Start of the engine since the Unix epoch."}).
		Set(float64(time.Now().UnixNano()) / 1e9)
	return p
}

// ended counts a request whose answer is complete.
func (p *page) ended(x *exchange, reason string) {
	p.finished[reason].Inc()
	for _, observe := range p.whole {
		observe(x)
	}
}

// oneTwoFive is vLLM's series of bounds for counts: 1, 2, 5, 10, … up to the limit.
func oneTwoFive(limit int) (bounds []float64) {
	for decade := 1; ; decade *= 10 {
		for _, m := range []int{1, 2, 5} {
			if m*decade > limit {
				return bounds
			}
			bounds = append(bounds, float64(m*decade))
		}
	}
}
