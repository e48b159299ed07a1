package replay

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/config"

	"replayd/internal/measure"
	"replayd/internal/metrics"
	"replayd/internal/openai"
	"replayd/internal/schedule"
	"replayd/internal/synth"
	"replayd/internal/token"
	"replayd/internal/trace"
)

// A fake is a server over net.Pipe in the bubble of a test. The first token of an answer comes after ttft and further
// tokens at intervals of itl, to the nanosecond.
type fake struct {
	ttft, itl  time.Duration
	refuse     atomic.Bool                   // dials fail
	refusal    error                         // of dials that fail; nil: the engine's
	slow       func(id string) time.Duration // added to ttft; nil: nothing
	status     func(id string) int           // 0: 200
	asked      func(id string)               // called for each request; nil: not called
	dials      time.Duration                 // time to connect
	models     string                        // body of the model list; "": one model
	prompt     atomic.Int64                  // prompt_tokens of an answer that is not streamed
	forgets    bool                          // keeps no bodies and no arrivals
	closeAfter int                           // answers on one connection before the server closes it; 0: never
	api        openai.API                    // "": completions
	says       func(id string) string        // text of a chunk; nil: " x"
	keyFile    string                        // file of the client's key; "": no key
	keyed      func(key string)              // called with each Authorization header; nil: not called
	uncounted  bool                          // answers carry no usage
	mute       chan struct{}                 // answers wait until it is closed; nil: no wait
	lines      func(id string) string        // header lines of an answer, each with its end; nil: none

	connections openai.ConnectionMode // "": kept
	slots       chan struct{}         // a connection needs one until it ends; nil: no limit

	mu       sync.Mutex
	arrivals map[string]time.Time // by X-Request-Id
	order    []string
	bodies   map[string][]byte
	heads    map[string]http.Header // of requests
	conns    []net.Conn
	flying   int
	most     int // highest number of requests in flight
	open     int // connections
	mostOpen int
	unused   int // connections that ended without a request
	running  sync.WaitGroup
}

// pass lets d of virtual time go by. It creates no timer for 0: with the race detector, Go crashes when goroutines of a
// bubble receive from timers that have fired (golang/go#78156).
func pass(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}

func (f *fake) dial(context.Context, string, string) (net.Conn, error) {
	if f.refuse.Load() && f.refusal != nil {
		return nil, f.refusal
	}
	if f.refuse.Load() {
		return nil, fmt.Errorf("connection refused")
	}
	if f.dials > 0 {
		pass(f.dials)
	}
	near, far := net.Pipe()
	f.mu.Lock()
	f.conns = append(f.conns, far)
	f.open++
	f.mostOpen = max(f.mostOpen, f.open)
	f.mu.Unlock()
	f.running.Go(func() { f.serve(far) })
	return near, nil
}

func (f *fake) serve(c net.Conn) {
	asked := false
	defer func() {
		_ = c.Close()
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.open--; !asked {
			f.unused++
		}
	}()
	if f.slots != nil {
		f.slots <- struct{}{}
		defer func() { <-f.slots }()
	}
	in := bufio.NewReader(c)
	for n := 0; f.closeAfter == 0 || n < f.closeAfter; n++ {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		asked = true
		id := req.Header.Get("X-Request-Id")
		now := time.Now()
		f.mu.Lock()
		if f.asked != nil {
			f.asked(id)
		}
		if !f.forgets {
			f.arrivals[id] = now
			f.order = append(f.order, id)
		}
		f.flying++
		f.most = max(f.most, f.flying)
		f.mu.Unlock()
		body, _ := io.ReadAll(req.Body)
		f.mu.Lock()
		if !f.forgets {
			f.bodies[id], f.heads[id] = body, req.Header
		}
		f.mu.Unlock()
		ok := f.answer(c, req, id, body)
		f.mu.Lock()
		f.flying--
		f.mu.Unlock()
		if !ok {
			return
		}
	}
}

