package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"replayd/test/outside"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// bench is an engine behind a real HTTP server, and a client of it.
type bench struct {
	*testing.T
	engine *Engine
	client *http.Client
	tally  *tally
}

// tally counts the requests of the engine's log by their outcome.
type tally struct {
	mu       sync.Mutex
	outcomes map[string]int
}

func (l *tally) Write(line []byte) (int, error) {
	var e LogEntry
	if err := json.Unmarshal(line, &e); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outcomes[e.Outcome]++
	return len(line), nil
}

// ended returns how many requests have ended, by their outcome.
func (l *tally) ended() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.outcomes)
}

// simulate runs f in virtual time against an engine.
func simulate(t *testing.T, o Options, f func(b bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		counted := &tally{outcomes: map[string]int{}}
		if o.Log == nil {
			o.Log = counted
		}
		e, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		p := outside.NewPipes()
		s := e.Server()
		go func() { _ = s.Serve(p) }()
		tr := &http.Transport{DialContext: p.Dial, DisableCompression: true}
		defer func() {
			tr.CloseIdleConnections()
			_ = s.Close()
			pass(time.Second) // net/http lingers on a connection that it closes before it read a body
		}()
		f(bench{T: t, engine: e, client: &http.Client{Transport: tr}, tally: counted})
	})
}

// pass lets virtual time pass.
func pass(d time.Duration) { <-time.After(d) }

// reply is an answer as the client saw it.
type reply struct {
	status int
	header http.Header
	body   string
	at     []time.Duration // of each chunk with content, since the request
	err    error           // of reading the body
	usage  usage
	text   string
	finish string
}

type usage struct {
	Prompt  int `json:"prompt_tokens"`
	Output  int `json:"completion_tokens"`
	Total   int `json:"total_tokens"`
	Details struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

type choice struct {
	Delta   struct{ Content string }
	Message struct{ Content string }
	Text    string
	Finish  *string `json:"finish_reason"`
}

func (b bench) post(ctx context.Context, path, id, body string) *reply {
	b.Helper()
	start := time.Now()
	r := &reply{}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://sim"+path, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	if id != "" {
		req.Header.Set("X-Request-Id", id)
	}
	req.Header.Set("User-Agent", "test")
	resp, err := b.client.Do(req)
	if err != nil {
		r.err = err
		return r
	}
	defer resp.Body.Close()
	r.status, r.header = resp.StatusCode, resp.Header
	var raw bytes.Buffer
	var line []byte
	part := make([]byte, 64<<10)
	for {
		n, err := resp.Body.Read(part)
		now := time.Since(start)
		raw.Write(part[:n])
		line = append(line, part[:n]...)
		for {
			event, rest, ok := bytes.Cut(line, []byte("\n\n"))
			if !ok {
				break
			}
			line = rest
			r.event(bytes.TrimPrefix(event, []byte("data: ")), now)
		}
		if err != nil {
			if err != io.EOF {
				r.err = err
			}
			break
		}
	}
	r.body = raw.String()
	if len(line) > 0 {
		r.event(line, time.Since(start))
	}
	return r
}

func (r *reply) event(data []byte, at time.Duration) {
	var v struct {
		Choices []choice
		Usage   *usage
	}
	if json.Unmarshal(data, &v) != nil {
		return
	}
	if v.Usage != nil {
		r.usage = *v.Usage
	}
	for _, c := range v.Choices {
		if text := c.Delta.Content + c.Message.Content + c.Text; text != "" {
			r.text += text
			r.at = append(r.at, at)
		}
		if c.Finish != nil {
			r.finish = *c.Finish
		}
	}
}

func (b bench) get(path string) string {
	b.Helper()
	resp, err := b.client.Get("http://sim" + path)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		b.Fatalf("%s: %s, %v", path, resp.Status, err)
	}
	return string(page)
}

const (
	pathChat        = "/v1/chat/completions"
	pathCompletions = "/v1/completions"
)

// text returns n one-token words. The word identifies the stream.
func text(stream string, n int) string {
	return strings.TrimSuffix(strings.Repeat(stream+" ", n), " ")
}

// completion returns a streamed completions request with an exact length of the answer.
func completion(prompt string, output int) string {
	b, _ := json.Marshal(map[string]any{
		"model": "sim", "prompt": prompt, "stream": true, "max_tokens": output, "ignore_eos": true,
		"stream_options": map[string]bool{"include_usage": true},
	})
	return string(b)
}

func TestOptionsCheck(t *testing.T) {
	bad := Defaults()
	bad.Model, bad.Slots, bad.PrefillRate, bad.ITL, bad.Faults.Cut, bad.Faults.Empty = "", 0, 0, -time.Second, 1.5, 0.1
	bad.PreemptCost = -1
	_, err := New(bad)
	want := `Model: want a name, got none
Slots: want an integer from 1 to 65536, got 0
PrefillRate: want a number from 0.001 to 1e+12, got 0
PreemptCost: want a number from 0 to 1000, got -1
ITL: want a number from 0 to 3600, got -1
Faults.Cut: want a number from 0 to 1, got 1.5
Faults: want shares that sum up to at most 1, got 1.6`
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	if err := Defaults().Check(); err != nil {
		t.Error(err)
	}
	bad = Defaults()
	bad.PreemptCost, bad.CacheTokens = 1, 0
	if err := bad.Check(); err == nil || err.Error() != "PreemptCost: want CacheTokens above 0 with it, got 0" {
		t.Errorf("a cost of a full cache without a cache: got %v", err)
	}
}

