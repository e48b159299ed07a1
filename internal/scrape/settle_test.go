package scrape

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// counted begins the line of replayd's page with the finished requests.
const counted = `requests_finished_total{address="engine:8000",rank="0",target="vllm"} `

// Settle ends with the first two readings that count as many finished requests, and with nothing later than its
// context.
func TestSettle(t *testing.T) {
	const most = 1900 * time.Millisecond
	finished := func(n int) string { return fmt.Sprintf(`vllm:request_success_total{engine="0"} %d`, n) }
	tokens := func(n int) string { return fmt.Sprintf(`vllm:generation_tokens_total{engine="0"} %d`, n) }
	for _, c := range []struct {
		name    string
		then    func(e *server, since time.Duration) // changes the engine, 50 ms after each reading
		stopped bool
		want    time.Duration
		reads   int
		last    string // the finished requests of the page
	}{
		{"still", func(*server, time.Duration) {}, false, settleEvery, 2, "3"},
		{"late", func(e *server, since time.Duration) {
			e.say(finished(5 + min(2, int(since/settleEvery))))
		}, false, 4 * settleEvery, 5, "7"},
		{"other counts move", func(e *server, since time.Duration) {
			e.say(finished(3), tokens(int(since)))
		}, false, settleEvery, 2, "3"},
		{"no such count", func(e *server, since time.Duration) {
			e.say(tokens(min(900, int(since/time.Millisecond))))
		}, false, 7 * settleEvery, 8, ""},
		{"other clients", func(e *server, since time.Duration) {
			e.say(finished(int(since)))
		}, false, most, 10, "1.65e+09"},
		{"hangs", func(e *server, _ time.Duration) { e.set(func() { e.hang = true }) }, false, most, 2, "3"},
		{"fails", func(e *server, _ time.Duration) {
			e.set(func() { e.status = http.StatusServiceUnavailable })
		}, false, settleEvery, 2, "3"},
		{"stopped", func(*server, time.Duration) {}, true, 0, 1, "3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, e := newFixture(), &server{}
				e.say(finished(3), tokens(0))
				target := f.target(t, e, TargetOptions{Interval: time.Hour})
				while(t, target, func() {
					e.set(func() { e.asked = nil })
					begin := time.Now()
					ctx, cancel := context.WithTimeout(t.Context(), most)
					defer cancel()
					stop := make(chan struct{})
					if c.stopped {
						close(stop)
					}
					ended, changed := make(chan struct{}), make(chan struct{})
					go func() {
						defer close(changed)
						for at := 50 * time.Millisecond; ; at += settleEvery {
							select {
							case <-time.After(time.Until(begin.Add(at))):
								c.then(e, at)
							case <-ended:
								return
							}
						}
					}()
					target.Settle(ctx, stop)
					if took := time.Since(begin); took != c.want {
						t.Errorf("want it to take %v, got %v", c.want, took)
					}
					close(ended)
					<-changed
					if len(e.asked) != c.reads {
						t.Errorf("want %d readings, got %q", c.reads, e.asked)
					}
					if c.last != "" {
						f.want(t, []string{"requests_finished_total"}, counted+c.last)
					}
				})
			})
		})
	}
}

// A page that never had figures is not waited for.
func TestSettleWithoutFigures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, e := newFixture(), &server{}
		target := f.target(t, e, TargetOptions{Interval: time.Hour})
		while(t, target, func() {
			begin, asked := time.Now(), len(e.asked)
			target.Settle(t.Context(), nil)
			if took := time.Since(begin); took != 0 || len(e.asked) != asked {
				t.Errorf("want no reading and no wait, got %q in %v", e.asked[asked:], took)
			}
		})
	})
}

// A reading waits for a scrape that goes on, but not longer than its context.
func TestSettleBesideAHangingScrape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, e := newFixture(), &server{}
		e.say(`vllm:request_success_total{engine="0"} 3`)
		target := f.target(t, e, TargetOptions{Interval: 10 * time.Second})
		while(t, target, func() {
			e.set(func() { e.hang = true })
			pass(10 * time.Second) // the next scrape has begun
			begin := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			target.Settle(ctx, nil)
			if took := time.Since(begin); took != 2*time.Second {
				t.Errorf("want it to end with its context, got %v", took)
			}
			f.want(t, []string{"up"}, `up{address="engine:8000",target="vllm"} 1`)
		})
	})
}

// Figures that are kept stay on the page after the end of Run, as they are.
func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, e := newFixture(), &server{}
		e.say(`vllm:request_success_total{engine="0"} 3`)
		target := f.target(t, e, TargetOptions{})
		while(t, target, target.Keep)
		pass(time.Hour)
		f.want(t, []string{"requests_finished_total"}, counted+"3")
	})
}
