// Package compare_test plays pairs of runs against the simulated engine in virtual time and counts the verdicts on
// their comparison pages.
package compare_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
	"replayd/internal/result"
	"replayd/internal/sim"
)

// A load is what the runs of a pair have in common.
type load struct {
	name   string
	long   time.Duration // time in which requests are sent
	rate   float64       // requests/s of an open loop
	shape  float64       // of its gamma arrivals: 1 is Poisson, less is burstier
	spells time.Duration // > 0: the rate is 1.6 times, then 0.4 times as high, in spells of this mean length
	lanes  int           // > 0: a closed loop
	faults float64       // share of requests that are answered with 500
}

// The engine computes 400 prompt tokens/s, one prompt at a time, so its limit is 10 prompts of 40 tokens a second. A
// chunk has 16 tokens and prompts are short: that saves time and changes no queue.
const (
	promptTokens = 40
	answerTokens = 60
	capacity     = 10 // requests/s
)

func engine(l load, seed uint64, speed float64) sim.Options {
	o := sim.Defaults()
	o.Slots, o.ChunkTokens, o.TemplateTokens, o.CacheTokens = 32, 16, 0, 0
	o.PrefillRate, o.DecodeRate, o.BatchCost = capacity*promptTokens*speed, 50*speed, 0.02
	o.Faults.Error500 = l.faults
	o.Seed = seed
	return o
}

// loads returns 20 loads: open loops up to the engine's capacity, with Poisson arrivals and with bursts, traffic whose
// rate changes, closed loops, and runs that are short, long, failing and nearly idle.
func loads() (all []load) {
	const long = 2 * time.Minute
	for _, part := range []float64{0.3, 0.6, 0.8, 0.9, 0.95, 1} {
		for _, shape := range []float64{1, 0.25} {
			name := map[float64]string{1: "Poisson", 0.25: "bursts"}[shape]
			all = append(all, load{name: fmt.Sprintf("%g %% load, %s", 100*part, name), long: long, rate: part * capacity, shape: shape})
		}
	}
	return append(all,
		load{name: "60 % load in spells of 10 s", long: long, rate: 0.6 * capacity, shape: 0.5, spells: 10 * time.Second},
		load{name: "60 % load in spells of 40 s", long: long, rate: 0.6 * capacity, shape: 0.5, spells: 40 * time.Second},
		load{name: "80 % load, 2 % of requests fail", long: long, rate: 0.8 * capacity, shape: 0.5, faults: 0.02},
		load{name: "4 % load, Poisson", long: long, rate: 0.04 * capacity, shape: 1},
		load{name: "closed loop, 8 lanes", long: long, lanes: 8},
		load{name: "closed loop, 40 lanes", long: long, lanes: 40},
		load{name: "60 % load, bursts, 30 s", long: 30 * time.Second, rate: 0.6 * capacity, shape: 0.25},
		load{name: "90 % load, bursts, 10 min", long: 10 * time.Minute, rate: 0.9 * capacity, shape: 0.25},
	)
}

// play plays one run, with an engine of the given speed; 1 is the usual speed. plan is the seed of instants and
// prompts, seed that of answers and faults.
func (l load) play(t *testing.T, plan, seed uint64, speed float64) result.Run {
	run := result.Run{Name: fmt.Sprintf("run %d", seed), Settings: result.Settings{Streamed: true}}
	synctest.Test(t, func(t *testing.T) {
		e, err := sim.New(engine(l, seed, speed))
		if err != nil {
			t.Fatal(err)
		}
		handler := e.Handler()
		begin := time.Now()
		var mu sync.Mutex
		send := func(i, prompt, answer int) {
			row := request(handler, prompt, answer, fmt.Sprintf("%d/%d", seed, i))
			row.ID = fmt.Sprintf("run/0/%d", i)
			mu.Lock()
			defer mu.Unlock()
			run.Rows = append(run.Rows, row)
		}
		var all sync.WaitGroup
		if l.lanes > 0 {
			var next atomic.Int64
			for range l.lanes {
				all.Go(func() {
					for time.Since(begin) < l.long {
						i := next.Add(1)
						prompts := rand.New(rand.NewPCG(plan, 2*uint64(i)))
						answers := rand.New(rand.NewPCG(seed, 2*uint64(i)+1))
						send(int(i), length(prompts, promptTokens), length(answers, answerTokens))
					}
				})
			}
			all.Wait()
			return
		}
		draws, answers := rand.New(rand.NewPCG(plan, 1)), rand.New(rand.NewPCG(seed, 0))
		for i, at := range l.instants(draws) {
			prompt, answer := length(draws, promptTokens), length(answers, answerTokens)
			if wait := time.Until(begin.Add(at)); wait > 0 {
				<-time.After(wait)
			}
			all.Go(func() { send(i, prompt, answer) })
		}
		all.Wait()
	})
	return run
}

