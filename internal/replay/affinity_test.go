package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
	"replayd/internal/schedule"
	"replayd/internal/trace"
)

// named has requests carry their session's id in a header and in the body.
func named(w *Workload) {
	w.Request = RequestFields{Headers: map[string]string{"X-Session-Id": "{session}"}, SessionField: "session_id", Seed: 7}
}

// sessions returns the session ids that requests carried, by X-Request-Id. The header and the body agree.
func (b *bench) sessions(t *testing.T) map[string]string {
	t.Helper()
	ids := map[string]string{}
	for id, head := range b.fake.heads {
		var body struct {
			Session string `json:"session_id"`
		}
		if id == "" || id == "replayd/probe" {
			want(t, "session of a probe", head.Get("X-Session-Id"), "")
			continue
		}
		if err := json.Unmarshal(b.fake.bodies[id], &body); err != nil {
			t.Fatal(err)
		}
		want(t, id+" in the body", body.Session, head.Get("X-Session-Id"))
		ids[id] = body.Session
	}
	return ids
}

// The requests of a session have one id in a loop, sub-agents among them. All other sessions, rows without a session and loops have others. Both
// shards of a replay, a replay that was restarted in the middle of a loop, and the other side of a comparison send the same ids.
func TestSessionIDs(t *testing.T) {
	play := func(t *testing.T, shard schedule.Shard, late time.Duration, change func(*Workload)) (ids map[string]string) {
		synctest.Test(t, func(t *testing.T) {
			src := source(
				trace.Record{Session: "a"}, trace.Record{Session: "b", Offset: 10 * time.Second}, trace.Record{Session: "a", Agent: "x", Offset: 11 * time.Second},
				trace.Record{Offset: 12 * time.Second}, trace.Record{Offset: 13 * time.Second}, trace.Record{Session: "b", Offset: 14 * time.Second},
			)
			pass(late)
			o := schedule.Options{
				Repeat: schedule.Repeat{Mode: schedule.Loops, Align: schedule.WallClock, Every: time.Minute},
				Shard:  shard,
			}
			b := newBench(t, src, o, &fake{}, func(w *Workload) {
				named(w)
				if change != nil {
					change(w)
				}
			})
			ctx, stop := context.WithTimeout(t.Context(), 118*time.Second-late)
			defer stop()
			b.run(t, ctx, t.Context())
			ids = b.sessions(t)
		})
		return ids
	}
	whole := play(t, schedule.Shard{}, 0, nil)
	loops := map[string]map[int]string{} // by loop: rows
	for id, session := range whole {
		var row int
		loop := id[:strings.LastIndexByte(id, '/')]
		if _, err := fmt.Sscan(id[strings.LastIndexByte(id, '/')+1:], &row); err != nil {
			t.Fatal(err)
		}
		if loops[loop] == nil {
			loops[loop] = map[int]string{}
		}
		loops[loop][row] = session
	}
	want(t, "loops", len(loops), 2)
	all := map[string]bool{}
	for loop, rows := range loops {
		if _, begun := rows[0]; begun { // the first loop has begun before the replay
			want(t, loop+" sub-agent", rows[2], rows[0])
		}
		want(t, loop+" later turn", rows[5], rows[1])
		for _, session := range rows {
			all[session] = true
		}
	}
	want(t, "ids in two loops", len(all), 8)

	halves := play(t, schedule.Shard{Index: 0, Of: 2}, 0, nil)
	maps.Copy(halves, play(t, schedule.Shard{Index: 1, Of: 2}, 0, nil))
	want(t, "of two shards", halves, whole)
	again := play(t, schedule.Shard{}, 12500*time.Millisecond, nil)
	for id, session := range again {
		want(t, id+" after a restart", session, whole[id])
	}
	want(t, "rows after a restart", len(again) >= 8, true)
	other := play(t, schedule.Shard{}, 0, func(w *Workload) { w.Name, w.SaltName = "w@candidate", "w" })
	for id, session := range whole {
		want(t, id+" of the other side", other["w@candidate"+strings.TrimPrefix(id, "w")], session)
	}
}

// namesItself is the header by which a router names the replica that answers.
func namesItself(id string) string {
	return fmt.Sprintf("X-Session-Token: of %s\r\nX-Replica: %s\r\n", id, id[len(id)-1:])
}

func echoed(w *Workload) { w.Request.EchoHeader = "x-session-token" }

// tokens returns what each request has sent back.
func (b *bench) tokens() map[string]string {
	tokens := map[string]string{}
	for id, head := range b.fake.heads {
		if id != "" && id != "replayd/probe" {
			tokens[id] = strings.Join(head.Values("X-Session-Token"), "|")
		}
	}
	return tokens
}