func (f *fake) answer(c net.Conn, req *http.Request, id string, asked []byte) bool {
	if f.mute != nil {
		<-f.mute
	}
	if f.keyed != nil && bytes.Contains(asked, []byte(`"stream":true`)) {
		f.keyed(req.Header.Get("Authorization"))
	}
	said := ` x`
	if f.says != nil {
		said = f.says(id)
	}
	if id != "" && id != "replayd/probe" && !bytes.Contains(asked, []byte(`"stream":true`)) {
		pass(f.ttft)
		body := fmt.Sprintf(`{"choices":[{"text":%q,"finish_reason":"stop"}],"usage":{"prompt_tokens":4,"completion_tokens":3}}`, said)
		_, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		return err == nil
	}
	if req.Method == http.MethodGet || !bytes.Contains(asked, []byte(`"stream":true`)) {
		body := `{"data":[{"id":"m","owned_by":"vllm"}]}`
		f.mu.Lock()
		if f.models != "" {
			body = f.models
		}
		f.mu.Unlock()
		if req.Method != http.MethodGet {
			body = fmt.Sprintf(`{"choices":[{"text":" x"}],"usage":{"prompt_tokens":%d}}`, f.prompt.Load())
		}
		_, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		return err == nil
	}
	if f.status != nil {
		if s := f.status(id); s != 0 {
			_, err := fmt.Fprintf(c, "HTTP/1.1 %d x\r\nContent-Length: 0\r\n\r\n", s)
			return err == nil
		}
	}
	lines := ""
	if f.lines != nil {
		lines = f.lines(id)
	}
	if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\n"+lines+"Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"); err != nil {
		return false
	}
	event := func(data string) bool {
		data = "data: " + data + "\n\n"
		_, err := fmt.Fprintf(c, "%x\r\n%s\r\n", len(data), data)
		return err == nil
	}
	const n = 3
	for i := range n {
		wait := f.itl
		if i == 0 {
			wait = f.ttft
			if f.slow != nil {
				wait += f.slow(id)
			}
		}
		pass(wait)
		if !event(fmt.Sprintf(`{"choices":[{"index":0,"text":%q,"finish_reason":null}]}`, said)) {
			return false
		}
	}
	if !event(`{"choices":[{"index":0,"text":"","finish_reason":"length"}]}`) ||
		!f.uncounted && !event(fmt.Sprintf(`{"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":%d}}`, n)) || !event("[DONE]") {
		return false
	}
	_, err := io.WriteString(c, "0\r\n\r\n")
	return err == nil
}

// cutAll closes every connection, like an engine that restarts.
func (f *fake) cutAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		_ = c.Close()
	}
}

// kept is an observer that keeps deep copies, because an observer must not retain the requests themselves.
type kept struct {
	mu      sync.Mutex
	all     []measure.Request
	dropped map[measure.DropReason]int
}

func (k *kept) Observe(r *measure.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c := *r
	c.Timeline.Chunks = append([]time.Duration(nil), r.Timeline.Chunks...)
	c.Text = bytes.Clone(r.Text)
	k.all = append(k.all, c)
}

func (k *kept) outcomes() map[measure.Outcome]int {
	m := map[measure.Outcome]int{}
	for _, r := range k.all {
		m[r.Outcome]++
	}
	return m
}

// source is a trace in memory. Rows without lengths get 4 input and 3 output tokens.
func source(rows ...trace.Record) schedule.Source {
	for i := range rows {
		if rows[i].InputTokens == 0 {
			rows[i].InputTokens = 4
		}
		if rows[i].OutputTokens == 0 {
			rows[i].OutputTokens = 3
		}
	}
	return source0(rows...)
}

// source0 is source without the default lengths.
func source0(rows ...trace.Record) schedule.Source {
	s := schedule.Source{HasTimestamps: true}
	last := map[string]int{}
	for i := range rows {
		_, known := last[rows[i].Session]
		rows[i].Number, rows[i].First = i, rows[i].Session != "" && !known
		last[rows[i].Session] = i
		s.Last = max(s.Last, rows[i].Offset)
	}
	for session, i := range last {
		rows[i].Last = session != ""
	}
	s.Rows = func(from time.Duration) (func() (trace.Record, error), error) {
		i := 0
		for i < len(rows) && rows[i].Offset < from {
			i++
		}
		return func() (trace.Record, error) {
			if i == len(rows) {
				return trace.Record{}, io.EOF
			}
			i++
			return rows[i-1], nil
		}, nil
	}
	return s
}

