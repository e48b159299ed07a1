//go:build bench && linux

package agents_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"replayd/internal/sim"

	"replayd/bench/lab"
	"replayd/bench/rig"
	"replayd/test/outside"
)

// longestWait is the limit of both clients on a wait after an answer.
const longestWait = 200 * time.Millisecond

// TestAIPerf plays the twelve sessions once with AIPerf and with replayd, all of them at once, with the same limit on waits.
func TestAIPerf(t *testing.T) {
	s, traces, steal := rig.ReadSize(t), folder(t), rig.WatchSteal(t)
	if !s.Full {
		t.Skip("BENCH_FULL is not set: AIPerf's packages are installed for the full size only")
	}
	aiperf := outside.Install(t)
	stats, rows, _ := open(t, traces)
	clients := []side{playAIPerf(t, aiperf, traces, stats.Sessions), playReplayd(t, traces)}
	clients[1].ideal, clients[1].blocks = stats.Prefix.HitBlocks, stats.Prefix.Blocks
	table := &lab.Table{
		Title: fmt.Sprintf("The %d sessions of weka/ once, all begun at once, waits limited to %v; AIPerf 0.13.0 and replayd, one after the other.",
			stats.Sessions, longestWait),
		Head: []string{"", clients[0].name, clients[1].name},
	}
	add := func(name string, of func(side) string) { table.Add(name, of(clients[0]), of(clients[1])) }
	for _, c := range clients {
		if len(c.log) != stats.Requests || held(t, c.log, rows) != stats.Requests {
			t.Errorf("%s: want %d requests with the lengths of the rows, got %d, of which %d have them", c.name, stats.Requests, len(c.log), held(t, c.log, rows))
		}
	}
	if c := clients[0]; c.ideal != stats.Prefix.HitBlocks || c.blocks != stats.Prefix.Blocks {
		t.Errorf("%s: want %d hits of %d blocks, got %d of %d", c.name, stats.Prefix.HitBlocks, stats.Prefix.Blocks, c.ideal, c.blocks)
	}
	add("requests that arrived", func(c side) string { return strconv.Itoa(len(c.log)) })
	add("… with the lengths of a row, each row once", func(c side) string { return strconv.Itoa(held(t, c.log, rows)) })
	add("input tokens, by the engine", func(c side) string { return strconv.Itoa(c.sum(func(e sim.LogEntry) int { return e.PromptTokens })) })
	add("output tokens, by the engine", func(c side) string { return strconv.Itoa(c.sum(func(e sim.LogEntry) int { return e.OutputTokens })) })
	add("ideal hits, as the client says, of all blocks", func(c side) string { return fmt.Sprintf("%d of %d", c.ideal, c.blocks) })
	add("cached tokens, by the engine", func(c side) string { return strconv.Itoa(c.sum(func(e sim.LogEntry) int { return e.CachedTokens })) })
	add("CPU s, all processes", func(c side) string { return lab.Number(c.cpu.Seconds()) })
	add("peak memory, all processes, MiB", func(c side) string { return lab.Number(float64(c.memory) / (1 << 20)) })
	add("processes", func(c side) string { return strconv.Itoa(c.processes) })
	add("s from the first arrival to the last end", func(c side) string { return lab.Number(c.span().Seconds()) })
	add("late, ms: p50", func(c side) string { return lab.Number(c.p50) })
	add("late, ms: p99", func(c side) string { return lab.Number(c.p99) })
	table.Note("Late is AIPerf's credit_to_start_latency, from its decision to send to the start of the request, and replayd's lateness, from due to the first byte.")
	table.Note("AIPerf has a tokenizer whose tokens are words, which is faster than a real one. Its wait is from the end of an answer too.")
	rig.Results(t, "agents-aiperf", steal, table)
}

// A side holds the figures of one client.
type side struct {
	name          string
	log           []sim.LogEntry
	cpu           time.Duration
	memory        int64
	processes     int
	ideal, blocks int64
	p50, p99      float64 // ms
}

func (c side) sum(of func(sim.LogEntry) int) (n int) {
	for _, e := range c.log {
		n += of(e)
	}
	return n
}

func (c side) span() time.Duration {
	first, last := c.log[0].Arrival, int64(0)
	for _, e := range c.log {
		first, last = min(first, e.Arrival), max(last, e.End)
	}
	return time.Duration(last - first)
}

// run runs a client against an engine of its own.
func (c *side) run(t *testing.T, dir, program string, args func(url string) []string) {
	t.Helper()
	e := serveEngine(t, dir, "--itl", "200us")
	p := outside.Start(t, filepath.Join(dir, c.name+".out"), program, args(e.url)...)
	w := watchTree(t.Context(), p.Cmd.Process.Pid)
	p.Wait(t, 5*time.Minute)
	w.end()
	if p.Err != nil {
		t.Fatalf("%s: want exit 0, got %v", c.name, p.Err)
	}
	c.cpu, c.memory, c.processes, c.log = cost(p), w.peak, w.most, e.end(t)
}

func playAIPerf(t *testing.T, installed, traces string, sessions int) side {
	t.Helper()
	dir := t.TempDir()
	c := side{name: "aiperf"}
	for _, v := range []string{"HF_HUB_OFFLINE=1", "TRANSFORMERS_OFFLINE=1", "HF_HUB_CACHE=" + filepath.Join(installed, "hub")} {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	c.run(t, dir, filepath.Join(installed, "bin", "aiperf"), func(url string) []string {
		return []string{
			"profile", "--model", "sim", "--url", url, "--endpoint-type", "chat", "--streaming", "--tokenizer", "local/words", "--ui", "none",
			"--input-file", traces, "--custom-dataset-type", "weka_trace", "--inter-turn-delay-cap-seconds", fmt.Sprint(longestWait.Seconds()),
			"--num-conversations", strconv.Itoa(sessions), "--concurrency", strconv.Itoa(sessions), "--extra-inputs", "ignore_eos:true", "--artifact-dir", dir,
		}
	})
	var said struct {
		Hits struct {
			Sum   float64 `json:"sum"`
			Count int64   `json:"count"`
		} `json:"theoretical_prefix_cache_hit"`
		Late struct {
			P50 float64 `json:"p50"`
			P99 float64 `json:"p99"`
		} `json:"credit_to_start_latency"`
	}
	text, err := os.ReadFile(filepath.Join(dir, "profile_export_aiperf.json"))
	if err == nil {
		err = json.Unmarshal(text, &said)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.ideal, c.blocks, c.p50, c.p99 = int64(said.Hits.Sum), said.Hits.Count, said.Late.P50, said.Late.P99
	return c
}

func playReplayd(t *testing.T, traces string) side {
	t.Helper()
	dir := t.TempDir()
	c, records := side{name: "replayd"}, filepath.Join(dir, "records.jsonl")
	c.run(t, dir, binary, func(url string) []string {
		return []string{"run", traces, "--url", url, "--turn-delay-max", longestWait.String(), "--records", records}
	})
	_, late := lateness(t, records, nil)
	c.p50, c.p99 = late.Quantile(0.5), late.Quantile(0.99)
	return c
}