func TestModelsAndHealth(t *testing.T) {
	o := Defaults()
	o.Model, o.Adapters = `a "model"`, []string{"adapter"}
	simulate(t, o, func(b bench) {
		var list struct{ Data []struct{ ID string } }
		if err := json.Unmarshal([]byte(b.get("/v1/models")), &list); err != nil || len(list.Data) != 2 || list.Data[0].ID != o.Model || list.Data[1].ID != "adapter" {
			b.Errorf("models: %+v, %v", list, err)
		}
		if got := b.get("/health"); got != "" {
			b.Errorf("health: got %q, want nothing", got)
		}
	})
}

// The answers of both APIs, streamed and in one piece, to the byte.
func TestGoldenAnswers(t *testing.T) {
	const messages = `"messages":[{"role":"system","content":"about after"},{"role":"user","content":[{"type":"text","text":"from here"}]}]`
	for _, c := range []struct {
		name, path, body string
		reasoning        int
	}{
		{"chat.sse", pathChat, `{` + messages + `,"stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":3,"ignore_eos":true}`, 0},
		{"reasoning.sse", pathChat, `{` + messages + `,"stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":6,"ignore_eos":true}`, 3},
		{"reasoning.json", pathChat, `{` + messages + `,"max_tokens":6,"ignore_eos":true}`, 3},
		{"reasoning_alone.sse", pathChat, `{` + messages + `,"stream":true,"max_tokens":2,"ignore_eos":true}`, 3},
		{"chat.json", pathChat, `{"model":"sim",` + messages + `,"max_tokens":3,"ignore_eos":true,"unknown":{"field":[1]}}`, 0},
		{"completions.sse", pathCompletions, `{"prompt":[5,6,7],"stream":true,"stream_options":{"include_usage":true},"max_tokens":3,"ignore_eos":true}`, 3},
		{"completions_nousage.sse", pathCompletions, `{"prompt":"about after","stream":true,"max_tokens":2,"ignore_eos":true}`, 0},
		{"completions.json", pathCompletions, `{"prompt":["about after"],"max_tokens":3,"ignore_eos":true}`, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := Defaults()
			o.ReasoningTokens = c.reasoning
			if strings.HasPrefix(c.name, "reasoning") {
				o.ChunkTokens = 4 // the second chunk of an answer of 6 tokens has reasoning and text
			}
			simulate(t, o, func(b bench) {
				r := b.post(b.Context(), c.path, "w/0/1", c.body)
				if r.err != nil || r.status != http.StatusOK {
					b.Fatalf("%d, %v: %s", r.status, r.err, r.body)
				}
				golden(b.T, c.name, []byte(r.body))
				wantType := "text/event-stream; charset=utf-8"
				if strings.HasSuffix(c.name, ".json") {
					wantType = "application/json"
				}
				if got := r.header.Get("Content-Type"); got != wantType {
					b.Errorf("type: got %q, want %q", got, wantType)
				}
			})
		})
	}
}

func TestRefusals(t *testing.T) {
	o := Defaults()
	o.MaxModelLen = 100
	simulate(t, o, func(b bench) {
		for _, c := range []struct {
			path, body string
			status     int
			want       string
		}{
			{pathChat, `{"messages":`, 400, "the body is not the JSON object"},
			{pathChat, `[]`, 400, "the body is not the JSON object"},
			{pathChat, `{}`, 400, "messages: want at least one message, got none"},
			{pathChat, `{"messages":[{"content":3}]}`, 400, "messages[0].content: want a string or a list of text parts"},
			{pathChat, `{"messages":[{"content":[{"type":"image_url"}]}]}`, 400, "want only parts"},
			{pathCompletions, `{}`, 400, "prompt: want a string"},
			{pathCompletions, `{"prompt":[]}`, 400, "prompt: want a string"},
			{pathCompletions, `{"prompt":""}`, 400, "prompt: want at least one token, got none"},
			{pathCompletions, `{"prompt":["a","b"]}`, 400, "exactly one"},
			{pathCompletions, `{"prompt":[1,-2]}`, 400, "token ids from 0"},
			{pathCompletions, `{"prompt":[1,2.5]}`, 400, "token ids from 0"},
			{pathCompletions, `{"prompt":[2147483648]}`, 400, "token ids from 0"},
			{pathCompletions, `{"prompt":"a","model":"other"}`, 404, `model: want \"sim\"`},
			{pathCompletions, `{"prompt":"a","max_tokens":0}`, 400, "max_tokens: want an integer ≥ 1, got 0"},
			{pathCompletions, `{"prompt":"a","max_tokens":"5"}`, 400, "the body is not the JSON object"},
			{pathCompletions, `{"prompt":"a","max_tokens":5,"min_tokens":6}`, 400, "min_tokens: want an integer from 0 to the limit of 5, got 6"},
			{pathCompletions, `{"prompt":"a","n":2}`, 400, "n: want 1"},
			{pathCompletions, `{"prompt":"a","stream_options":{"include_usage":true}}`, 400, "stream_options: want stream: true"},
			{pathCompletions, `{"prompt":"` + text("a", 100) + `"}`, 400, "prompt: want at most 99 tokens, one fewer than the model's context, got 100"},
			{pathCompletions, `{"prompt":"` + strings.Repeat("a", maxBody) + `"}`, 413, "body: want at most 16 MiB"},
		} {
			r := b.post(b.Context(), c.path, "", c.body)
			var e struct {
				Error struct {
					Message, Type string
					Code          int
				}
			}
			if err := json.Unmarshal([]byte(r.body), &e); err != nil || r.status != c.status || e.Error.Code != c.status || !strings.Contains(r.body, c.want) {
				b.Errorf("%.60s: %d %s, want %d and %q", c.body, r.status, r.body, c.status, c.want)
			}
		}
		if got := b.tally.ended()[Refused]; got != 20 {
			b.Errorf("refused: got %d, want 20", got)
		}
	})
}
