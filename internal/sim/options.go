package sim

import (
	"io"
	"math"
	"slices"
	"time"

	"replayd/internal/fault"
)

// Options configure the simulated engine. Start from Defaults: a zero here means zero, not a default.
type Options struct {
	Model       string   // the name that /v1/models lists; requests must name it or no model
	Adapters    []string // LoRA adapters: more names that /v1/models lists and that requests may name
	Slots       int      // requests in prefill and decode at once, 1 to 65536: vLLM's --max-num-seqs
	MaxQueue    int      // requests that may wait for prefill; one more is answered with 503. 0: none may wait
	MaxModelLen int      // prompt and answer together, in tokens; a prompt that leaves no room for an answer is a 400

	PrefillRate float64 // prompt tokens/s; one prompt is computed at a time
	DecodeRate  float64 // output tokens/s of a single stream
	BatchCost   float64 // decode: a token takes (1 + BatchCost·(streams−1)) / DecodeRate seconds, ≥ 0
	PreemptCost float64 // decode, with h tokens held beyond CacheTokens: 1 + PreemptCost·(h/CacheTokens)² times that, ≥ 0

	TTFT time.Duration // > 0: instead of prefill at a rate, each first token comes this long after its request has a slot
	ITL  time.Duration // > 0: instead of decode at a rate, this long for each further token

	Jitter     float64 // standard deviation of the logarithm of each request's prefill and decode times, 0 to 3; their medians stay
	SlowShare  float64 // share of slow requests, 0 to 1
	SlowFactor float64 // how many times as long slow requests take, 0.001 to 1000

	StepTokens int // > 0: shared steps, with at most this many prompt and output tokens in each: vLLM's --max-num-batched-tokens

	ReasoningTokens int // of each answer of a chat, before its text; an answer that is no longer is reasoning alone

	ChunkTokens    int  // tokens in each stream chunk but the first, which has one: vLLM's --stream-interval
	Buffer         bool // answers leave some KiB at a time, as behind a proxy that buffers
	TemplateTokens int  // tokens that the chat template adds before each prompt
	CacheTokens    int  // room in the KV cache, for the prefix cache, the page's usage ratio and PreemptCost; 0: no prefix cache
	BlockTokens    int  // tokens in a block of the prefix cache, 1 to 4096

	Faults Faults
	Seed   uint64 // of faults, noise, words and lengths: the same seed and X-Request-Id give the same answer

	Log       io.Writer // a JSON line (see LogEntry) for each finished request; nil: none
	LogChunks bool      // with the time of each chunk
}

// Faults are shares of all requests, each 0 to 1, together at most 1. A request has one fault or none.
type Faults struct {
	Error500   float64 // HTTP 500
	Error429   float64 // HTTP 429
	Cut        float64 // the connection is closed in mid-answer
	Garbled    float64 // a data line (or the whole JSON answer) that is not JSON; a stream then goes on to its proper end
	Empty      float64 // a proper end and no content
	Stalled    float64 // stops in mid-answer, until the client leaves, at most 10 minutes
	ErrorEvent float64 // HTTP 200, then an error inside the stream; an unstreamed answer becomes a 500 at its end
	Abort      float64 // the engine gives up in mid-answer, as vLLM at a shutdown: finish_reason abort, usage, [DONE]
}

// Defaults returns the options of an engine about as fast as an 8-billion-parameter model on one H100.
func Defaults() Options {
	return Options{
		Model:       "sim",
		Slots:       64,
		MaxQueue:    4096,
		MaxModelLen: 131072,

		PrefillRate: 40000,
		DecodeRate:  125,
		BatchCost:   0.01,
		SlowFactor:  2,

		ChunkTokens:    1,
		TemplateTokens: 9,
		CacheTokens:    1 << 20,
		BlockTokens:    16,
	}
}

