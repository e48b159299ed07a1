package daemon

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/canary"
)

// A faultyEngine answers both sides of a comparison, each under its own host, and logs what it gets. One side fails at random.
type faultyEngine struct {
	faulty string // host
	rates  [4]float64

	mu     sync.Mutex
	rng    *rand.Rand
	log    map[string]map[string]bool // ids by host
	failed map[string]bool            // rows that the faulty side failed
}

// Faults of a request.
const (
	status500 = iota
	disconnect
	hang // until the timeout of the first token
	slow // is no failure
)

func (e *faultyEngine) answer(rw http.ResponseWriter, r *http.Request, _ string) bool {
	_, row, _ := strings.Cut(r.Header.Get("X-Request-Id"), "/")
	e.mu.Lock()
	fault := -1
	again := e.log[r.Host][row] // on another connection: it fails again
	e.log[r.Host][row] = true
	if r.Host == e.faulty {
		for kind, rate := range e.rates {
			if e.rng.Float64() < rate {
				fault = kind
			}
		}
		switch {
		case again && e.failed[row]:
			fault = disconnect
		case fault >= 0 && fault != slow:
			e.failed[row] = true
		}
	}
	e.mu.Unlock()
	switch fault {
	case status500:
		http.Error(rw, "x", http.StatusInternalServerError)
	case disconnect:
		panic(http.ErrAbortHandler)
	case hang:
		<-r.Context().Done()
	case slow:
		<-time.After(3 * time.Second)
		return false
	default:
		return false
	}
	return true
}

// madeSessions returns a trace of sessions, and which rows come after which: chains, or graphs with forks and joins.
func madeSessions(rng *rand.Rand) (text string, after [][]int) {
	var b strings.Builder
	graphs := rng.IntN(3) > 0
	if graphs {
		b.WriteString(`{"schema":"replayd.sessions.v1","block_size":64}` + "\n")
	}
	for s := range 3 + rng.IntN(6) {
		var own []int
		start := rng.IntN(5000)
		for turn := range 1 + rng.IntN(14) {
			row := len(after)
			var parents []int
			if turn > 0 {
				parents = []int{row - 1}
			}
			if !graphs {
				fmt.Fprintf(&b, `{"session_id":"s%d","timestamp":%d,"input_length":%d,"output_length":3}`+"\n", s, start, 20+row)
				start += 100 + rng.IntN(3000)
				after, own = append(after, parents), append(own, row)
				continue
			}
			var edges []string
			if turn > 0 {
				parents = nil
				for range 1 + rng.IntN(3) {
					if p := own[max(0, len(own)-1-rng.IntN(4))]; !slices.Contains(parents, p) {
						parents = append(parents, p)
						edges = append(edges, fmt.Sprintf(`{"row":%d,"wait":%d}`, p, rng.IntN(4000)))
					}
				}
			}
			fmt.Fprintf(&b, `{"row":%d,"after":[%s],"timestamp":%d,"input_length":%d,"output_length":3,"session_id":"s%d"}`+"\n",
				row, strings.Join(edges, ","), start, 20+row, s)
			after, own = append(after, parents), append(own, row)
		}
	}
	return b.String(), after
}

// A session that had failed on the candidate when the evidence began anew does not count against it afterwards.
func TestSessionThatFailedBeforeTheEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, conf := twoServers(t, 1)
		var b strings.Builder
		for row := range 24 {
			fmt.Fprintf(&b, `{"session_id":"s%d","timestamp":%d,"input_length":%d,"output_length":3}`+"\n", row%2, 1000*row, 20+row)
		}
		w.token = func(*http.Request) time.Duration { return 40 * time.Millisecond }
		w.answers = func(rw http.ResponseWriter, r *http.Request, _ string) bool {
			if r.Host != "candidate" || !strings.HasSuffix(r.Header.Get("X-Request-Id"), "/2") {
				return false
			}
			http.Error(rw, "x", http.StatusInternalServerError)
			return true
		}
		conf.Workloads[0] = once("load", "stable", w.put(b.String()))
		conf.Workloads[0].Speed = 1
		w.start(conf, true)
		pass(12 * time.Second)
		before := w.compared().Judgment
		w.restart("rollout")
		for _, one := range w.g.workloads {
			<-one.over
		}
		pass(2 * time.Second)
		after := w.compared()
		first, then, all := before.Pairs, after.Judgment.Pairs, after.Counters.Totals()
		if first.Bad != [2]int64{0, 5} || then.Bad != [2]int64{} || then.Voids[canary.VoidRestarted] == 0 || then.Judged < 5 || all.Open() != 0 || all.Due != 24 {
			t.Errorf("before the restart %+v, after it %+v; all: %+v of %d", first, then, all.Pairs, all.Due)
		}
		w.end()
	})
}