func every(n int, gap time.Duration) schedule.Source {
	rows := make([]trace.Record, n)
	for i := range rows {
		rows[i].Offset = time.Duration(i) * gap
	}
	return source(rows...)
}

// bench is a runner with a fake server, a target, an observer and a registry of its own.
type bench struct {
	*Runner
	fake     *fake
	kept     *kept
	registry *prometheus.Registry
	client   *openai.Client
	target   *Target
	paces    bool // the runner has a pacer of its own
}

// http returns the client's HTTP configuration.
func (f *fake) http() config.HTTPClientConfig {
	c := config.DefaultHTTPClientConfig
	c.BearerTokenFile = f.keyFile
	return c
}

func newBench(t *testing.T, src schedule.Source, o schedule.Options, f *fake, change func(*Workload)) *bench {
	t.Helper()
	f.arrivals, f.bodies, f.heads = map[string]time.Time{}, map[string][]byte{}, map[string]http.Header{}
	if o.Speed == 0 {
		o.Speed = 1
	}
	if o.Arrival == "" {
		o.Arrival = schedule.Exact
	}
	plan, err := schedule.New(src, o)
	if err != nil {
		t.Fatal(err)
	}
	api := openai.Completions
	if f.api != "" {
		api = f.api
	}
	client, err := openai.New(openai.Target{
		Options: openai.Options{
			URL: "http://engine", API: api, Output: openai.OutputExact, HTTP: f.http(), Replica: "X-Replica",
			Connections: f.connections, ConnectAhead: 250 * time.Millisecond,
			Timeouts: openai.Timeouts{Connect: time.Second, FirstToken: time.Minute, Stall: time.Minute, Total: time.Hour},
		},
		Name: "t", Dial: f.dial, UserAgent: "replayd/test",
	})
	if err != nil {
		t.Fatal(err)
	}
	words, err := token.List("main")
	if err != nil {
		t.Fatal(err)
	}
	prompter, err := synth.New(synth.Options{Words: words, Form: synth.Text})
	if err != nil {
		t.Fatal(err)
	}
	k := &kept{dropped: map[measure.DropReason]int{}}
	log := slog.New(slog.DiscardHandler)
	registry := prometheus.NewRegistry()
	target := NewTarget(TargetOptions{Client: client, Named: func(string) {}, Log: log})
	own := NewPacer(NewTimers())
	w := Workload{
		Traffic: Traffic{
			Name: "w", Plan: plan, Prompt: prompter, Salt: synth.SaltLoop, LengthLimits: LengthLimits{OverLimit: Filter},
			Sending: Sending{Lanes: 16, Overload: Wait, MaxWait: 10 * time.Second},
		},
		Hooks: Hooks{Observers: []Observer{k}, Dropped: func(why measure.DropReason, n int) {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.dropped[why] += n
		}},
		Environment: Environment{
			Client: client, Target: target, Log: log, Drain: 30 * time.Second, Pacer: own,
			Count: metrics.NewMeter(registry).Workload(metrics.Labels{Workload: "w", Target: "t"},
				metrics.WorkloadOptions{Replicas: true, Echo: true}),
		},
	}
	if change != nil {
		change(&w)
	}
	r := New(w)
	return &bench{r, f, k, registry, client, target, w.Pacer == own}
}

// run plays the plan to its end in the bubble.
func (b *bench) run(t *testing.T, ctx, hard context.Context) {
	t.Helper()
	side, end := context.WithCancel(context.Background())
	var watch sync.WaitGroup
	watch.Go(func() {
		if err := b.target.Run(side); err != nil {
			t.Error(err)
		}
	})
	if err := b.Run(ctx, hard); err != nil {
		t.Error(err)
	}
	end()
	watch.Wait()
	b.client.Close()
	b.fake.running.Wait()
}

// counter returns the value of a series, selected by name and by the value of one label ("" for the sum of all series).
// The value of a histogram is its count.
func (b *bench) counter(t *testing.T, name, label string) float64 {
	t.Helper()
	families, err := b.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if label == "" && l.GetName() == "workload" || l.GetValue() == label && label != "" {
					sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
				}
			}
		}
	}
	return sum
}