// A turn sends the token of the turn before, although its message was built before that answer came. Another session and a row without one
// send none.
func TestTokensOfMessagesBuiltAhead(t *testing.T) {
	for name, o := range map[string]schedule.Options{"open": once, "closed": closedOnce} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				src := source(
					trace.Record{Session: "s"}, trace.Record{Session: "s", Offset: 100 * ms}, trace.Record{Session: "s", Offset: 200 * ms},
					trace.Record{Session: "other", Offset: 300 * ms}, trace.Record{Offset: 400 * ms},
				)
				b := newBench(t, src, o, &fake{ttft: time.Second, lines: namesItself}, echoed)
				built := false
				b.fake.asked = func(id string) {
					if id == "w/0/0" {
						time.AfterFunc(500*ms, func() { // half a second before its answer comes
							b.mu.Lock()
							defer b.mu.Unlock()
							built = b.d.Reserved() > 0
						})
					}
				}
				b.run(t, t.Context(), t.Context())
				want(t, "a message was built ahead", built, true)
				want(t, "sent back", b.tokens(), map[string]string{"w/0/0": "", "w/0/1": "of w/0/0", "w/0/2": "of w/0/1", "w/0/3": "", "w/0/4": ""})
				want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: 5})
				want(t, "requests of a replica", b.counter(t, "replayd_replica_requests_total", "1"), 1.0)
				want(t, "changes", b.counter(t, "replayd_session_replica_changes_total", ""), 2.0)
				want(t, "tokens kept", b.counter(t, "replayd_echo_header_answers_total", "kept"), 4.0) // not of the row without a session
				for _, r := range b.kept.all {
					want(t, r.ID+" replica", string(r.Replica), r.ID[len(r.ID)-1:])
				}
			})
		})
	}
}

// Of sub-agents beside each other, the latest answer that has ended gives the token.
func TestTokensOfSubAgents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		after := func(rows ...int) (edges []trace.Edge) {
			edges = []trace.Edge{}
			for _, row := range rows {
				edges = append(edges, trace.Edge{Row: row})
			}
			return edges
		}
		rows := []trace.Record{{After: after()}, {After: after(0), Agent: "slow"}, {After: after(0)}, {After: after(2)}, {After: after(1, 3)}}
		for i := range rows {
			rows[i].Session, rows[i].Floating = "s", i > 0
		}
		f := &fake{ttft: time.Second, lines: namesItself, slow: func(id string) time.Duration {
			if id == "w/0/1" {
				return 10 * time.Second
			}
			return 0
		}}
		b := newBench(t, source(rows...), once, f, echoed)
		b.run(t, t.Context(), t.Context())
		want(t, "sent back", b.tokens(), map[string]string{
			"w/0/0": "", "w/0/1": "of w/0/0", "w/0/2": "of w/0/0", "w/0/3": "of w/0/2", "w/0/4": "of w/0/1", // row 1 has ended last
		})
	})
}

// A request that is written a second time, over a new connection, has its token once.
func TestTokenOfARetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := source(trace.Record{Session: "s"}, trace.Record{Session: "s"}, trace.Record{Session: "s"})
		b := newBench(t, src, closedOnce, &fake{ttft: time.Second, lines: namesItself, closeAfter: 1}, func(w *Workload) { echoed(w); w.Lanes = 1 })
		b.run(t, t.Context(), t.Context())
		want(t, "sent back", b.tokens(), map[string]string{"w/0/0": "", "w/0/1": "of w/0/0", "w/0/2": "of w/0/1"})
		retried := map[string]bool{}
		for _, r := range b.kept.all {
			retried[r.ID] = r.Retried
		}
		want(t, "retried", retried["w/0/1"] && retried["w/0/2"], true) // the first row may come upon the probe's connection
	})
}

// Each loop, and the plan after the warm-up, begins without tokens. The warm-up has the ids of the first loop, and counts no replica.
func TestTokensOfALoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := source(trace.Record{Session: "s"}, trace.Record{Session: "s", Offset: time.Second})
		o := schedule.Options{Repeat: schedule.Repeat{Mode: schedule.Loops, Align: schedule.Start, Every: time.Minute}}
		b := newBench(t, src, o, &fake{ttft: time.Second, lines: namesItself}, func(w *Workload) {
			named(w)
			echoed(w)
			w.Rows, w.Warmup.Requests = 4, 2
		})
		b.run(t, t.Context(), t.Context())
		want(t, "sent back", b.tokens(), map[string]string{
			"w/warmup/0": "", "w/warmup/1": "of w/warmup/0", "w/0/0": "", "w/0/1": "of w/0/0", "w/1/0": "", "w/1/1": "of w/1/0",
		})
		ids := b.sessions(t)
		want(t, "id in the warm-up", ids["w/warmup/1"], ids["w/0/0"])
		want(t, "id in the next loop differs", ids["w/1/0"] != ids["w/0/0"], true)
		want(t, "requests of replicas", b.counter(t, "replayd_replica_requests_total", ""), 4.0)
		want(t, "changes", b.counter(t, "replayd_session_replica_changes_total", ""), 2.0)
	})
}

// A balancer sets its cookie once, and the application behind it one with each answer: a session sends both.
func TestCookiesOfABalancer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := source(trace.Record{Session: "s"}, trace.Record{Session: "s", Offset: 100 * ms}, trace.Record{Session: "s", Offset: 200 * ms})
		cookies := func(id string) string {
			if id == "w/0/0" {
				return "Set-Cookie: SRV=s1; path=/\r\nSet-Cookie: app=0; Path=/\r\n"
			}
			return fmt.Sprintf("Set-Cookie: app=%s; Path=/; HttpOnly\r\n", id[len(id)-1:])
		}
		b := newBench(t, src, once, &fake{ttft: 10 * ms, lines: cookies}, func(w *Workload) { w.Request.EchoHeader = "set-cookie" })
		b.run(t, t.Context(), t.Context())
		for id, sent := range map[string]string{"w/0/0": "", "w/0/1": "SRV=s1; app=0", "w/0/2": "SRV=s1; app=1"} {
			want(t, "cookies of "+id, b.fake.heads[id].Get("Cookie"), sent)
		}
	})
}
