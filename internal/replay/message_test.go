package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/config"

	"replayd/internal/limits"
	"replayd/internal/measure"
	"replayd/internal/openai"
	"replayd/internal/schedule"
	"replayd/internal/synth"
	"replayd/internal/token"
	"replayd/internal/trace"
)

// TestMessages checks the body that the server receives for each kind of row.
func TestMessages(t *testing.T) {
	words := func(text string) int { return len(strings.Fields(text)) }
	for name, c := range map[string]struct {
		row   trace.Record
		form  synth.Form
		check func(body map[string]any) bool
	}{
		"a length":  {trace.Record{InputTokens: 7}, synth.Text, func(b map[string]any) bool { return words(b["prompt"].(string)) == 7 }},
		"token ids": {trace.Record{InputTokens: 7}, synth.Tokens, func(b map[string]any) bool { return len(b["prompt"].([]any)) == 7 }},
		"its own text": {trace.Record{Text: `as "it" is`}, synth.Text, func(b map[string]any) bool {
			return b["prompt"] == `as "it" is`
		}},
		"a payload and more": {
			trace.Record{Payload: json.RawMessage(`{"prompt":"p","n":1}`), Extra: json.RawMessage(`{"top_p":0.5}`)},
			synth.Text,
			func(b map[string]any) bool {
				stream, _ := b["stream"].(bool)
				return b["prompt"] == "p" && b["top_p"] == 0.5 && stream
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{}
				b := newBench(t, source0(c.row), once, f, func(w *Workload) {
					list, err := token.List("main")
					if err != nil {
						t.Fatal(err)
					}
					if w.Prompt, err = synth.New(synth.Options{Words: list, Form: c.form}); err != nil {
						t.Fatal(err)
					}
				})
				b.run(t, t.Context(), t.Context())
				var body map[string]any
				if err := json.Unmarshal(f.bodies["w/0/0"], &body); err != nil {
					t.Fatal(err)
				}
				if !c.check(body) {
					t.Errorf("body: %s", f.bodies["w/0/0"])
				}
			})
		})
	}
}

// The measured overhead is cut from the end of the prompt. A row no longer than the overhead becomes one word.
func TestCalibration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		f.prompt.Store(6) // the probe is one word, so the template adds 5 tokens
		b := newBench(t, source(trace.Record{InputTokens: 100}, trace.Record{InputTokens: 3}), once, f, func(w *Workload) {
			w.Calibrate = true
			w.Target = NewTarget(TargetOptions{Client: w.Client, Template: true, Named: func(string) {}, Log: w.Log})
		})
		b.target = b.w.Target
		b.run(t, t.Context(), t.Context())
		for id, tokens := range map[string]int{"w/0/0": 95, "w/0/1": 1} {
			var body struct{ Prompt string }
			if err := json.Unmarshal(f.bodies[id], &body); err != nil {
				t.Fatal(err)
			}
			want(t, id, len(strings.Fields(body.Prompt)), tokens)
		}
		for _, r := range b.kept.all {
			want(t, r.ID+" overhead", r.Overhead, map[int]int{0: 5, 1: 2}[r.Row])
		}
	})
}

// The first answer after failures to connect triggers a new probe, because another server may answer.
func TestProbedAgainAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		f.prompt.Store(6)
		b := newBench(t, every(60, time.Second), once, f, func(w *Workload) {
			w.Calibrate = true
			w.Target = NewTarget(TargetOptions{Client: w.Client, Template: true, Named: func(string) {}, Log: w.Log})
		})
		b.target = b.w.Target
		time.AfterFunc(20*time.Second, func() { f.refuse.Store(true); f.cutAll() })
		time.AfterFunc(30*time.Second, func() { f.refuse.Store(false); f.prompt.Store(11) })
		b.run(t, t.Context(), t.Context())
		last := b.kept.all[len(b.kept.all)-1]
		want(t, "tokens taken off in the end", last.Overhead, 3) // of 4 tokens; the new template adds 10
		want(t, "tokens taken off at first", b.kept.all[0].Overhead, 3)
		want(t, "overhead known", int(b.target.tokens.Load()), 10)
	})
}

