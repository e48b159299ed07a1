package sim

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Each chunk comes at the instant of the formulas in the package comment, to the nanosecond.
func TestTimes(t *testing.T) {
	ms := func(values ...float64) []time.Duration {
		var ds []time.Duration
		for _, v := range values {
			ds = append(ds, time.Duration(v*1e6))
		}
		return ds
	}
	base := Defaults()
	base.PrefillRate, base.DecodeRate, base.BatchCost, base.CacheTokens = 1000, 100, 0.5, 0
	with := func(f func(o *Options)) Options {
		o := base
		f(&o)
		return o
	}
	type row struct {
		at             float64 // ms
		prompt, output int
		want           []time.Duration // since the request
	}
	for _, c := range []struct {
		name    string
		options Options
		rows    []row
	}{
		{"alone", base, []row{{0, 50, 3, ms(50, 60, 70)}}},
		// The second prompt is computed after the first, from 50 to 84. Gaps of the first stream that begin earlier are
		// those of a single stream; then there are two streams, and a token takes 10·(1 + 0.5·1) = 15 ms.
		{"serial prefill, shared decode", base, []row{
			{0, 50, 7, ms(50, 60, 70, 80, 90, 105, 120)},
			{0, 34, 4, ms(84, 99, 114, 129)},
		}},
		{"given", with(func(o *Options) { o.TTFT, o.ITL = 70*time.Millisecond, 7*time.Millisecond }), []row{
			{0, 5000, 3, ms(70, 77, 84)}, {1, 9, 2, ms(70, 77)},
		}},
		{"one slot", with(func(o *Options) { o.Slots, o.TTFT, o.ITL = 1, 70*time.Millisecond, 10*time.Millisecond }), []row{
			{0, 1, 4, ms(70, 80, 90, 100)},
			{10, 1, 2, ms(160, 170)}, // its slot is free at 100
		}},
		{"idle between", base, []row{{0, 10, 1, ms(10)}, {500, 10, 1, ms(10)}}},
		// A cache of 100 tokens. At the first token 150 tokens are held, half too many: 10·(1 + 4·0.5²) = 20 ms. At
		// the next token 151 are held: 10·(1 + 4·0.51²) = 20.404 ms.
		{"preemption", with(func(o *Options) { o.CacheTokens, o.PreemptCost = 100, 4 }), []row{
			{0, 149, 3, ms(149, 169, 189.404)},
		}},
		{"preemption, given", with(func(o *Options) { o.CacheTokens, o.PreemptCost, o.ITL = 100, 4, 7*time.Millisecond }), []row{
			{0, 149, 3, ms(149, 156, 163)},
		}},
		// Steps of at most 40 tokens. The first prompt takes two steps of 40 and 10 tokens; the rest of the second one's room, 30 tokens,
		// goes to the second prompt. Its last 4 tokens are computed beside the second token of the first stream: 10 + 4 ms. Then there
		// are two streams: 15 ms.
		{"shared steps", with(func(o *Options) { o.Slots, o.StepTokens = 8, 40 }), []row{
			{0, 50, 4, ms(80, 94, 109, 124)},
			{0, 34, 3, ms(94, 109, 124)},
		}},
		// The second prompt arrives during the second token's step, from 50 to 60, and is computed in the step after it.
		{"shared steps, join", with(func(o *Options) { o.StepTokens = 100 }), []row{
			{0, 50, 4, ms(50, 60, 90, 105)},
			{55, 20, 2, ms(35, 50)},
		}},
		{"shared steps, one slot", with(func(o *Options) { o.Slots, o.StepTokens = 1, 100 }), []row{
			{0, 50, 2, ms(50, 60)},
			{10, 20, 2, ms(70, 80)},
		}},
		{"shared steps, idle between", with(func(o *Options) { o.StepTokens = 100 }), []row{{0, 10, 1, ms(10)}, {500, 10, 2, ms(10, 20)}}},
		{"chunks", with(func(o *Options) { o.ChunkTokens = 4 }), []row{{0, 50, 8, ms(50, 90, 120)}}}, // of 1, 4 and 3 tokens
	} {
		t.Run(c.name, func(t *testing.T) {
			simulate(t, c.options, func(b bench) {
				var wg sync.WaitGroup
				for i, row := range c.rows {
					wg.Go(func() {
						// Requests of one instant would race for the first
						// place. A nanosecond between them orders them.
						pass(time.Duration(row.at*1e6) + time.Duration(i))
						r := b.post(b.Context(), pathCompletions, "", completion(text("w", row.prompt), row.output))
						for n := range r.at {
							r.at[n] = r.at[n].Round(10 * time.Nanosecond)
						}
						if !slices.Equal(r.at, row.want) {
							b.Errorf("row %d: got %v, want %v", i, r.at, row.want)
						}
						if words := len(strings.Fields(r.text)); words != row.output || r.usage.Output != row.output || r.usage.Prompt != row.prompt {
							b.Errorf("row %d: %d words, usage %+v, want %d in, %d out", i, words, r.usage, row.prompt, row.output)
						}
					})
				}
				wg.Wait()
			})
		})
	}
}

