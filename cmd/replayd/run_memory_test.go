package main

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"replayd/internal/measure"
	"replayd/internal/metrics"
	"replayd/internal/result"
	"replayd/internal/secret"
	"replayd/internal/terminal"
	"replayd/test/outside"
)

// The memory of a run without artifacts does not grow with its requests. After the first 300,000 requests every latency
// sample is a histogram. Then the test plays 10 more minutes at 1,000 requests/s in virtual time, or a whole hour with
// RUN_REQUESTS=3600000. Each request has its own instants, times, id and, if it fails, error text.
func TestMemoryOfALongRun(t *testing.T) {
	requests := outside.Knob(t, "RUN_REQUESTS", 900_000, strconv.Atoi)
	slo, err := measure.ParseSLO("ttft:1s,tpot:50ms")
	if err != nil {
		t.Fatal(err)
	}
	m := metrics.NewMeter(prometheus.NewRegistry())
	w := m.Workload(metrics.Labels{Workload: "run", Target: "t", Model: "m"}, metrics.WorkloadOptions{SLO: slo})
	a := &account{summary: result.NewSummary(slo, measure.SessionSLO{}), progress: &terminal.Progress{}}
	observers := a.observers()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	chunks := make([]time.Duration, 3)
	played := 0
	play := func(until int) {
		for ; played < until; played++ {
			due := start.Add(time.Duration(played) * time.Millisecond)
			ttft := time.Duration(50+played%1500) * time.Millisecond
			chunks[0], chunks[1], chunks[2] = ttft, ttft+time.Duration(played%30)*time.Millisecond, ttft+time.Duration(20+played%90)*time.Millisecond
			r := &measure.Request{
				ID: fmt.Sprint("run/0/", played), Outcome: measure.OK, Usage: measure.Usage{Prompt: 100, Output: 3, Source: measure.UsageFinal},
				Timeline: measure.Timeline{Planned: due, Due: due, Ready: due, Lane: due, Write: due.Add(time.Duration(played % 1e6)), Chunks: chunks, Kernel: true},
			}
			r.Timeline.End = r.Timeline.Write.Add(chunks[2])
			if played%100 == 0 {
				r.Outcome, r.Error = measure.HTTP5xx, secret.Text(fmt.Sprint("fault ", played))
			}
			w.Expected(1)
			w.Sent()
			w.Finished(r)
			for _, o := range observers {
				o.Observe(r)
			}
		}
	}
	held := func() int64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.GC() // frees what the first one only marked
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	play(300_000)
	before := held()
	play(requests)
	after := held()
	t.Logf("%d requests: %.1f MiB of the heap after 300,000, %+d KiB more at the end", requests, float64(before)/(1<<20), (after-before)>>10)
	if grown := after - before; grown > 256<<10 {
		t.Errorf("%d KiB more after %d requests than after 300,000", grown>>10, requests)
	}
	l := w.Ledger()
	if l.Expected != int64(requests) || l.Outcomes[measure.HTTP5xx] != int64(requests/100) {
		t.Errorf("want all of it counted, got %+v", l)
	}
	runtime.KeepAlive(a)
}