// A target that answers the model list but fails the token probe is probed at growing intervals, up to a minute. If the
// target was measured and requests alternate between connect failures and answers, it is probed at most every 5 s.
func TestProbesBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		b := newBench(t, every(1, time.Second), once, f, nil)
		target := NewTarget(TargetOptions{Client: b.client, Template: true, Named: func(string) {}, Log: b.w.Log})
		begin := time.Now()
		var probes []int // seconds
		f.asked = func(id string) {
			if id == "replayd/probe" {
				probes = append(probes, int(time.Since(begin).Seconds()))
			}
		}
		ctx, end := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Minute, func() { f.refuse.Store(true); f.cutAll() }) // model list requests every 5 s
		time.AfterFunc(4*time.Minute, func() { f.refuse.Store(false) })
		time.AfterFunc(5*time.Minute+time.Second/2, func() { // the next regular probe covers this outage
			target.ended(&measure.Request{Outcome: measure.ConnectFailed})
			target.ended(&measure.Request{Outcome: measure.HTTP5xx})
		})
		time.AfterFunc(320*time.Second, func() { target.ended(&measure.Request{Outcome: measure.OK}) }) // triggers a probe
		time.AfterFunc(6*time.Minute, func() { f.prompt.Store(6) })
		time.AfterFunc(7*time.Minute, func() {
			for range 98 {
				target.ended(&measure.Request{Outcome: measure.ConnectFailed})
				target.ended(&measure.Request{Outcome: measure.HTTP5xx})
				<-time.After(100 * time.Millisecond)
			}
			f.prompt.Store(0)
			target.ended(&measure.Request{Outcome: measure.ConnectFailed})
			target.ended(&measure.Request{Outcome: measure.HTTP5xx})
		})
		time.AfterFunc(8*time.Minute, end)
		if err := target.Run(ctx); err != nil {
			t.Error(err)
		}
		b.client.Close()
		f.running.Wait()
		want(t, "probes", probes, []int{0, 1, 6, 16, 36, 76, 136, 241, 301, 320, 380, 420, 425, 430, 431, 436, 446, 466})
	})
}

func TestSeveralModels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{models: `{"data":[{"id":"a"},{"id":"b"}]}`}
		b := newBench(t, every(2, time.Second), once, f, nil)
		err := b.target.Run(t.Context())
		if !errors.Is(err, openai.ErrSeveralModels) || !strings.Contains(err.Error(), "a, b") {
			t.Errorf("want an error that names them, got %v", err)
		}
		b.client.Close()
		f.running.Wait()
	})
}

// A second send that the budget forbids does not happen: the request is lost.
func TestBudgetForbidsTheRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{closeAfter: 1}
		b := newBench(t, every(4, time.Second), once, f, func(w *Workload) { w.Budget = limits.Budget{RequestsPerMinute: 4} })
		b.run(t, t.Context(), t.Context())
		// Four sends: a row, another twice, and a third, which would have been sent again.
		want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: 2, measure.NoAnswer: 1})
		want(t, "dropped", b.kept.dropped, map[measure.DropReason]int{measure.Budget: 1})
		want(t, "retries", b.counter(t, "replayd_retries_total", ""), 1.0)
		lost := b.kept.all[2]
		if !strings.Contains(string(lost.Error), "not sent again: requests_per_minute of the budget is spent") || lost.Retried {
			t.Errorf("want the budget named, got %q, retried %v", lost.Error, lost.Retried)
		}
	})
}

// A request on a kept connection that the server has closed is retried once, with a message that is built again.
func TestRetryBuildsTheMessageAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{closeAfter: 1}
		b := newBench(t, every(3, time.Second), once, f, nil)
		b.run(t, t.Context(), t.Context())
		want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: 3})
		want(t, "retries", b.counter(t, "replayd_retries_total", ""), 2.0)
		want(t, "bytes held at the end", b.d.Reserved(), 0)
	})
}

// A request whose message cannot be built is dropped as invalid. It takes no lane, and the log says why.
func TestMessageThatCannotBeBuilt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &bytes.Buffer{}
		b := newBench(t, source0(trace.Record{Messages: json.RawMessage(`[]`)}, trace.Record{InputTokens: 4}), once, &fake{}, func(w *Workload) {
			w.Log = slog.New(slog.NewTextHandler(log, nil))
		})
		b.run(t, t.Context(), t.Context())
		want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: 1})
		want(t, "dropped", b.kept.dropped, map[measure.DropReason]int{measure.Invalid: 1})
		if !strings.Contains(log.String(), "id=w/0/0") || !strings.Contains(log.String(), "messages: want api chat") {
			t.Errorf("log: %s", log)
		}
		want(t, "the target is up", b.target.Health().Up, true)
	})
}

