package replay

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
	"replayd/internal/openai"
)

// watched runs a target without a runner for the duration lasts. It returns the seconds at which the model list was
// requested.
func watched(t *testing.T, f *fake, probe bool, during func(*Target), lasts time.Duration) (asked []int) {
	t.Helper()
	b := newBench(t, every(1, time.Second), once, f, nil)
	target := NewTarget(TargetOptions{Client: b.client, Template: probe, Named: func(string) {}, Log: b.w.Log})
	begin := time.Now()
	var mu sync.Mutex
	f.asked = func(id string) {
		mu.Lock()
		defer mu.Unlock()
		if id == "" {
			asked = append(asked, int(time.Since(begin).Seconds()))
		}
	}
	ctx, end := context.WithTimeout(t.Context(), lasts)
	defer end()
	if during != nil {
		during(target)
	}
	if err := target.Run(ctx); err != nil {
		t.Error(err)
	}
	b.client.Close()
	f.cutAll()
	f.running.Wait()
	return asked
}

// reached checks after a delay that the target is reached, or that it is not.
func reached(t *testing.T, target *Target, after time.Duration, up bool) {
	t.Helper()
	time.AfterFunc(after, func() {
		if got := target.Health(); got.Reached != up {
			t.Errorf("after %v: reached %v, want %v: %+v", after, got.Reached, up, got)
		}
	})
}

// Without requests the target is asked every 5 s, so that replayd notices within seconds when it is gone or back.
func TestReachedWithoutRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		asked := watched(t, f, false, func(target *Target) {
			if target.Health().Reached {
				t.Error("reached before anything was asked")
			}
			time.AfterFunc(12*time.Second, func() { f.refuse.Store(true); f.cutAll() })
			time.AfterFunc(33*time.Second, func() { f.refuse.Store(false) })
			reached(t, target, 14*time.Second, true)
			reached(t, target, 16*time.Second, false)
			reached(t, target, 34*time.Second, false)
			reached(t, target, 36*time.Second, true)
		}, 52*time.Second)
		want(t, "asked at", asked, []int{0, 5, 10, 35, 35, 40, 45, 50}) // twice at 35 s: it may be another server
	})
}

// A server that accepts connections but does not answer is not reached: the probe ends with the connect timeout.
func TestReachedNeedsAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		f.prompt.Store(1)
		mute := make(chan struct{})
		watched(t, f, false, func(target *Target) {
			f.mute = mute
			reached(t, target, 1500*time.Millisecond, false)
			time.AfterFunc(20*time.Second, func() { close(mute) })
			reached(t, target, 19*time.Second, false)
			reached(t, target, 26*time.Second, true)
		}, 30*time.Second)
	})
}

// While requests show whether the target is reached, no probe is sent. A failure to connect shows that it is not. A
// timeout of the first token shows nothing, so a probe is sent.
func TestReachedByRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		say := func(target *Target, from, to int, o measure.Outcome, status int) {
			for s := from; s < to; s++ {
				time.AfterFunc(time.Duration(s)*time.Second+time.Millisecond,
					func() { target.ended(&measure.Request{Outcome: o, Status: status}) })
			}
		}
		asked := watched(t, &fake{}, false, func(target *Target) {
			say(target, 1, 20, measure.HTTP429, 429)
			reached(t, target, 19500*time.Millisecond, true)
			say(target, 20, 30, measure.TimeoutFirstToken, 0)
			for s := 30; s < 50; s++ { // reads of a stream
				time.AfterFunc(time.Duration(s)*time.Second, func() { target.read(time.Now()) })
			}
			reached(t, target, 49500*time.Millisecond, true)
			time.AfterFunc(50500*time.Millisecond, func() { target.ended(&measure.Request{Outcome: measure.ConnectFailed}) })
			reached(t, target, 51*time.Second, false)
			say(target, 52, 58, measure.HTTP5xx, 500)
			reached(t, target, 53*time.Second, true)
		}, 58500*time.Millisecond)
		want(t, "asked at", asked, []int{0, 24, 29, 52}) // at 52 s because the target is back
	})
}

// Without requests a new model is noticed within seconds, and the template's tokens are measured again.
func TestAnotherModelIsLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		f.prompt.Store(6)
		var names []string
		b := newBench(t, every(1, time.Second), once, f, nil)
		target := NewTarget(TargetOptions{
			Client: b.client, Template: true,
			Named: func(name string) { names = append(names, name) }, Log: b.w.Log,
		})
		time.AfterFunc(12*time.Second, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.models = `{"data":[{"id":"other"}]}`
			f.prompt.Store(9)
		})
		ctx, end := context.WithTimeout(t.Context(), 17*time.Second)
		defer end()
		if err := target.Run(ctx); err != nil {
			t.Error(err)
		}
		want(t, "names", names, []string{"m", "other"})
		want(t, "the template's tokens", int(target.tokens.Load()), 8)
		b.client.Close()
		f.running.Wait()
	})
}

