//go:build bench && linux

package limits_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"replayd/bench/lab"
	"replayd/bench/rig"
	"replayd/test/outside"
)

// TestWaiting shows the cost of requests that wait for a lane: 50,000 a second, while the server is silent.
func TestWaiting(t *testing.T) {
	s, steal := rig.ReadSize(t), rig.WatchSteal(t)
	counts := []int{20_000, 40_000} // at the first count, as many messages are made ahead as ever are
	if s.Full {
		counts = []int{20_000, 80_000}
	}
	l := load{streams: 1, tokens: 1, ttft: time.Hour}
	table := &lab.Table{
		Title: "Requests that wait for one lane of a silent server; rows as Azure's, of lengths alone. B are those beyond the first line. 50,000 fall due in a second.",
		Head:  []string{"waiting", "RAM MiB", "B a request", "live heap MiB", "B a request", "CPU s"},
	}
	var none sight
	for _, n := range counts {
		dir := t.TempDir()
		stamp := l.server(t, rig.Options{NoLog: true})
		var rows strings.Builder
		for i := range n {
			fmt.Fprintf(&rows, `{"timestamp": %d, "input_length": %d, "output_length": %d}`+"\n", i/50, 1+i*7919%4096, 1+i*104729%700)
		}
		trace := outside.Write(t, dir, "trace.jsonl", rows.String())
		p, url := serve(t, dir, stamp.URL, fmt.Sprintf("trace: {path: %q}, repeat: {mode: once}, lanes: 1, max_wait: 2h", trace))
		outside.Until(t, func() error {
			page, err := outside.Scrape(t.Context(), url)
			if err == nil && page.Sum("replayd_requests_waiting") < float64(n-1) {
				err = fmt.Errorf("want %d requests that wait, got %v", n-1, page.Sum("replayd_requests_waiting"))
			}
			return err
		})
		// After a garbage collection the heap holds only live objects.
		if status, _, err := outside.Call(t.Context(), http.DefaultClient, http.MethodGet, url+"/debug/pprof/heap?gc=1"); err != nil || status != http.StatusOK {
			t.Fatalf("want a heap profile, got %d, %v", status, err)
		}
		at := look(t, p, url)
		if n == counts[0] {
			none = at
		}
		heap := func(s sight) float64 { return s.page.Sum("go_memstats_heap_alloc_bytes") }
		perRAM, perHeap := "–", "–"
		if n > counts[0] {
			perRAM = lab.Number(float64(at.memory-none.memory) / float64(n-counts[0]))
			perHeap = lab.Number((heap(at) - heap(none)) / float64(n-counts[0]))
		}
		table.Add(lab.Number(at.page.Sum("replayd_requests_waiting")), lab.Number(float64(at.memory)/(1<<20)), perRAM,
			lab.Number(heap(at)/(1<<20)), perHeap, lab.Number(at.cpu.Seconds()))
		stop(p, stamp.Process)
	}
	table.Note("The limit of 64 MiB counts 768 B a row of lengths alone, and so holds 87,381 of them.")
	rig.Results(t, "waiting", steal, table)
}
