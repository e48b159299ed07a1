//go:build peers

package peers_test

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"replayd/test/machine"
)

// guide has the command lines in the rest of the guide that send requests.
var guide = []peer{
	{
		name:   "cancellations",
		typed:  "aiperf profile --model qwen3-0.6b --url $ENDPOINT_URL --endpoint-type chat --streaming --concurrency 10 --request-count 100 --request-cancellation-rate 20 --request-cancellation-delay 0.5 --isl 800 --osl 400 --tokenizer Qwen/Qwen3-0.6B",
		engine: []string{"--ttft", "900ms", "--itl", "500us", "--chunk-tokens", "10", "--slots", "1000", "--cache-tokens", "0"},
		judge: func(t *testing.T, dir string, s seen) {
			s.streamed(t, true)
			gone, all := 0, s.measured()
			for i, r := range all {
				switch took := time.Duration(r.End - r.Arrival); {
				case r.Outcome == "gone":
					gone++
					if (took < 480*time.Millisecond || took > 650*time.Millisecond) && machine.Measures(t, "the delay of cancellations") {
						t.Errorf("%s: want it cancelled after 0.5 s, got %v", r.ID, took)
					}
					all[i].End = r.Arrival + int64(480*time.Millisecond) // the engine notices it when the next request may be there
				case r.Outcome != "ok":
					t.Errorf("%s: want it ok or gone, got %s", r.ID, r.Outcome)
				}
				if r.PromptTokens != 800 || r.MaxTokens != 400 {
					t.Errorf("%s: want 800 tokens in and a limit of 400, got %d and %d", r.ID, r.PromptTokens, r.MaxTokens)
				}
			}
			// Each of 100 is cancelled with 20 %. Fewer than 6 or more than 37 happen once in 20,000 seeds, and this
			// seed is fixed.
			if n := len(s.measured()); n != 100 || gone < 6 || gone > 37 {
				t.Errorf("want 100 requests and about 20 of them cancelled, the engine received %d and saw %d go", n, gone)
			}
			seen{all: all}.atMost(t, 10)
			cancelled := 0
			for _, e := range export(t, filepath.Join(dir, "artifacts")) {
				if e.Metadata.Cancelled {
					cancelled++
				}
			}
			if cancelled != gone {
				t.Errorf("want the %d that the engine saw go in the export, got %d", gone, cancelled)
			}
			s.says(t, fmt.Sprintf("(100 sent, %d ok, %d cancelled)", 100-gone, gone))
		},
	},
	{
		name:  "the server's own metrics",
		typed: "aiperf profile --model qwen3-0.6b --url $ENDPOINT_URL --endpoint-type chat --streaming --concurrency 100 --request-count 1000",
		// The page is read every second, so the run is longer than that.
		engine: []string{"--ttft", "20ms", "--itl", "3ms", "--chunk-tokens", "50", "--slots", "1000", "--cache-tokens", "0"},
		judge: func(t *testing.T, dir string, s seen) {
			s.count(t, 1000)
			s.streamed(t, true)
			s.atMost(t, 100)
			for _, r := range s.measured() {
				if r.PromptTokens != 550 || r.MaxTokens != 0 {
					t.Fatalf("want AIPerf's 550 tokens in and no limit, got %+v", r)
				}
			}
			pages := artifact[served](t, dir, "artifacts/server_metrics_export.json")
			if got := pages.targets("replayd_engine_requests_running"); !slices.Equal(got, []string{"127.0.0.1"}) {
				t.Errorf("want the server's own page, got %q", got)
			}
			finished, ok := pages.stat("replayd_engine_requests_finished_total", "total")
			if !ok || finished < 900 || finished > 1002 { // between the first reading and the last, including replayd's probes
				t.Errorf("want requests that the engine counted meanwhile, got %v", finished)
			}
			running, ok := pages.stat("replayd_engine_requests_running", "max")
			if !ok || running < 95 || running > 100 {
				t.Errorf("want a reading of about 100 requests that ran, got %v", running)
			}
		},
	},
	{
		name:   "other pages",
		typed:  `aiperf profile --model qwen3-0.6b --url $ENDPOINT_URL --server-metrics "http://server1:9090/metrics" "http://server2:9090/metrics"`,
		cut:    []string{`"http://server1:9090/metrics"`, `"http://$ENDPOINT_URL/metrics"`, `"http://server2:9090/metrics"`, `"http://$ENDPOINT_URL/metrics?again"`},
		engine: fast,
		judge: func(t *testing.T, dir string, s seen) {
			s.count(t, 10)
			s.streamed(t, false)
			s.atMost(t, 1)
			s.order(t, 1)
			pages := artifact[served](t, dir, "artifacts/server_metrics_export.json")
			if got := pages.targets("replayd_engine_requests_running"); !slices.Equal(got, []string{"127.0.0.1", "metrics1", "metrics2"}) {
				t.Errorf("want the server's own page and both others, got %q", got)
			}
		},
	},
	{
		name:   "a changed trace",
		typed:  "aiperf profile --model qwen3-0.6b --url $ENDPOINT_URL --input-file mooncake_trace.jsonl --custom-dataset-type mooncake_trace --synthesis-speedup-ratio 2.0 --synthesis-prefix-len-multiplier 1.5 --tokenizer Qwen/Qwen3-0.6B",
		files:  conversation("mooncake_trace.jsonl", 12*time.Second),
		engine: fast,
		judge: func(t *testing.T, dir string, s seen) {
			rows := fileRows(t, dir, "mooncake_trace.jsonl")
			longer := 0
			for i := range rows {
				shared := 0 // blocks that are the start of another row too
				for j := range rows {
					if i != j {
						shared = max(shared, sameStart(rows[i].IDs, rows[j].IDs))
					}
				}
				if shared > 0 && shared == len(rows[i].IDs) {
					t.Fatalf("row %d: want an end of its own in each row, or what is computed here is wrong", i)
				}
				more := 512 * int(math.Round(1.5*float64(shared))-float64(shared))
				longer, rows[i].Input = longer+more, rows[i].Input+more
			}
			if longer == 0 {
				t.Error("want rows that share something, there are none")
			}
			s.rows(t, rows)
			s.streamed(t, false)
			at := times(rows)
			for i := range at {
				at[i] /= 2
			}
			s.instants(t, at)
		},
	},
	{
		name:   "users",
		typed:  "aiperf profile --model qwen3-0.6b --url $ENDPOINT_URL --endpoint-type chat --streaming --user-centric-rate 1.0 --num-users 15 --session-turns-mean 20 --shared-system-prompt-length 1000 --tokenizer Qwen/Qwen3-0.6B",
		cut:    []string{"--user-centric-rate 1.0 --num-users 15", "--user-centric-rate 10 --num-users 15 --request-count 60"},
		engine: fast,
		reads:  true,
		judge:  users,
	},
}

