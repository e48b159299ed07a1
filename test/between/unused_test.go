//go:build between

package between_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"replayd/bench/lab"
	"replayd/test/outside"
)

// places is the limit of a server on its connections.
const places = 8

// limited is Envoy with a limit. It closes a connection beyond it at once.
var limited = configuration{"envoy", "envoy", envoy(fmt.Sprintf(`
      - name: envoy.filters.network.connection_limit
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.connection_limit.v3.ConnectionLimit
          stat_prefix: limit
          max_connections: %d`, places))}

// Connections that carry no request are given back: another user gets in although replayd had all places.
func TestUnusedConnections(t *testing.T) {
	programs := install(t)
	at, free := make(chan struct{}, 10*places), make(chan struct{})
	answered := stream(0, 0, tokens)
	e := newEngine(t, func(w http.ResponseWriter, r *http.Request, c *call) {
		if c.id != "" {
			at <- struct{}{}
			<-free
		}
		answered(w, r, c)
	})
	b := start(t, programs, limited, e)
	s := outside.NewStageAlone(t, binary)
	due := append(make([]time.Duration, places), time.Hour)
	// Neither the engine's page nor a probe takes a place.
	s.Write(t, fmt.Sprintf(`targets: [{name: engine, url: %q, model: m, idle: 4s, metrics: {interval: 0}}]
records: {path: %q}
workloads: [{name: w, trace: {path: %q}, repeat: {mode: once}, prompt: {calibrate: false}}]
`, b.url(), s.Records, outside.Write(t, s.Dir, "trace.jsonl", trace(due))))
	s.Serve(t)
	wait(t, "requests at the engine", at, places)
	user := stranger(t)
	if status, _, err := outside.Call(t.Context(), user, http.MethodGet, b.url()+"/v1/models"); err == nil {
		t.Errorf("want no place for another user beside %d requests, got %d", places, status)
	}
	close(free)
	outside.See(t, s.URL(), "all answers", func(p outside.Page) bool {
		return p.Sum("replayd_requests_total", "ok") == places
	})
	// From here on replayd has nothing to send for an hour.
	outside.Until(t, func() error {
		status, _, err := outside.Call(t.Context(), user, http.MethodGet, b.url()+"/v1/models")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("want an answer to another user, got %d", status)
		}
		return err
	})
	outside.Until(t, func() error { // the user's own are closed by now, too
		clients, err := open()
		if n := len(clients[port(b.address)]); err == nil && n > 0 {
			err = fmt.Errorf("want no connection, got %d", n)
		}
		return err
	})
}

// The table has the refusals of a server with a limit, for replayd and for an independent client. The two play the
// same rows at 1.8 requests in flight on average. uvicorn refuses a request where 8 connections are open, that of the
// request among them. A busy machine may have more at once than the schedule, so the number is not judged. Judged is
// that each refusal is one request with one outcome.
func TestLimitedConcurrency(t *testing.T) {
	programs, watch := install(t), newSampler(t)
	c := configuration{"uvicorn --limit-concurrency", "uvicorn", uvicornWith("--limit-concurrency", fmt.Sprint(places))}
	table := &lab.Table{
		Title: fmt.Sprintf("uvicorn with --limit-concurrency %d, a Poisson of 4 rows/s over %v.", places, length),
		Head:  []string{"rows", "in flight by the schedule, most", "client", "outcomes", "open", "most", "opened"},
	}
	var plays []*play
	for seed := range uint64(3) {
		e := newEngine(t, stream(firstWait, tokenGap, tokens))
		b := start(t, programs, c, e)
		plays = append(plays, &play{name: fmt.Sprint("seed ", seed+2), engine: e, address: b.address, sampler: watch})
	}
	due := func(i int) []time.Duration { return poisson(uint64(i) + 2) }
	for i, p := range plays {
		p.begin(t, due(i))
	}
	for _, p := range plays {
		p.end(t)
	}
	for i, p := range plays {
		p.beginClient(t, due(i))
	}
	for i, p := range plays {
		p.endClient(t)
		rows, got, seen := len(due(i))-p.replayd.missed(), p.replayd.outcomes(), p.engine.seen("replayd")
		if len(p.replayd.records) != rows || got["ok"]+got["http_5xx"] != rows || len(seen) != got["ok"] {
			t.Errorf("%s: want %d requests that are answered or refused, got %s, and %d at the engine",
				p.name, rows, counted(got), len(seen))
		}
		for _, r := range p.replayd.records {
			if r.Outcome == "http_5xx" && (r.Status != http.StatusServiceUnavailable || r.Retried) {
				t.Errorf("%s: want 503 once, got %d, retried: %v", r.ID, r.Status, r.Retried)
			}
		}
		for who, outcomes := range []map[string]int{got, p.client.outcomes()} {
			table.Add(fmt.Sprintf("%s: %d", p.name, rows), fmt.Sprint(mostInFlight(due(i))), []string{"replayd", "client"}[who],
				counted(outcomes), lab.Number(p.open[who].mean()), fmt.Sprint(p.open[who].most),
				fmt.Sprint(len(p.open[who].clients)))
		}
	}
	t.Logf("\n%s", table)
}

// mostInFlight returns how many rows are in flight at once, if each takes as long as the engine does.
func mostInFlight(due []time.Duration) (most int) {
	first := 0
	for i, at := range due {
		for due[first]+firstWait+(tokens-1)*tokenGap <= at {
			first++
		}
		most = max(most, i+1-first)
	}
	return most
}