// A stream of 10,000 tokens ends at its planned instant: delays do not add up.
func TestNoDrift(t *testing.T) {
	o := Defaults()
	o.TTFT, o.ITL = time.Millisecond, 333333*time.Nanosecond
	simulate(t, o, func(b bench) {
		r := b.post(b.Context(), pathCompletions, "", completion("w", 10000))
		if want := time.Millisecond + 9999*333333*time.Nanosecond; len(r.at) != 10000 || r.at[9999] != want {
			b.Errorf("%d chunks, the last at %v, want 10000 and %v", len(r.at), r.at[len(r.at)-1], want)
		}
	})
}

func TestQueueFull(t *testing.T) {
	o := Defaults()
	o.Slots, o.MaxQueue, o.TTFT, o.ITL = 1, 1, time.Second, time.Second
	simulate(t, o, func(b bench) {
		var wg sync.WaitGroup
		status := make([]int, 3)
		for i := range status {
			wg.Go(func() {
				pass(time.Duration(i) * time.Millisecond)
				status[i] = b.post(b.Context(), pathCompletions, "", completion("w", 2)).status
			})
		}
		wg.Wait()
		if want := []int{200, 200, 503}; !slices.Equal(status, want) {
			b.Errorf("got %v, want %v", status, want)
		}
	})
}

// A client that leaves in any phase frees its slot and its tokens at that instant.
func TestAbandoned(t *testing.T) {
	o := Defaults()
	o.Slots, o.PrefillRate, o.DecodeRate, o.CacheTokens = 2, 1000, 10, 0
	for _, c := range []struct {
		name   string
		leaves time.Duration // of the second of three requests
		third  time.Duration // its first token
	}{
		// Prefills: first 0 to 100 ms, second 100 to 200; the first decodes for 10 s. The third's takes 100 ms.
		{"waiting", 50 * time.Millisecond, 200 * time.Millisecond},
		{"prefill", 150 * time.Millisecond, 250 * time.Millisecond},
		{"decode", 1111 * time.Millisecond, 1211 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			simulate(t, o, func(b bench) {
				all, stop := context.WithCancel(b.Context())
				var wg sync.WaitGroup
				wg.Go(func() { b.post(all, pathCompletions, "", completion(text("a", 100), 100)) })
				pass(1)
				ctx, cancel := context.WithTimeout(b.Context(), c.leaves-1)
				defer cancel()
				wg.Go(func() { b.post(ctx, pathCompletions, "", completion(text("b", 100), 100)) })
				pass(1)
				wg.Go(func() {
					r := b.post(all, pathCompletions, "", completion(text("c", 100), 100))
					if len(r.at) == 0 || (r.at[0]+2).Round(10) != c.third {
						b.Errorf("third: got %v, want a first token at %v", r.at, c.third)
					}
				})
				pass(2 * time.Second)
				if l := b.engine.batch.load(); l.running != 2 || l.waiting != 0 {
					b.Errorf("load: got %+v, want 2 running", l)
				}
				stop()
				synctest.Wait()
				if l := b.engine.batch.load(); l != (load{}) {
					b.Errorf("load at the end: got %+v, want none", l)
				}
				if got := b.tally.ended()[Gone]; got != 3 {
					b.Errorf("gone: got %d, want 3", got)
				}
				wg.Wait()
			})
		})
	}
}

// connect opens a connection on which the test writes the bytes itself.
func (b bench) connect(request string) net.Conn {
	b.Helper()
	c, err := b.client.Transport.(*http.Transport).DialContext(b.Context(), "pipe", "sim")
	if err != nil {
		b.Fatal(err)
	}
	if _, err := io.WriteString(c, request); err != nil {
		b.Fatal(err)
	}
	return c
}

// What a client can hold open is bounded: an idle connection, half a body, an answer that it does not read.
func TestConnectionLimits(t *testing.T) {
	answer := completion("a", 500)
	for _, c := range []struct {
		name, request string
		read          bool
		want          time.Duration // until the server closes, or has given the request up
	}{
		{"idle", "GET /health HTTP/1.1\r\nHost: sim\r\n\r\n", true, 5 * time.Second},
		{"half a body", "POST /v1/completions HTTP/1.1\r\nHost: sim\r\nContent-Length: 100\r\n\r\n{", true, bodyLimit},
		{"not read", fmt.Sprintf("POST /v1/completions HTTP/1.1\r\nHost: sim\r\nContent-Length: %d\r\n\r\n%s", len(answer), answer), false, writeLimit},
	} {
		t.Run(c.name, func(t *testing.T) {
			simulate(t, Defaults(), func(b bench) {
				start := time.Now()
				conn := b.connect(c.request)
				defer conn.Close()
				if c.read {
					_, _ = io.Copy(io.Discard, conn)
					if got := time.Since(start); got != c.want {
						b.Errorf("closed after %v, want %v", got, c.want)
					}
					return
				}
				pass(c.want - 1)
				synctest.Wait()
				if got := b.engine.batch.load().running; got != 1 {
					b.Errorf("running before the limit: got %d, want 1", got)
				}
				pass(1)
				synctest.Wait()
				if got := b.engine.batch.load().running; got != 0 {
					b.Errorf("running after the limit: got %d, want 0", got)
				}
			})
		})
	}
}