// users checks 60 requests of 15 users, one each 100 ms: each user has a turn each 1.5 s, continues its own
// conversation, and was in the middle of a conversation at the start.
func users(t *testing.T, dir string, s seen) {
	s.count(t, 60)
	s.streamed(t, true)
	var due []time.Duration
	for i := range 60 {
		due = append(due, time.Duration(i)*100*time.Millisecond)
	}
	s.instants(t, due)
	turns := map[string]exported{} // by id
	for _, e := range export(t, filepath.Join(dir, "artifacts")) {
		turns[e.Metadata.RequestID] = e
	}
	system, midway := "", 0
	before := map[string]request{} // the last request of a conversation
	for _, r := range byRow(t, s.measured()) {
		who, turn, b := turns[r.ID].Metadata.Conversation, turns[r.ID].Metadata.Turn, s.bodies[r.ID]
		if len(b.Messages) != 2+2*turn || b.Messages[0].Role != "system" {
			t.Fatalf("%s: want a system prompt, %d turns of history and a question, got %d messages", r.ID, turn, len(b.Messages))
		}
		if system == "" {
			system = b.Messages[0].Content
		}
		if b.Messages[0].Content != system {
			t.Errorf("%s: want the system prompt that all share", r.ID)
		}
		// Each message has 550 tokens, or AIPerf's default length of an answer.
		if r.PromptTokens < 1000+550*(turn+1) {
			t.Errorf("%s: want 1000 tokens that all share and 550 for each of %d turns at least, got %d", r.ID, turn+1, r.PromptTokens)
		}
		last, again := before[who]
		before[who] = r
		if !again {
			if turn > 0 {
				midway++
			}
			continue
		}
		history := s.bodies[last.ID].Messages
		now, then := place(t, r.ID), place(t, last.ID)
		switch {
		case turn != turns[last.ID].Metadata.Turn+1:
			t.Errorf("%s: want turn after turn, got %d after %d", r.ID, turn, turns[last.ID].Metadata.Turn)
		case now[1] != then[1]+15: // 100 ms each: 15 / (10/s) = 1.5 s
			t.Errorf("%s: want a user's turn to be 15 rows after the one before, %s", r.ID, last.ID)
		case !goesOn(b.Messages, history):
			t.Errorf("%s: want it to go on from %s", r.ID, last.ID)
		}
	}
	if midway < 10 || len(before) > 25 {
		t.Errorf("want most of 15 users in the midst of their conversations at the start, got %d, and %d conversations in all", midway, len(before))
	}
}

// goesOn reports whether a turn begins with the messages of the turn before. The last message there is shorter by the
// tokens of the chat template, so that the prompt has its length.
func goesOn(turn, before []message) bool {
	n := len(before) - 1
	return len(turn) > len(before) && slices.Equal(turn[:n], before[:n]) && turn[n].Role == before[n].Role && strings.HasPrefix(turn[n].Content, before[n].Content)
}

// served is the content of server_metrics_export.json.
type served struct {
	Metrics map[string]struct {
		Series []struct {
			Labels map[string]string  `json:"labels"`
			Stats  map[string]float64 `json:"stats"`
		} `json:"series"`
	} `json:"metrics"`
}

// targets lists the targets whose pages had a metric.
func (s served) targets(metric string) (all []string) {
	for _, one := range s.Metrics[metric].Series {
		all = append(all, one.Labels["target"])
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// stat returns a figure of a metric's first series.
func (s served) stat(metric, name string) (v float64, ok bool) {
	series := s.Metrics[metric].Series
	if len(series) == 0 {
		return 0, false
	}
	v, ok = series[0].Stats[name]
	return v, ok
}
