package replay

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
)

// stuck is a log handler that takes a minute per line, like a log whose reader has stopped.
type stuck struct{ slog.Handler }

func (b stuck) Enabled(context.Context, slog.Level) bool { return true }
func (b stuck) Handle(context.Context, slog.Record) error {
	<-time.After(time.Minute)
	return nil
}

// slow is an observer that takes 3 s per request.
type slow struct{}

func (slow) Observe(*measure.Request) { <-time.After(3 * time.Second) }

// A workload that is blocked in its log, an observer or a callback still sends its rows on time, and so do the other
// workloads of the same pacer.
func TestPacerOfABlockedRunner(t *testing.T) {
	for name, block := range map[string]func(*Workload){
		"its log":            func(w *Workload) { w.Log = slog.New(stuck{slog.DiscardHandler}) },
		"its observers":      func(w *Workload) { w.Observers, w.Lanes = append(w.Observers, slow{}), 64 },
		"who hears of times": func(w *Workload) { w.Noted = func(slog.Level, string) { <-time.After(time.Minute) } },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, end := paced(NewTimers())
				defer end()
				clock := &wallClock{}
				shares := func(w *Workload) { w.Pacer, w.Drain = p, 10*time.Minute }
				a := newBench(t, every(400, 100*time.Millisecond), minutes, &fake{ttft: time.Millisecond}, func(w *Workload) {
					shares(w)
					w.Wall = clock.now
					block(w)
				})
				b := newBench(t, every(400, 70*time.Millisecond), minutes, &fake{ttft: time.Millisecond}, shares)
				time.AfterFunc(10*time.Second+50*time.Millisecond, func() { clock.step(5 * time.Second) })
				ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
				defer stop()
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					a.run(t, ctx, t.Context())
				}()
				b.run(t, ctx, t.Context())
				<-ended
				for _, x := range []*bench{a, b} {
					if n := len(x.kept.all); n < 200 {
						t.Errorf("want some hundred requests, got %d", n)
					}
					for _, r := range x.kept.all {
						want(t, r.ID+" is late by", r.Timeline.Write.Sub(r.Timeline.Due), 0)
					}
				}
				want(t, "alarms at the end", len(p.alarms), 0)
			})
		})
	}
}