// A server that takes no exact lengths is warned of once, and again if another one was there meanwhile.
func TestNoExactLengthsAreSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{models: `{"data":[{"id":"m","owned_by":"openai"}]}`}
		b := newBench(t, every(1, time.Second), once, f, nil)
		var log bytes.Buffer
		target := NewTarget(TargetOptions{
			Client: b.client, Named: func(string) {}, Log: slog.New(slog.NewTextHandler(&log, nil)),
		})
		owned := func(after time.Duration, by string) {
			time.AfterFunc(after, func() {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.models = `{"data":[{"id":"m","owned_by":"` + by + `"}]}`
			})
		}
		owned(13*time.Second, "vllm")
		owned(18*time.Second, "openai")
		ctx, end := context.WithTimeout(t.Context(), 23*time.Second)
		defer end()
		if err := target.Run(ctx); err != nil { // it lists the models every 5 s
			t.Error(err)
		}
		if n := strings.Count(log.String(), "exact lengths are not asked for"); n != 2 {
			t.Errorf("want 2, got %d: %s", n, log.String())
		}
		b.client.Close()
		f.running.Wait()
	})
}

// What is known of a target after each of several probes and requests.
func TestTargetHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		b := newBench(t, every(1, time.Second), once, f, nil)
		var names []string
		target := NewTarget(TargetOptions{
			Client: b.client, Patient: true,
			Named: func(name string) { names = append(names, name) }, Log: b.w.Log,
		})
		lists := func(models string) func() error {
			return func() error { f.models = models; return target.list(t.Context()) }
		}
		ended := func(o measure.Outcome, status int) func() error {
			return func() error {
				target.ended(&measure.Request{Outcome: o, Status: status, Error: "gone"})
				return nil
			}
		}
		dialed := func(cause error) func() error {
			return func() error {
				f.refusal = &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", cause)}
				f.refuse.Store(true)
				f.cutAll()
				synctest.Wait()
				defer f.refuse.Store(false)
				err := target.list(t.Context())
				if own := target.probe(t.Context()); own != nil {
					t.Error(own)
				}
				return err
			}
		}
		const (
			one  = `{"data":[{"id":"a"}]}`
			two  = `{"data":[{"id":"a"},{"id":"b"}]}`
			next = `{"data":[{"id":"c"}]}`
			gone = "GET http://engine/v1/models: connect: dial tcp: socket: connection refused"
		)
		for _, step := range []struct {
			name          string
			do            func() error
			again, served bool
			err           error
			nameless      bool
			health        Health
		}{
			{"a list of two at first", lists(two), false, false, openai.ErrSeveralModels, true, Health{Reached: true}},
			{"one model", lists(one), true, false, nil, false, Health{Reached: true}},
			{"the same again", lists(one), false, false, nil, false, Health{Reached: true}},
			{"a request before it is up", ended(measure.OK, 200), false, true, nil, false, Health{Reached: true}},
			{"probed", func() error { return target.probe(t.Context()) }, false, false, nil, false, Health{true, true, "a"}},
			{"a request", ended(measure.OK, 200), false, false, nil, false, Health{true, true, "a"}},
			{"one that shows nothing", ended(measure.TimeoutTotal, 0), false, false, nil, false, Health{true, true, "a"}},
			{"a list of two later", lists(two), false, false, nil, false, Health{true, true, "a"}},
			{"a model without a name", lists(`{"data":[{}]}`), false, false, nil, false, Health{true, true, "a"}},
			{"no descriptor", dialed(syscall.EMFILE), false, false, openai.ErrNotSent, false, Health{true, true, "a"}},
			{"another model", lists(next), true, false, nil, false, Health{true, true, "a"}},
			{"not found", ended(measure.HTTP4xx, 404), true, false, nil, false, Health{true, true, "a"}},
			{"no connection", ended(measure.ConnectFailed, 0), false, false, nil, false, Health{Text: "gone"}},
			{"an error", ended(measure.HTTP5xx, 503), true, false, nil, false, Health{Reached: true, Text: "gone"}},
			{"refused", dialed(syscall.ECONNREFUSED), false, false, openai.ErrNoAnswer, false, Health{Text: gone}},
			{"an answer", lists(next), true, false, nil, false, Health{Reached: true, Text: gone}},
		} {
			target.health.again, target.health.served = false, false
			err := step.do()
			if h := target.health; !errors.Is(err, step.err) || h.again != step.again || h.served != step.served {
				t.Errorf("%s: want %v, again %v, served %v, got %v, %+v", step.name, step.err, step.again, step.served, err, h)
			}
			if nameless := target.nameless() != nil; nameless != step.nameless || target.Health() != step.health {
				t.Errorf("%s: want nameless %v and %+v, got %v and %+v", step.name, step.nameless, step.health, nameless,
					target.Health())
			}
		}
		want(t, "names", names, []string{"a", "c"})
		b.client.Close()
		f.cutAll()
		f.running.Wait()
	})
}
