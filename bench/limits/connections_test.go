//go:build bench && linux

package limits_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"replayd/bench/lab"
	"replayd/bench/rig"
	"replayd/test/outside"
)

// TestConnections shows how many connections are open beside the requests in flight, and what it costs a request to have none ready.
// The answers take 460 ms, and all plays run at once.
func TestConnections(t *testing.T) {
	s, steal := rig.ReadSize(t), rig.WatchSteal(t)
	span := 20 * s.Slice
	table := &lab.Table{
		Title: fmt.Sprintf("Connections over %v, mean and most at once, beside the requests in flight; answers of 460 ms. Times of requests: medians, ms.", span),
		Head: []string{
			"rows", "", "`connections`", "requests", "in flight", "most", "open", "most", "opened", "never used", "lateness", "TTFT",
			"TTFT from due", "its p99",
		},
	}
	var plays []*play
	for _, name := range []string{"poisson, 4/s", "20 at once every 5 s"} {
		draw := rand.New(rand.NewPCG(1, 2))
		var text strings.Builder
		for at, n := 0.0, 0; at < span.Seconds(); n++ {
			fmt.Fprintf(&text, `{"timestamp": %.3f, "input_length": 20, "output_length": 2}`+"\n", at*1e3)
			if name[0] == 'p' {
				at -= math.Log(1-draw.Float64()) / 4
			} else if (n+1)%20 == 0 {
				at += 5
			}
		}
		for _, secure := range []bool{false, true} {
			for _, mode := range []string{"kept", "each"} {
				plays = append(plays, &play{rows: name, trace: text.String(), secure: secure, mode: mode})
			}
		}
	}
	for _, p := range plays {
		p.start(t)
	}
	for _, p := range plays {
		p.end(t, span+outside.Patience, table)
	}
	rig.Results(t, "connections", steal, table)
}

// A play is replayd and a server that counts its connections.
type play struct {
	rows, trace, mode string
	secure            bool
	server            *httptest.Server
	client            *outside.Process
	records           string

	mu           sync.Mutex
	open, flying level
	used         map[net.Conn]bool
	opened       int
}

// A level is a number over time.
type level struct {
	now, most int
	began     time.Time
	since     time.Time
	area      float64
}

func (l *level) add(n int) {
	now := time.Now()
	if l.began.IsZero() {
		l.began, l.since = now, now
	}
	l.area += float64(l.now) * now.Sub(l.since).Seconds()
	l.since = now
	l.now += n
	l.most = max(l.most, l.now)
}

func (l *level) mean() float64 { return l.area / l.since.Sub(l.began).Seconds() }

func (p *play) start(t *testing.T) {
	t.Helper()
	p.used = map[net.Conn]bool{}
	p.server = httptest.NewUnstartedServer(http.HandlerFunc(p.answer))
	p.server.Config.ConnState = func(c net.Conn, state http.ConnState) {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch state {
		case http.StateNew:
			p.opened++
			p.open.add(1)
			p.used[c] = false
		case http.StateActive:
			p.used[c] = true
		case http.StateClosed, http.StateHijacked:
			p.open.add(-1)
		}
	}
	dir := t.TempDir()
	var args []string
	if p.secure {
		p.server.StartTLS()
		args = []string{"--http.config.file", outside.Write(t, dir, "client.yaml", "tls_config: {insecure_skip_verify: true}\n")}
	} else {
		p.server.Start()
	}
	t.Cleanup(p.server.Close)
	p.records = filepath.Join(dir, "records.jsonl")
	args = append([]string{
		"run", outside.Write(t, dir, "trace.jsonl", p.trace), "--url", p.server.URL, "--records", p.records, "--connections", p.mode,
		"--lanes", "64", "--log.level", "warn",
	}, args...)
	p.client = outside.Start(t, filepath.Join(dir, "replayd.out"), binary, args...)
}

func (p *play) answer(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		_, _ = fmt.Fprint(w, `{"data": [{"id": "m"}]}`)
		return
	}
	p.mu.Lock()
	p.flying.add(1)
	p.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	for i := range 2 {
		<-time.After(230 * time.Millisecond)
		_, _ = fmt.Fprintf(w, "data: {\"choices\": [{\"index\": 0, \"delta\": {\"content\": \" x%d\"}}]}\n\n", i)
		w.(http.Flusher).Flush()
	}
	_, _ = fmt.Fprint(w, "data: {\"choices\": [{\"index\": 0, \"delta\": {}, \"finish_reason\": \"length\"}],"+
		" \"usage\": {\"prompt_tokens\": 20, \"completion_tokens\": 2}}\n\ndata: [DONE]\n\n")
	p.mu.Lock()
	p.flying.add(-1)
	p.mu.Unlock()
}

// end waits for the end of the play and adds its row.
func (p *play) end(t *testing.T, within time.Duration, table *lab.Table) {
	t.Helper()
	p.client.WaitIn(t, within)
	if p.client.Err != nil {
		t.Fatalf("replayd: want exit 0, got %v: %s", p.client.Err, p.client.Said(t))
	}
	type record struct {
		ID       string `json:"id"`
		Outcome  string `json:"outcome"`
		Lateness int64  `json:"lateness_ns"`
		TTFT     int64  `json:"ttft_ns"`
		FromDue  int64  `json:"ttft_from_due_ns"`
	}
	all, err := lab.ReadLines[record](p.records)
	if err != nil {
		t.Fatal(err)
	}
	var late, ttft, due []float64
	for _, r := range all {
		if r.ID == "" { // a ledger
			continue
		}
		if r.Outcome != "ok" {
			t.Fatalf("%s: want ok, got %s", r.ID, r.Outcome)
		}
		late, ttft, due = append(late, float64(r.Lateness)/1e6), append(ttft, float64(r.TTFT)/1e6), append(due, float64(r.FromDue)/1e6)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	unused := 0
	for _, used := range p.used {
		if !used {
			unused++
		}
	}
	way := "plain"
	if p.secure {
		way = "TLS"
	}
	table.Add(p.rows, way, p.mode, fmt.Sprint(len(ttft)), lab.Number(p.flying.mean()), fmt.Sprint(p.flying.most), lab.Number(p.open.mean()),
		fmt.Sprint(p.open.most), fmt.Sprint(p.opened), fmt.Sprint(unused), lab.Number(lab.Median(late...)), lab.Number(lab.Median(ttft...)),
		lab.Number(lab.Median(due...)), lab.Number(lab.Sample(due).Quantile(0.99)))
}
