package daemon

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"replayd/internal/config"
	"replayd/internal/measure"
	"replayd/internal/replay"
	"replayd/internal/sim"
	"replayd/internal/synth"
)

// sent is an observer that keeps the requests.
type sent struct {
	mu  sync.Mutex
	all []measure.Request
}

func (s *sent) Observe(r *measure.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, *r)
}

// play runs a workload to its end. It returns the measured requests and those of the warm-up.
func play(t *testing.T, change func(*config.Workload, *config.Target)) (measured, warmed []measure.Request, err error) {
	t.Helper()
	_, url := engine(t, func(o *sim.Options) { o.CacheTokens = 0 })
	server, w := target("sim", url), once("w", "sim", "")
	change(&w, &server)
	c := conf([]config.Target{server}, w)
	if faults := append(c.Resolve(), c.Check()...); len(faults) > 0 {
		t.Fatal(faults)
	}
	h, seen, before := &heard{}, &sent{}, &sent{}
	o := h.options(c)
	o.Observers, o.Warmed = []replay.Observer{seen}, []replay.Observer{before}
	err = Once{Options: o, Started: nothing, Ended: func(measure.Ledger, error) {}}.Run(t.Context(), t.Context())
	for _, r := range seen.all {
		if r.Outcome != measure.OK {
			t.Errorf("%s: want it ok, got %s: %s", r.ID, r.Outcome, r.Error)
		}
	}
	slices.SortFunc(seen.all, func(a, b measure.Request) int { return a.Timeline.Due.Compare(b.Timeline.Due) })
	return seen.all, before.all, err
}

// lengths returns the prompt lengths by the server's count.
func lengths(all []measure.Request) (n []int) {
	for _, r := range all {
		n = append(n, r.Usage.Prompt)
	}
	return n
}

func TestRowsThatAreMadeUp(t *testing.T) {
	got, warmed, err := play(t, func(w *config.Workload, _ *config.Target) {
		w.Synthetic = config.Synthetic{InputTokens: 50, OutputTokens: 5, Requests: 12}
		w.Arrival, w.Lanes, w.Warmup.Requests = "concurrency", 1, 3
	})
	if err != nil || len(got) != 12 || len(warmed) != 3 || warmed[0].Phase != measure.Warmup {
		t.Fatalf("want 12 requests after 3 of warm-up, got %d after %d: %v", len(got), len(warmed), err)
	}
	for _, r := range append(got, warmed...) {
		if r.Usage.Prompt != 50 || r.Usage.Output != 5 {
			t.Errorf("%s: want 50 tokens in and 5 out, got %+v", r.ID, r.Usage)
		}
	}
}

// The prompt of a turn contains the system prompt that all sessions share, and the earlier turns.
func TestRowsOfConversations(t *testing.T) {
	got, _, err := play(t, func(w *config.Workload, _ *config.Target) {
		w.Synthetic = config.Synthetic{InputTokens: 20, OutputTokens: 4, SystemTokens: 30, Turns: 3, Requests: 6}
		w.Arrival, w.Lanes, w.Prompt.Calibrate = "concurrency", 1, false
	})
	const template = 9 // tokens of the simulated engine's template
	want := []int{50, 74, 98, 50, 74, 98}
	for i := range want {
		want[i] += template
	}
	if err != nil || !slices.Equal(lengths(got), want) {
		t.Errorf("want prompts of %v tokens, got %v: %v", want, lengths(got), err)
	}
}

func TestRowsOfADataset(t *testing.T) {
	prompts := write(t, "prompts.jsonl", `{"text": "one two three"}`+"\n"+`{"text": "four five six"}`+"\n")
	got, _, err := play(t, func(w *config.Workload, server *config.Target) {
		w.Dataset = config.Dataset{Path: prompts, Format: "single_turn"}
		w.Arrival, w.Lanes, w.Rows, server.Stream = "concurrency", 1, 5, false
	})
	if err != nil || len(got) != 5 {
		t.Fatalf("want 5 requests of two rows that come round, got %d: %v", len(got), err)
	}
	ids := map[string]bool{}
	for _, r := range got {
		ids[r.ID] = true
		if _, ok := r.TTFT(); ok || !r.Timeline.Whole {
			t.Errorf("%s: want one answer in one piece", r.ID)
		}
	}
	if len(ids) != 5 {
		t.Errorf("want ids of their own, got %v", ids)
	}
}

// A rate replaces the times of the trace, and rescale changes its lengths.
func TestRowsByRateAndRescaled(t *testing.T) {
	path := write(t, "trace.jsonl", `{"timestamp": 0, "input_length": 100, "output_length": 2, "hash_ids": [1, 2]}
{"timestamp": 3600000, "input_length": 100, "output_length": 2, "hash_ids": [1, 3]}
`)
	got, _, err := play(t, func(w *config.Workload, _ *config.Target) {
		w.Trace.Path, w.Trace.BlockTokens = path, 64
		w.Trace.Rescale = &synth.RescaleOptions{PromptLen: 2}
		w.Arrival, w.Rate = "constant", 50
	})
	if err != nil || !slices.Equal(lengths(got), []int{136, 136}) {
		t.Fatalf("want 64 shared tokens and twice 36 of its own, got %v: %v", lengths(got), err)
	}
	if gap := got[1].Timeline.Planned.Sub(got[0].Timeline.Planned); gap != 20*time.Millisecond {
		t.Errorf("want 20 ms between two at 50 a second, got %v", gap)
	}
}

func TestRowsThatCannotBe(t *testing.T) {
	t.Setenv("HF_HOME", t.TempDir())
	path := write(t, "trace.jsonl", rows(3))
	for want, change := range map[string]func(*config.Workload, *config.Target){
		"want a tokenizer too": func(w *config.Workload, server *config.Target) {
			w.Trace.Path, w.Dataset = path, config.Dataset{Format: "bundled"}
			server.Tokenizer = "Qwen/Qwen3-0.6B" // the name of a family, not a file
		},
		"https://huggingface.co/": func(w *config.Workload, _ *config.Target) {
			w.Dataset, w.Arrival = config.Dataset{Format: "sharegpt"}, "concurrency"
		},
		"no-such-model": func(w *config.Workload, server *config.Target) {
			w.Trace.Path, server.Tokenizer = path, "no-such-model"
		},
	} {
		if _, _, err := play(t, change); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

// A tokenizer family needs no file. A tokenizer file counts the texts of the rows.
func TestTokenizers(t *testing.T) {
	t.Setenv("HF_HOME", t.TempDir())
	path := write(t, "trace.jsonl", `{"text_input": "hello world"}`)
	for name, want := range map[string]int{"Qwen/Qwen3-0.6B": 0, "../token/testdata/byte_level.json": 1} {
		got, _, err := play(t, func(w *config.Workload, server *config.Target) {
			w.Trace.Path, w.Arrival, server.Tokenizer = path, "concurrency", name
		})
		if err != nil || len(got) != 1 || (got[0].CountedInput > 0) != (want > 0) {
			t.Errorf("%s: got %+v: %v", name, got, err)
		}
	}
}
