package daemon

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/config"
)

// A daemon that ends when it is done waits for the last workload, also for one that a reload has brought.
func TestExitWhenDone(t *testing.T) {
	path := write(t, "trace.jsonl", rows(5)) // over after 40 ms
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		after := func(name string, wait time.Duration) config.Workload {
			w := once(name, "t", path)
			w.Epoch = begin.Add(wait)
			return w
		}
		c := conf([]config.Target{target("t", nobody)}, after("a", time.Hour), after("b", time.Minute))
		c.ExitWhenDone = true
		b := keep(t, c)
		if err := <-b.reload(func(c *config.Config) { c.Workloads = append(c.Workloads, after("c", 2*time.Hour)) }); err != nil {
			t.Fatal(err)
		}
		<-b.over
		if got, want := time.Since(begin), 2*time.Hour+40*time.Millisecond; got != want {
			t.Errorf("want the end after %v, got %v", want, got)
		}
		for _, w := range b.k.g.workloads {
			if l := w.count.Ledger(); l.Expected != 5 || w.early() != nil {
				t.Errorf("%s: want 5 requests and nothing cut, got %d, %v", w.config.Name, l.Expected, w.early())
			}
		}
	})
}

// Without the key it goes on, and a stop that cuts a plan short is told.
func TestServesOnWhenDone(t *testing.T) {
	path := write(t, "trace.jsonl", rows(5))
	synctest.Test(t, func(t *testing.T) {
		early := once("early", "t", path)
		early.Epoch = time.Now()
		b := keep(t, conf([]config.Target{target("t", nobody)}, early, rare("rare", path)))
		<-time.After(time.Minute)
		all := b.workloads()
		b.stop()
		<-b.over
		if all[0].early() != nil || !errors.Is(all[1].early(), ErrCut) {
			t.Errorf("want only the second one cut, got %v, %v", all[0].early(), all[1].early())
		}
	})
}