// If the trace cannot be read to its end, the plan ends there. The rows read before are sent, and Run returns the
// error.
func TestTraceFailsHalfway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := every(4, time.Second)
		broken := errors.New("row 3 is gone")
		rows, opened := src.Rows, 0
		src.Rows = func(from time.Duration) (func() (trace.Record, error), error) {
			next, err := rows(from)
			opened++
			n := 0
			return func() (trace.Record, error) {
				if n++; n > 2 && opened > 1 { // the first pass looks for the last row
					return trace.Record{}, broken
				}
				return next()
			}, err
		}
		b := newBench(t, src, once, &fake{}, nil)
		side, end := context.WithCancel(t.Context())
		var watch sync.WaitGroup
		watch.Go(func() { _ = b.target.Run(side) })
		if err := b.Run(t.Context(), t.Context()); !errors.Is(err, broken) {
			t.Errorf("want %v, got %v", broken, err)
		}
		end()
		watch.Wait()
		b.client.Close()
		b.fake.running.Wait()
		want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: 2})
	})
}

// Long sessions in a small byte budget do not delay others: rows without a session are sent on time.
func TestSessionsInASmallBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rows []trace.Record
		for range 50 {
			rows = append(rows, trace.Record{Session: "long", InputTokens: 1000})
		}
		for i := range 20 {
			rows = append(rows, trace.Record{Offset: time.Duration(i+1) * 100 * time.Millisecond, InputTokens: 1000})
		}
		b := newBench(t, source(rows...), once, &fake{ttft: time.Second}, func(w *Workload) { w.Ahead = 40_000; w.Lanes = 40 })
		b.run(t, t.Context(), t.Context())
		want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: 70})
		for _, r := range b.kept.all {
			want(t, r.ID+" lateness", r.Lateness(), time.Duration(0))
		}
		want(t, "bytes held at the end", b.d.Reserved(), 0)
	})
}

func TestLoopsOfPhaseStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, every(3, 10*time.Second),
			schedule.Options{Repeat: schedule.Repeat{
				Mode: schedule.Loops, Align: schedule.Start,
				Every: 30 * time.Second,
			}}, &fake{}, nil)
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(lead+time.Minute+5*time.Second, func() {
			position, skew, _ := b.gauges()
			want(t, "position in the third loop", position, 5*time.Second)
			want(t, "skew", skew, time.Duration(0))
			stop()
		})
		b.run(t, ctx, t.Context())
		want(t, "requests", len(b.kept.all), 7)
		want(t, "loops completed", b.counter(t, "replayd_loops_completed_total", ""), 2.0)
		want(t, "loop", b.counter(t, "replayd_loop", ""), 2.0)
	})
}

// TestOnTheRealClock runs the default Sleeper on the real clock, over a TCP connection.
func TestOnTheRealClock(t *testing.T) {
	f := &fake{ttft: time.Millisecond}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			f.running.Go(func() { f.serve(c) })
		}
	})
	b := newBench(t, every(5, time.Millisecond), once, f, func(w *Workload) {
		exact, err := NewSleeper()
		if err != nil {
			t.Fatal(err)
		}
		w.Pacer.sleeper = exact
		w.Client, err = openai.New(openai.Target{
			Options: openai.Options{
				URL: l.Addr().String(), API: openai.Completions, Output: openai.OutputFree,
				HTTP: config.DefaultHTTPClientConfig,
			},
			Name: "t",
		})
		if err != nil {
			t.Fatal(err)
		}
		w.Target = NewTarget(TargetOptions{Client: w.Client, Named: func(string) {}, Log: w.Log})
	})
	b.client, b.target = b.w.Client, b.w.Target
	t.Cleanup(func() { _ = l.Close() })
	side, end := context.WithCancel(t.Context())
	var watch sync.WaitGroup
	watch.Go(func() { _ = b.target.Run(side) })
	if err := b.Run(t.Context(), t.Context()); err != nil {
		t.Error(err)
	}
	end()
	watch.Wait()
	got := b.kept.outcomes()
	got[measure.OK] += b.kept.dropped[measure.Missed] // of a machine that stood still
	want(t, "outcomes", got, map[measure.Outcome]int{measure.OK: 5})
}
