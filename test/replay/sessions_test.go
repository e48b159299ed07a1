//go:build replay

package replay_test

import (
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"replayd/internal/sim"
	"replayd/internal/trace"

	"replayd/test/machine"
	"replayd/test/outside"
)

// maxWait limits the waits after parents, so that a loop takes seconds.
const maxWait = 10 * time.Millisecond

// Twelve recorded sessions of agents are played in two loops. By the engine's log, each row arrives once in each loop, with its lengths and
// after its parents and the waits. The engine hits what it can hit in the order in which it computed the prompts, and the second loop as
// much as the first: the salt keeps them apart.
func TestRecordedSessions(t *testing.T) {
	folder := filepath.Join(os.Getenv("REPLAYD_TRACES"), "weka")
	if _, err := os.Stat(folder); os.Getenv("REPLAYD_TRACES") == "" || err != nil {
		t.Skip("REPLAYD_TRACES names no folder with the sessions of weka/")
	}
	rows := read(t, folder)
	slices.SortFunc(rows, func(a, b trace.Record) int { return a.Number - b.Number })
	dir := t.TempDir()
	engine, listen := startEngine(t, dir, "--log-chunks", "--slots", "1024", "--max-model-len", "400000", "--block-tokens", fmt.Sprint(block),
		"--template-tokens", "0", "--cache-tokens", "1000000000", "--prefill-rate", "1e7", "--itl", "50us"), outside.Address(t)
	config, records := filepath.Join(dir, "replayd.yaml"), filepath.Join(dir, "records.jsonl")
	text := fmt.Sprintf(`
targets: [{name: sim, url: "http://%s"}]
workloads:
  - name: w
    trace: {path: %q}
    speed: 20
    turn_delay: {max: %v}
    repeat: {mode: loop, align: start, every: 20s}
    prompt: {salt: loop}
    lanes: 512
    max_wait: 0s
records: {path: %q}
`, engine.address, folder, maxWait, records)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	daemon := start(t, dir, "serve", "serve", "--config", config, "--web.listen-address", listen)
	daemon.Ready(t, http.DefaultClient, "http://"+listen+"/-/ready")
	watch(t, "http://"+listen, 2*len(rows), 2*time.Minute)
	daemon.Term(t)

	var loops [2]map[int]sim.LogEntry
	for i := range loops {
		loops[i] = map[int]sim.LogEntry{}
	}
	for _, e := range engine.log(t) {
		_, loop, row := outside.Place(t, e.ID)
		if loop > 1 {
			continue // the third loop had begun
		}
		if _, twice := loops[loop][row]; twice {
			t.Errorf("%s arrived twice", e.ID)
		}
		loops[loop][row] = e
	}
	var hit [2]float64
	for i, arrived := range loops {
		if len(arrived) != len(rows) {
			t.Errorf("loop %d: want %d rows, %d arrived", i, len(rows), len(arrived))
		}
		ordered(t, rows, arrived)
		ideal := computed(rows, arrived)
		cached, prompt := 0, 0
		for _, e := range arrived {
			cached, prompt = cached+e.CachedTokens, prompt+e.PromptTokens
		}
		hit[i] = float64(cached) / float64(prompt)
		t.Logf("loop %d: %d rows, %d of %d prompt tokens cached, %d by the order in which prompts were computed", i, len(arrived), cached, prompt, ideal)
		if off := math.Abs(float64(cached-ideal)) / float64(prompt); off > 0.001 {
			t.Errorf("loop %d: want %d cached tokens within 0.001 of the prompt tokens, got %d: %.4f", i, ideal, cached, off)
		}
	}
	if math.Abs(hit[0]-hit[1]) > 0.001 && machine.Measures(t, "the hit ratio, which the order of arrivals decides") {
		t.Errorf("want equal shares of hits in both loops, got %.4f and %.4f", hit[0], hit[1])
	}
	punctual(t, rows, readRecords(t, records))
}

// block is the block size of the sessions and of the engine.
const block = 64

func played(wait time.Duration) time.Duration { return min(wait, maxWait) }

// ordered checks lengths and order by the engine's log. The engine stamps a chunk just before it writes it, so a client that has the end of an
// answer sends later than the stamp of its last chunk.
func ordered(t *testing.T, rows []trace.Record, arrived map[int]sim.LogEntry) {
	t.Helper()
	for _, r := range rows {
		e, ok := arrived[r.Number]
		if !ok {
			continue
		}
		if e.Outcome != sim.OK || e.PromptTokens != r.InputTokens || e.OutputTokens != r.OutputTokens {
			t.Errorf("%s: want ok, %d and %d tokens, got %s, %d and %d", e.ID, r.InputTokens, r.OutputTokens, e.Outcome, e.PromptTokens, e.OutputTokens)
		}
		for _, after := range r.After {
			parent, ok := arrived[after.Row]
			if !ok || len(parent.Chunks) == 0 {
				t.Errorf("%s: its parent, row %d, has no answer", e.ID, after.Row)
			} else if end := parent.Chunks[len(parent.Chunks)-1]; e.Arrival < end+int64(played(after.Wait)) {
				t.Errorf("%s arrived %v after the answer of row %d, want at least %v", e.ID, time.Duration(e.Arrival-end), after.Row, played(after.Wait))
			}
		}
	}
}

// computed returns the prompt tokens that the engine can have in its cache. It computes one prompt at a time, and always its last token, and keeps its
// blocks when it is done. So a request hits its leading blocks that are in prompts whose first token was written before its own.
func computed(rows []trace.Record, arrived map[int]sim.LogEntry) (tokens int) {
	order := make([]int, 0, len(arrived))
	for row, e := range arrived {
		if len(e.Chunks) > 0 {
			order = append(order, row)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return int(arrived[a].Chunks[0] - arrived[b].Chunks[0]) })
	seen := map[uint64]bool{}
	for _, row := range order {
		r := rows[row]
		for _, id := range r.Blocks[:min(len(r.Blocks), (r.InputTokens-1)/block)] {
			if !seen[id] {
				break
			}
			tokens += block
		}
		for _, id := range r.Blocks {
			seen[id] = true
		}
	}
	return tokens
}

// punctual checks the due instants in the records: to the nanosecond the latest of the parents' ends and the waits.
func punctual(t *testing.T, rows []trace.Record, all []record) {
	t.Helper()
	type place struct{ loop, row int }
	ends := map[place]int64{}
	for _, r := range all {
		ends[place{r.Loop, r.Row}] = r.End
	}
	for _, r := range all {
		want := int64(0)
		for _, after := range rows[r.Row].After {
			want = max(want, ends[place{r.Loop, after.Row}]+int64(played(after.Wait)))
		}
		if want > 0 && r.Due != want {
			t.Errorf("%s: want it due at %d, got %d", r.ID, want, r.Due)
		}
	}
}
