//go:build faults

package faults_test

import (
	"crypto/tls"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"replayd/internal/sim"

	"replayd/test/outside"
)

// Faults of all kinds on about every third answer, an engine that is killed every 5 s, a reload every 10 s, a scrape a
// second. At each scrape the ledger balances and no counter has fallen. Each row of each plan is one record or one
// drop, each record has the outcome that the proxy's actions must give, and the engine saw no other requests. At the
// end the daemon holds no more resources than after the first minute.
func TestSoak(t *testing.T) {
	length := outside.Knob(t, "FAULTS_FOR", 40*time.Second, time.ParseDuration)
	seed := outside.Knob(t, "FAULTS_SEED", 1, func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) })
	faults := slices.Concat(gentle, harmful, broken)
	s := newSoak(t, seed, faults)
	stolen, still := outside.StealTime(), watchStills(t)
	s.daemon, _ = s.Serve(t, "--web.enable-pprof")
	began := time.Now()
	w := outside.Watch(t, s.URL(), time.Second, "rest")
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	s.reload(t)
	var early *level
	for n := 1; time.Since(began) < length && !t.Failed(); n++ {
		<-tick.C
		s.restart(t)
		if n%2 == 0 {
			s.reload(t)
		}
		if early == nil && time.Since(began) >= min(time.Minute, length/2) {
			<-tick.C // the last change has been handed over by then
			early = s.rest(t, "first-minute")
		}
	}
	<-tick.C
	late := s.rest(t, "end")
	w.Stop()
	stop := time.Now()
	final := s.standing(t)
	s.daemon.Term(t, 40*time.Second)
	t.Logf("%v: %d lives of the engine, %d reloads, %d scrapes; counters that fell: %d of %d; workloads that came back: %d times; steal %v",
		time.Since(began).Round(time.Second), s.Sims, s.reloads, w.Scrapes, w.Fallen, len(w.Last), w.Returned, outside.StealTime()-stolen)

	records, _ := outside.Records(t, s.Records, false)
	log := outside.EngineLog[sim.LogEntry](t, s.Sim, s.Log)
	passages := s.proxy.seen(t)
	t.Logf("%d passages, %d requests that ended at the engine, %d records", len(passages), len(log), len(records))
	tally := verdicts(t, faults, passages, records, log, still)
	t.Log("\n" + tally.table(faults))
	s.counted(t, final, records)
	for _, c := range s.courses {
		from := stop
		for _, r := range records {
			if name, _, _ := outside.Place(t, r.ID); name == c.name && r.Planned < from.UnixNano() {
				from = time.Unix(0, r.Planned)
			}
		}
		finished, dropped := final.Ended(c.name)
		rows, missing := outside.Exactly(t, c.name, nil, c.shifts, records, from, stop, int(dropped))
		t.Logf("%-10s %d shifts; %d rows due, %v finished, %v dropped, %d without a record", c.name, len(c.shifts), rows, finished, dropped, missing)
		if rows == 0 || finished == 0 {
			t.Errorf("%s: want requests, got %d due, %v finished", c.name, rows, finished)
		}
	}
	for line := range strings.Lines(s.daemon.Said(t)) {
		if strings.Contains(line, "panic") || strings.Contains(line, "fatal error") || strings.Contains(line, "DATA RACE") || strings.Contains(line, "level=ERROR") {
			t.Errorf("log: %s", line)
		}
	}
	if early == nil {
		t.Fatal("want a rest after the first minute, there was none")
	}
	early.compare(t, late)
}

// A soak is the state of the test.
type soak struct {
	*stage
	proxy   *proxy
	daemon  *outside.Process
	address string // of the proxy
	secure  string // the same, over TLS
	cert    string
	reloads int
	courses []*course
}

// A course is what a workload had to send during the test.
type course struct {
	name, target string
	turn         int // of a guest; 0: not a guest
	rows         []outside.Row
	speed        float64
	every        time.Duration
	on           bool
	shifts       []outside.Shift
	path         string
}

func newSoak(t *testing.T, seed uint64, faults []fault) *soak {
	t.Helper()
	s := &soak{stage: newStage(t, "--ttft", "20ms", "--itl", "4ms", "--chunk-tokens", "1")}
	s.proxy = newProxy(t, s.Engine, seed, schedule{seed, faults}.choose)
	outside.Certificate(t, s.Dir)
	s.cert = filepath.Join(s.Dir, "cert.pem")
	pair, err := tls.LoadX509KeyPair(s.cert, filepath.Join(s.Dir, "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	s.address = s.proxy.listen(t, nil)
	s.secure = s.proxy.listen(t, &tls.Config{Certificates: []tls.Certificate{pair}})
	for i, c := range []course{
		{name: "rest", target: "sim", rows: []outside.Row{{Input: 20, Output: 20}}, on: true},
		{name: "plain", target: "sim"},
		{name: "secure", target: "tls"},
		{name: "whole", target: "json"},
		{name: "changing", target: "sim"},
		{name: "guest", target: "sim", turn: 1},
		{name: "secure-guest", target: "tls", turn: 2},
		{name: "whole-guest", target: "json", turn: 3},
	} {
		if c.rows == nil {
			c.rows = outside.Plain(int(28*soakRate), soakRate, 50+i, soakOutput, uint64(i))
		}
		c.speed, c.every, c.path = 1, soakEvery, filepath.Join(s.Dir, c.name+".jsonl")
		outside.Put(t, c.path, outside.Trace(c.rows))
		s.courses = append(s.courses, &c)
	}
	now := time.Now() // the daemon is up soon after
	s.courses[0].shifts = []outside.Shift{{From: now, To: now.Add(20 * time.Second), Plan: s.courses[0].plan()}}
	s.Write(t, s.yaml())
	return s
}

// Rows a second of each workload, and tokens of each answer: so
// many that an answer just too slow reaches its total timeout.
const (
	soakRate   = 5
	soakOutput = 24
	soakEvery  = 30 * time.Second
)

func (c *course) plan() *outside.Plan {
	if !c.on {
		return nil
	}
	return &outside.Plan{Rows: c.rows, Speed: c.speed, Every: c.every}
}

func (s *soak) yaml() string {
	var b strings.Builder
	limits := fmt.Sprintf("timeouts: {first_token: %v, stall: %v, total: %v}, metrics: {interval: 1s}", firstTokenLimit, stallLimit, totalLimit)
	fmt.Fprintf(&b, `targets:
- {name: sim, url: "http://%s", %s}
- {name: json, url: "http://%s", stream: false, %s}
- {name: tls, url: "https://%s", http: {tls_config: {ca_file: %q}}, %s}
records: {path: %q, max_bytes: 4MiB, keep: 500, gzip: true}
workloads:
`, s.address, limits, s.address, limits, s.secure, s.cert, limits, s.Records)
	for _, c := range s.courses {
		if c.on {
			fmt.Fprintf(&b, "- {name: %s, target: %s, trace: {path: %q}, speed: %v, repeat: {every: %v}, lanes: 512}\n", c.name, c.target, c.path, c.speed, c.every)
		}
	}
	return b.String()
}