// instants returns the instants of an open loop.
func (l load) instants(draws *rand.Rand) (all []time.Duration) {
	at, busy, until := 0.0, draws.IntN(2) == 0, 0.0
	for {
		rate := l.rate
		if l.spells > 0 {
			for at >= until {
				busy, until = !busy, until+draws.ExpFloat64()*l.spells.Seconds()
			}
			rate *= map[bool]float64{true: 1.6, false: 0.4}[busy]
		}
		at += gamma(draws, l.shape) / l.shape / rate
		if at >= l.long.Seconds() {
			return all
		}
		all = append(all, time.Duration(at*1e9))
	}
}

// gamma draws a value of mean shape: Marsaglia and Tsang, ACM Transactions on Mathematical Software 26 (2000).
func gamma(draws *rand.Rand, shape float64) float64 {
	if shape < 1 {
		return gamma(draws, shape+1) * math.Pow(draws.Float64(), 1/shape)
	}
	d := shape - 1.0/3
	for {
		x := draws.NormFloat64()
		v := 1 + x/math.Sqrt(9*d)
		if v <= 0 {
			continue
		}
		v *= v * v
		if math.Log(1-draws.Float64()) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v
		}
	}
}

// length draws a number of tokens with the given mean, lognormal with σ = 0.6.
func length(draws *rand.Rand, mean float64) int {
	const sigma = 0.6
	return max(2, int(math.Round(mean*math.Exp(sigma*draws.NormFloat64()-sigma*sigma/2))))
}

// request sends one request to the completions API and returns its row.
func request(h http.Handler, prompt, answer int, id string) result.Row {
	body := `{"stream":true,"ignore_eos":true,"max_tokens":` + strconv.Itoa(answer) + `,"prompt":"` + strings.Repeat("a ", prompt) + `"}`
	r := httptest.NewRequest(http.MethodPost, "/v1/completions", strings.NewReader(body))
	r.Header.Set("X-Request-Id", id)
	w := &watch{header: http.Header{}}
	start := time.Now()
	h.ServeHTTP(w, r)
	nan := math.NaN()
	row := result.Row{
		Phase: measure.Profiling, Outcome: measure.OK, Status: w.status, Due: start.UnixNano(), Start: start.UnixNano(), End: time.Now().UnixNano(),
		Input: prompt, Prompt: measure.Length{Asked: prompt}, TTFT: nan, Second: nan, Latency: nan, ITL: nan,
	}
	if w.status != http.StatusOK {
		row.Outcome = measure.HTTP5xx
		return row
	}
	row.First, row.End, row.Output = w.first.UnixNano(), w.last.UnixNano(), answer
	row.TTFT, row.Latency = ms(w.first.Sub(start)), ms(w.last.Sub(start))
	if w.last.After(w.first) {
		row.ITL = ms(w.last.Sub(w.first)) / float64(answer-1)
	}
	return row
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

// A watch records when the first and the last content came.
type watch struct {
	header      http.Header
	status      int
	first, last time.Time
}

func (w *watch) Header() http.Header    { return w.header }
func (w *watch) WriteHeader(status int) { w.status = status }
func (w *watch) Flush()                 {}

func (w *watch) Write(b []byte) (int, error) {
	if len(b) > 0 {
		w.last = time.Now()
		if w.first.IsZero() {
			w.first = w.last
		}
	}
	return len(b), nil
}
