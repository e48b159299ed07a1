//go:build replay

package replay_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"replayd/test/outside"
)

// Behind a router with two engines, sessions that carry their id, or send the router's token back, hit the prefix cache as if there was one
// engine, and none changes its replica. Without either, requests go round and hit less. The sessions are made up, or recorded ones of agents.
func TestSessionAffinity(t *testing.T) {
	for name, c := range map[string]struct {
		trace func(*testing.T) string
		hits  float64 // of an endless cache, in tokens
		round float64 // most of these hits without affinity
	}{
		"made up":  {madeUpSessions, 25 * (10 + 20 + 30) * 64, 0.9},
		"recorded": {recordedSessions, (343 + 3447 + 11127) * 64, 0.99}, // as README.md beside them says; their prompts grow little from turn to turn
	} {
		t.Run(name, func(t *testing.T) {
			path := c.trace(t)
			one := routed(t, path, 1, `headers: {X-Session-Id: "{session}"}`)
			header := routed(t, path, 2, `headers: {X-Session-Id: "{session}"}, session_field: session_id`)
			token := routed(t, path, 2, "echo_header: x-session-token")
			round := routed(t, path, 2, "user: none")
			t.Logf("prefix hits in tokens: one engine %v, by header %v, by token %v, in turns %v", one.hits, header.hits, token.hits, round.hits)
			if one.hits != c.hits || header.hits != c.hits || token.hits != c.hits {
				t.Errorf("want %v hits, got %v with one engine, %v by header and %v by token", c.hits, one.hits, header.hits, token.hits)
			}
			if most := c.round * c.hits; round.hits > most {
				t.Errorf("without affinity: want at most %v hits, got %v", most, round.hits)
			}
			for way, r := range map[string]result{"one engine": one, "header": header, "token": token} {
				if r.moved != 0 || r.series != 0 {
					t.Errorf("%s: want no session that changes its replica, got %d by the router and %v by the series", way, r.moved, r.series)
				}
			}
			if round.moved == 0 || float64(round.moved) != round.series {
				t.Errorf("without affinity: want as many changes as the router saw, %d, got %v", round.moved, round.series)
			}
			if all := token.requests; token.kept != float64(token.given) || token.missing != float64(all-token.given) || token.given < token.sessions {
				t.Errorf("want %d tokens kept of %d answers, got %v and %v missing", token.given, all, token.kept, token.missing)
			}
			if header.kept+header.missing != 0 {
				t.Errorf("want no tokens where none is configured, got %v kept, %v missing", header.kept, header.missing)
			}
			if n := len(header.ids); n != header.sessions {
				t.Errorf("want an id for each of %d sessions, got %d", header.sessions, n)
			}
			if len(token.ids)+len(round.ids) > 0 {
				t.Errorf("want no ids where none is configured, got %d and %d", len(token.ids), len(round.ids))
			}
		})
	}
}

// madeUpSessions writes 25 sessions of four turns that grow by 640 tokens each. Requests that go round two engines in the order of the trace
// change the engine of each session in each turn, as the number of sessions is odd.
func madeUpSessions(t *testing.T) string {
	var text strings.Builder
	for turn := range 4 {
		for session := range 25 {
			ids := make([]int, 10*(turn+1))
			for i := range ids {
				ids[i] = 1000*session + i
			}
			row := map[string]any{
				"timestamp": 500*turn + 20*session, "input_length": 64 * len(ids), "output_length": 3, "hash_ids": ids, "session_id": fmt.Sprint("s", session),
			}
			line, err := json.Marshal(row)
			if err != nil {
				t.Fatal(err)
			}
			text.Write(append(line, '\n'))
		}
	}
	return outside.Write(t, t.TempDir(), "sessions.jsonl", text.String())
}