// The number of cached prompt tokens, to the token.
func TestCachedTokens(t *testing.T) {
	o := Defaults()
	o.PrefillRate, o.BlockTokens = 1000, 16
	simulate(t, o, func(b bench) {
		chatBody := func(contents ...string) string {
			var ms []string
			for _, c := range contents {
				ms = append(ms, `{"role":"user","content":"`+c+`"}`)
			}
			return `{"messages":[` + strings.Join(ms, ",") + `],"max_tokens":1,"ignore_eos":true}`
		}
		for i, c := range []struct {
			path, body             string
			wantPrompt, wantCached int
		}{
			{pathCompletions, completion(text("a", 40), 1), 40, 0},
			{pathCompletions, completion(text("a", 40), 1), 40, 32},
			{pathCompletions, completion(text("a", 32), 1), 32, 16}, // one token is always computed
			{pathCompletions, completion(text("a", 33)+" b", 1), 34, 32},
			{pathCompletions, completion("b "+text("a", 39), 1), 40, 0},
			{pathCompletions, strings.Replace(completion(text("a", 40), 1), "{", `{"cache_salt":"x",`, 1), 40, 0},
			{pathCompletions, `{"prompt":[` + strings.TrimSuffix(strings.Repeat("7,", 40), ",") + `],"max_tokens":1}`, 40, 0},
			{pathCompletions, `{"prompt":[[` + strings.TrimSuffix(strings.Repeat("7, ", 50), ", ") + `]],"max_tokens":1}`, 50, 32},
			{pathChat, chatBody(text("a", 40)), 49, 0}, // 9 tokens of template in front
			{pathChat, chatBody(text("a", 40), text("b", 40)), 89, 48},
			{pathChat, chatBody(text("a", 40), text("b", 40), text("c", 40)), 129, 80},
		} {
			r := b.post(b.Context(), c.path, "", c.body)
			if r.status != http.StatusOK || r.usage.Prompt != c.wantPrompt || r.usage.Details.Cached != c.wantCached {
				b.Errorf("%d: %d, %+v, want %d, cached %d", i, r.status, r.usage, c.wantPrompt, c.wantCached)
			}
			if r.usage.Total != r.usage.Prompt+r.usage.Output {
				b.Errorf("%d: total %+v", i, r.usage)
			}
			if want := time.Duration(c.wantPrompt-c.wantCached) * time.Millisecond; r.at[0] != want {
				b.Errorf("%d: first token at %v, want %v: only what is not cached takes time", i, r.at[0], want)
			}
		}
	})
}

func TestAnswerLengths(t *testing.T) {
	o := Defaults()
	o.TTFT, o.ITL = time.Millisecond, time.Microsecond
	o.MaxModelLen = 3000
	simulate(t, o, func(b bench) {
		ask := func(id, fields string) *reply {
			return b.post(b.Context(), pathCompletions, id, `{"prompt":"about after",`+fields+`"stream":false}`)
		}
		for _, c := range []struct {
			fields string
			want   int
		}{
			{`"ignore_eos":true,`, 16},
			{`"ignore_eos":true,"max_tokens":70,`, 70},
			{`"ignore_eos":true,"max_tokens":5000,`, 2998}, // what is left of the context
			{`"min_tokens":50,"max_tokens":50,`, 50},
		} {
			if r := ask("", c.fields); r.usage.Output != c.want || len(strings.Fields(r.text)) != c.want {
				b.Errorf("%s: %+v, want %d", c.fields, r.usage, c.want)
			}
		}
		lengths := make(map[int]bool)
		early, sum := 0, 0
		for i := range 400 {
			id := "row/" + strconv.Itoa(i)
			r := ask(id, `"max_tokens":2900,"min_tokens":3,`)
			lengths[r.usage.Output] = true
			sum += r.usage.Output
			if r.finish == "stop" {
				early++
			}
			if r.usage.Output < 3 {
				b.Errorf("%s: %d tokens, want at least 3", id, r.usage.Output)
			}
			if again := ask(id, `"max_tokens":2900,"min_tokens":3,`); i < 10 && again.text != r.text {
				b.Errorf("%s: another answer the second time", id)
			}
		}
		// A geometric draw of mean 256 has nearly the same standard
		// deviation: the mean of 400 draws is within 4·256/20 of it.
		if mean := sum / 400; mean < 256-52 || mean > 256+52 {
			b.Errorf("mean length %d, want about 256", mean)
		}
		if early < 395 || len(lengths) < 100 {
			b.Errorf("%d of 400 ended early, %d lengths: want nearly all, of many lengths", early, len(lengths))
		}
	})
}