// In comparisons of sessions with random faults on one side, all pairs that were due are judged; bad are the requests that this side failed, and the rows
// after them, and none of the other side; and the requests are those in the engines' logs.
func TestComparisonsOfSessions(t *testing.T) {
	lives := 15
	if n, err := strconv.Atoi(os.Getenv("COMPARISONS_OF_SESSIONS")); err == nil {
		lives = n
	}
	var all struct{ rows, judged, bad, unsent, void int64 }
	for seed := range uint64(lives) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 5))
			w, _, conf := twoServers(t, 1)
			text, after := madeSessions(rng)
			faulty := []string{"baseline", "candidate"}[rng.IntN(2)]
			e := &faultyEngine{
				faulty: faulty, rng: rng, failed: map[string]bool{}, log: map[string]map[string]bool{"baseline": {}, "candidate": {}},
				rates: [4]float64{0.08 * rng.Float64(), 0.05 * rng.Float64(), 0.05 * rng.Float64(), 0.2 * rng.Float64()},
			}
			w.answers = e.answer
			w.token = func(*http.Request) time.Duration { return 40 * time.Millisecond } // to open a connection takes 1 ms of it
			for i := range conf.Targets {
				conf.Targets[i].Timeouts.FirstToken = 20 * time.Second
			}
			load := once("load", "stable", w.put(text))
			load.Speed = 1
			conf.Workloads[0] = load
			w.start(conf, true)
			for _, one := range w.g.workloads {
				<-one.over
			}
			pass(2 * time.Second)
			last := w.compared()
			totals := last.Counters.Totals()
			w.end()

			side, other, sound := canary.Baseline, canary.Candidate, "candidate"
			if faulty == "candidate" {
				side, other, sound = other, side, "baseline"
			}
			bad, unsent := int64(0), int64(0)
			lost := make([]bool, len(after))
			for row, parents := range after {
				id := fmt.Sprint("0/", row)
				stranded := slices.ContainsFunc(parents, func(p int) bool { return lost[p] })
				lost[row] = stranded || e.failed[id]
				if stranded {
					unsent++
				}
				if lost[row] {
					bad++
				}
				if stranded == e.log[faulty][id] || !e.log[sound][id] {
					t.Errorf("seed %d: row %d comes after a failure: %t; it is in the logs: %t and %t", seed, row, stranded, e.log[faulty][id], e.log[sound][id])
				}
			}
			pairs := totals.Pairs
			if rows := int64(len(after)); totals.Due != rows || pairs.Judged+pairs.Void != rows || totals.Open() != 0 {
				t.Errorf("seed %d: %d rows, %d pairs due, %+v", seed, rows, totals.Due, pairs)
			}
			if pairs.Void != 0 || pairs.Bad[side] != bad || pairs.Bad[other] != 0 {
				t.Errorf("seed %d: want %d bad on the %v, got %+v", seed, bad, side, pairs)
			}
			for of, host := range []string{"baseline", "candidate"} {
				if got := totals.Requests[of]; got.Sent != int64(len(e.log[host])) || got.Unsent != int64(len(after)-len(e.log[host])) {
					t.Errorf("seed %d: %s has %d requests in its log, of %d rows; counted: %+v", seed, host, len(e.log[host]), len(after), got)
				}
			}
			all.rows, all.judged, all.void = all.rows+totals.Due, all.judged+pairs.Judged, all.void+pairs.Void
			all.bad, all.unsent = all.bad+bad, all.unsent+unsent
		})
	}
	t.Logf("%d comparisons: %d pairs due, %d judged, %d void; %d bad on the side that failed, %d of them never sent", lives, all.rows, all.judged, all.void, all.bad, all.unsent)
	if all.unsent == 0 {
		t.Error("no session failed in its middle")
	}
}