// recordedSessions copies three small sessions of a coding agent to a folder.
func recordedSessions(t *testing.T) string {
	from := os.Getenv("REPLAYD_TRACES")
	if from == "" {
		t.Skip("REPLAYD_TRACES is not set: there are no recorded sessions")
	}
	dir := t.TempDir()
	for _, name := range []string{"trace_0504.json", "trace_0620.json", "trace_0624.json"} {
		data, err := os.ReadFile(filepath.Join(from, "weka", name))
		if err != nil {
			t.Fatal(err)
		}
		outside.Write(t, dir, name, string(data))
	}
	return dir
}

// A result is what one replay behind the router came to.
type result struct {
	hits     float64 // tokens that the engines found in their prefix caches
	moved    int     // requests that the router sent to another replica than the one before of their session
	series   float64 // the same by replayd's series
	requests int
	given    int     // answers with a token
	kept     float64 // the same by replayd's series
	missing  float64 // by replayd's series, answers without one
	sessions int
	ids      map[string]bool // session ids that the router saw
}

// routed replays the sessions once through a router with so many engines.
func routed(t *testing.T, path string, engines int, request string) (r result) {
	t.Helper()
	dir := t.TempDir()
	router := &router{replicas: map[string]string{}, ids: map[string]string{}, given: map[string]bool{}}
	var running []*outside.Process
	for i := range engines {
		address := outside.Address(t)
		p := start(t, dir, fmt.Sprint("sim", i), "sim", "--web.listen-address", address, "--slots", "512", "--prefill-rate", "1e9", "--decode-rate", "1e6",
			"--ttft", "2ms", "--itl", "100us", "--max-model-len", "400000", "--block-tokens", "64", "--cache-tokens", "40000000")
		p.Ready(t, http.DefaultClient, "http://"+address+"/health")
		running = append(running, p)
		router.add(t, "http://"+address)
	}
	front := httptest.NewServer(router)
	defer front.Close()
	records, listen := filepath.Join(dir, "records.jsonl"), outside.Address(t)
	config := outside.Write(t, dir, "replayd.yaml", fmt.Sprintf(`
targets: [{name: router, url: %q, replica_header: x-replica}]
records: {path: %q}
workloads:
  - name: w
    trace: {path: %q, block_tokens: 64, max_output: 4, over_limit: clip}
    speed: 1000
    turn_delay: {max: 20ms}
    repeat: {mode: once}
    prompt: {salt: session}
    max_wait: 0s
    request: {%s}
`, front.URL, records, path, request))
	daemon := start(t, dir, "serve", "serve", "--config", config, "--web.listen-address", listen)
	daemon.Ready(t, http.DefaultClient, "http://"+listen+"/-/ready")
	page := outside.See(t, "http://"+listen, "a loop that is over", func(p outside.Page) bool {
		return p.Sum("replayd_loops_completed_total") == 1
	})
	daemon.Term(t)
	for i, base := range router.engines {
		at, err := outside.Scrape(t.Context(), base)
		if err != nil {
			t.Fatal(err)
		}
		r.hits += at.Sum("vllm:prefix_cache_hits_total")
		running[i].Term(t)
	}
	if ok, all := page.Sum("replayd_requests_total", "ok"), page.Sum("replayd_requests_expected_total"); ok != all || all == 0 {
		t.Fatalf("want all of %v requests ok, got %v", all, ok)
	}
	r.series = page.Sum("replayd_session_replica_changes_total")
	r.requests, r.given = len(router.replicas), len(router.given)
	r.kept, r.missing = page.Sum("replayd_echo_header_answers_total", "kept"), page.Sum("replayd_echo_header_answers_total", "missing")
	r.ids, r.sessions, r.moved = router.judge(t, records)
	for i := range engines {
		want := 0.0
		for _, replica := range router.replicas {
			if replica == fmt.Sprint("engine-", i) {
				want++
			}
		}
		if got := page.Sum("replayd_replica_requests_total", fmt.Sprint("engine-", i)); got != want {
			t.Errorf("want %v requests of engine-%d, got %v", want, i, got)
		}
	}
	return r
}