// Check returns a fault for each invalid field.
func (o Options) Check() (f fault.List) {
	f.If(o.Model == "", "Model", "want a name, got none")
	f.If(slices.Contains(o.Adapters, ""), "Adapters", "want names, got an empty one")
	f.Integer("Slots", o.Slots, 1, 65536)
	f.Integer("MaxQueue", o.MaxQueue, 0, 1<<20)
	f.Integer("MaxModelLen", o.MaxModelLen, 2, 1<<24)
	f.Between("PrefillRate", o.PrefillRate, 1e-3, 1e12)
	f.Between("DecodeRate", o.DecodeRate, 1e-3, 1e9)
	f.Between("BatchCost", o.BatchCost, 0, 1e3)
	f.Between("PreemptCost", o.PreemptCost, 0, 1e3)
	f.If(o.PreemptCost > 0 && o.CacheTokens == 0, "PreemptCost", "want CacheTokens above 0 with it, got 0")
	f.Between("TTFT", o.TTFT.Seconds(), 0, 3600)
	f.Between("ITL", o.ITL.Seconds(), 0, 3600)
	f.Between("Jitter", o.Jitter, 0, 3)
	f.Between("SlowShare", o.SlowShare, 0, 1)
	f.Between("SlowFactor", o.SlowFactor, 1e-3, 1e3)
	f.Integer("StepTokens", o.StepTokens, 0, 1<<20)
	f.If(o.StepTokens > 0 && (o.TTFT > 0 || o.ITL > 0),
		"StepTokens", "want no TTFT and no ITL with it, got %v and %v", o.TTFT, o.ITL)
	f.If(o.StepTokens > 0 && o.StepTokens < o.Slots,
		"StepTokens", "want at least the %d Slots, a token for each stream, got %d", o.Slots, o.StepTokens)
	f.Integer("ReasoningTokens", o.ReasoningTokens, 0, 1<<20)
	f.Integer("ChunkTokens", o.ChunkTokens, 1, 1024)
	f.Integer("TemplateTokens", o.TemplateTokens, 0, 1024)
	f.Integer("CacheTokens", o.CacheTokens, 0, 1<<30)
	f.Integer("BlockTokens", o.BlockTokens, 1, 4096)
	sum := 0.0
	for _, one := range o.Faults.shares() {
		f.Between("Faults."+one.field, one.share, 0, 1)
		sum += one.share
	}
	if sum > 1+1e-9 { // ten shares of 0.1 are a little more than 1
		f.Add("Faults", "want shares that sum up to at most 1, got %v", sum)
	}
	return f
}

// prefill returns the time to compute prompt tokens that are not cached.
func (o Options) prefill(tokens int) time.Duration {
	if o.TTFT > 0 {
		return o.TTFT
	}
	return seconds(float64(tokens) / o.PrefillRate)
}

// gap returns the time of one more token of a stream, for a number of streams and of tokens held in the KV cache.
func (o Options) gap(streams, held int) time.Duration {
	if o.ITL > 0 {
		return o.ITL
	}
	each := (1 + o.BatchCost*float64(streams-1)) / o.DecodeRate
	if held > o.CacheTokens && o.PreemptCost > 0 { // Check requires a cache for PreemptCost
		over := float64(held)/float64(o.CacheTokens) - 1
		each *= 1 + o.PreemptCost*over*over
	}
	return seconds(each)
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }

// A pace is the noise of one request: factors of its prefill time and of the time of each further token.
type pace struct{ prefill, decode float64 }

// pace draws the noise of a request from the seed and its id. The draws are apart from those of faults, words and
// lengths, so an answer has the same text with and without noise.
func (o *Options) pace(id string) pace {
	if o.Jitter == 0 && o.SlowShare == 0 {
		return pace{1, 1}
	}
	r := draws(^o.Seed, id)
	p := pace{math.Exp(o.Jitter * r.NormFloat64()), math.Exp(o.Jitter * r.NormFloat64())}
	if r.Float64() < o.SlowShare {
		p.prefill *= o.SlowFactor
		p.decode *= o.SlowFactor
	}
	return p
}

func scale(d time.Duration, factor float64) time.Duration {
	if factor == 1 {
		return d // exact
	}
	return seconds(d.Seconds() * factor)
}