// A router sends a request to the engine that its session's id hashes to, else to the one that its token names, else to the next in turn. It
// says which one answers, and gives a token to who has none, as llm-d's session affinity does.
type router struct {
	engines []string
	proxies []*httputil.ReverseProxy

	mu       sync.Mutex
	turns    int
	replicas map[string]string // by X-Request-Id
	ids      map[string]string // session ids, by X-Request-Id
	given    map[string]bool   // answers with a token, by X-Request-Id
	faults   []string
}

func (r *router) add(t *testing.T, engine string) {
	t.Helper()
	u, err := url.Parse(engine)
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprint("engine-", len(r.engines))
	proxy := httputil.NewSingleHostReverseProxy(u)
	proxy.FlushInterval = -1
	proxy.ModifyResponse = func(answer *http.Response) error {
		answer.Header.Set("X-Replica", name)
		if answer.Request.Header.Get("X-Session-Token") != name {
			answer.Header.Set("X-Session-Token", name)
			if id := answer.Request.Header.Get("X-Request-Id"); strings.HasPrefix(id, "w/") {
				r.mu.Lock()
				r.given[id] = true
				r.mu.Unlock()
			}
		}
		return nil
	}
	r.engines, r.proxies = append(r.engines, engine), append(r.proxies, proxy)
}

func (r *router) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	id, session := req.Header.Get("X-Request-Id"), req.Header.Get("X-Session-Id")
	body, err := io.ReadAll(req.Body)
	var asked struct {
		Session string `json:"session_id"`
	}
	if err == nil && len(body) > 0 {
		err = json.Unmarshal(body, &asked)
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	r.mu.Lock()
	if err != nil || asked.Session != "" && asked.Session != session {
		r.faults = append(r.faults, fmt.Sprintf("%s: session %q in the header, %q in the body, %v", id, session, asked.Session, err))
	}
	at := 0
	switch token := req.Header.Get("X-Session-Token"); {
	case session != "":
		h := fnv.New32a()
		_, _ = io.WriteString(h, session)
		at = int(h.Sum32()>>16) % len(r.proxies)
	case token != "":
		if _, err := fmt.Sscanf(token, "engine-%d", &at); err != nil || at >= len(r.proxies) {
			at = 0
			r.faults = append(r.faults, fmt.Sprintf("%s: the token %q", id, token))
		}
	default:
		at = r.turns % len(r.proxies)
		r.turns++
	}
	if strings.HasPrefix(id, "w/") {
		r.replicas[id] = fmt.Sprint("engine-", at)
		if session != "" {
			r.ids[id] = session
		}
	}
	r.mu.Unlock()
	r.proxies[at].ServeHTTP(w, req)
}

// judge holds the records to what the router did, and counts the sessions and the requests that another replica answered than the one of
// their session that ended before.
func (r *router) judge(t *testing.T, records string) (ids map[string]bool, sessions, moved int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, fault := range r.faults {
		t.Error(fault)
	}
	all, torn := outside.Lines[struct {
		ID, Session, Replica string
		End                  int64 `json:"end_ns"`
	}](t, records)
	if torn || len(all) != len(r.replicas) {
		t.Fatalf("want records of %d requests, got %d", len(r.replicas), len(all))
	}
	ids = map[string]bool{}
	last, named := map[string]string{}, map[string]string{}
	for _, one := range all { // in the order in which they ended
		if one.Replica != r.replicas[one.ID] {
			t.Errorf("%s: want replica %s in its record, got %q", one.ID, r.replicas[one.ID], one.Replica)
		}
		if before := last[one.Session]; before != "" && before != one.Replica {
			moved++
		}
		last[one.Session] = one.Replica
		if id := r.ids[one.ID]; id != "" {
			ids[id] = true
			if other := named[one.Session]; other != "" && other != id {
				t.Errorf("%s: session %s has two ids", one.ID, one.Session)
			}
			named[one.Session] = id
		}
	}
	return ids, len(last), moved
}
