package replay

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
	"replayd/internal/schedule"
	"replayd/internal/trace"
)

// anyRow is a row with something of everything.
func anyRow(rnd *rand.Rand, number int, offset time.Duration) trace.Record {
	rec := trace.Record{
		Number: number, Line: number + 1 + rnd.IntN(2), Offset: offset, InputTokens: 1 + rnd.IntN(1<<20), OutputTokens: rnd.IntN(3000),
	}
	for range rnd.IntN(2) * rnd.IntN(40) {
		rec.Blocks = append(rec.Blocks, rnd.Uint64()>>rnd.IntN(64))
	}
	if rnd.IntN(3) == 0 {
		rec.Pass, rec.Gap, rec.Turn = rnd.Int64N(3), time.Duration(rnd.IntN(2)*rnd.IntN(20))*time.Millisecond, rnd.IntN(4)
	}
	switch rnd.IntN(12) {
	case 0:
		rec.Text, rec.InputTokens = "a text", 0
	case 1:
		rec.Messages, rec.Tools, rec.InputTokens = json.RawMessage(`[]`), json.RawMessage(`[]`), 0
	case 2:
		rec.Payload, rec.InputTokens = json.RawMessage(`{}`), 0
	case 3:
		rec.Extra = json.RawMessage(`{"a":1}`)
	case 4:
		rec.Parts = []trace.Part{{Role: "user", ID: 7, Tokens: rec.InputTokens}}
	}
	return rec
}

// What is parked comes back as it was, in its order, whatever it is.
func TestParkedItemsComeBackAsTheyWere(t *testing.T) {
	now := time.Now() // with its monotonic reading
	set := time.Unix(0, now.UnixNano())
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		loops := []*loop{{Loop: schedule.Loop{Number: 3, Start: now}}, {Loop: schedule.Loop{Number: 4, Start: set}}}
		var p parked
		var given []*item
		take := func() {
			want, got := given[0], p.take(true)
			given = given[1:]
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d: want\n%+v, got\n%+v", seed, want, got)
			}
		}
		for i := range 1 + rnd.IntN(3000) {
			after := time.Duration(rnd.Int64N(int64(time.Hour)))
			clock := now
			if rnd.IntN(50) == 0 {
				clock = set
			}
			l := loops[rnd.IntN(20)/19]
			it := &item{loop: l, state: waiting, seq: int64(i), weight: rnd.IntN(9999), counted: rnd.IntN(2), offset: after, ready: clock.Add(after)}
			it.due = schedule.Due{Record: anyRow(rnd, i, after), At: it.ready, Loop: l.Loop}
			it.planned = it.ready
			if rnd.IntN(9) == 0 {
				it.planned, it.due.At = it.ready.Add(-time.Duration(rnd.IntN(1e9))), it.ready.Add(-time.Duration(rnd.IntN(2)))
			}
			for _, is := range it.marks() {
				*is = rnd.IntN(2) == 0
			}
			if rnd.IntN(5) == 0 {
				it.due.Session, it.session = "s", &session{open: i}
			}
			switch rnd.IntN(30) {
			case 0:
				it.body = []byte("x")
			case 1:
				it.planned = set // at another distance on the wall clock
			}
			if rnd.IntN(1000) == 0 {
				loops[0].Start = loops[0].Start.Add(1) // it is entered anew
			}
			if given = append(given, it); !p.add(it) {
				p.addWhole(it)
			}
			if ready, ok := p.since(); !ok || !ready.Equal(given[0].ready) {
				t.Fatalf("seed %d: want the first ready at %v, got %v", seed, given[0].ready, ready)
			}
			if rnd.IntN(3) == 0 {
				take()
			}
		}
		for len(given) > 0 {
			take()
		}
		if _, ok := p.since(); ok || p.n != 0 || p.take(true) != nil || len(p.folds) > 1 {
			t.Fatalf("seed %d: want nothing left, got %d in %d folds", seed, p.n, len(p.folds))
		}
	}
}

// history plays a random plan through a queue of which so many waiting items are whole, with faults of all kinds, and tells
// everything that happens.
func history(t *testing.T, seed uint64, near int, seen map[measure.DropReason]int) []string {
	rnd := rand.New(rand.NewPCG(seed, 3))
	q, c := newQueue(1 + rnd.IntN(4))
	q.waiting.near = near
	q.named = func(d *schedule.Due) string { return d.ID() }
	q.carry = rnd.IntN(3) == 0
	if rnd.IntN(2) == 0 {
		q.maxWait = time.Duration(20+rnd.IntN(500)) * time.Millisecond
	}
	w := newWeather(rnd, q)
	var told, cut []string
	last := ""
	q.dropped = func(it *item, why measure.DropReason) {
		seen[why]++
		line := fmt.Sprint("dropped ", it.due.Number, it.due.Session, it.due.Pass, it.ready, it.expected, why)
		if why == measure.Shutdown { // which goes through sessions in any order
			cut = append(cut, line)
			return
		}
		told = append(told, line)
	}
	q.clipped = func(it *item) { told = append(told, fmt.Sprint("clipped ", it.due.Number)) }
	ms, rows := 0, 1+rnd.IntN(200)
	for i := range rows {
		ms += rnd.IntN(2) * rnd.IntN(10)
		it := &item{seq: int64(i), clipped: rnd.IntN(9) == 0, weight: 512}
		it.due = schedule.Due{Record: anyRow(rnd, i, time.Duration(ms)*time.Millisecond), At: at(ms), Loop: q.loops[0].Loop}
		if k := rnd.IntN(12); k < 3 {
			it.due.Session, it.due.Delay = fmt.Sprint("s", k), time.Duration(rnd.IntN(2)*rnd.IntN(20))*time.Millisecond
		}
		if rnd.IntN(4) == 0 {
			it.body = []byte("x") // before it is due
		}
		it.id = it.due.ID()
		q.add(q.loops[0], it)
	}
	stopAt, ahead := rnd.IntN(2*ms+1), 1+rnd.IntN(6)
	var flying []*item
	for now := 0; now < ms+5000; now++ {
		switch next, ok := q.next(); {
		case rnd.IntN(300) == 0:
			q.pause(!q.paused, at(now))
		case rnd.IntN(900) == 0 && ok:
			now += 1001 + max(0, int(next.Sub(at(now)).Milliseconds()))
		case now == stopAt:
			q.stop()
		}
		w.change(q, at(now))
		q.fire(at(now))
		for i := range min(ahead, q.waiting.len()) { // the messages of the first few are built
			if i == q.waiting.fifo.len() {
				q.approach()
			}
			if it := q.waiting.items[q.waiting.head+i]; rnd.IntN(3) > 0 {
				it.body = []byte("x")
			}
		}
		_, taken := takeAll(q, at(now))
		for _, it := range taken {
			told = append(told, fmt.Sprintf("%d: taken %s %+v %v %v %v %d %d %v", now, it.id, it.due, it.planned, it.ready, it.offset,
				it.seq, it.weight, it.waited))
		}
		flying = append(flying, taken...)
		for i := 0; i < len(flying); {
			if rnd.IntN(30) > 0 {
				i++
				continue
			}
			w.end(q, c, flying[i], rnd.IntN(10) > 0, at(now))
			flying = slices.Delete(flying, i, i+1)
		}
		if err := c.balance(); err != nil {
			t.Fatalf("seed %d at %d ms: %v", seed, now, err)
		}
		next, more := q.next()
		if line := fmt.Sprint(*c, q.waiting.len(), next); line != last {
			told, last = append(told, fmt.Sprint(now, line)), line
		}
		if !more && len(flying) == 0 && q.waiting.len() == 0 {
			break
		}
	}
	slices.Sort(cut)
	return append(told, cut...)
}

// Whatever the plan and the faults, a queue that parks does what one does that keeps all that wait as they are.
func TestParkingChangesNothing(t *testing.T) {
	seen := map[measure.DropReason]int{}
	for seed := range uint64(100) {
		plain, parks := history(t, seed, 0, seen), history(t, seed, 1+int(seed%3), seen)
		for i := range min(len(plain), len(parks)) {
			if plain[i] != parks[i] {
				t.Fatalf("seed %d: want\n%s, got\n%s", seed, plain[i], parks[i])
			}
		}
		if len(plain) != len(parks) {
			t.Fatalf("seed %d: want %d events, got %d", seed, len(plain), len(parks))
		}
	}
	for _, reason := range []measure.DropReason{measure.Overload, measure.Guarded, measure.Budget, measure.Paused, measure.Missed, measure.Shutdown} {
		if seen[reason] == 0 {
			t.Errorf("nothing was ever dropped for %s: the property was not put to the test", reason)
		}
	}
}

// A runner that parks sends the same bytes at the same instants and drops the same requests, however few messages it may build
// ahead.
func TestARunnerThatParks(t *testing.T) {
	for _, ahead := range []int{4 << 10, 32 << 10, 8 << 20} {
		for _, maxWait := range []time.Duration{0, 3 * time.Second} {
			var plain string
			for _, near := range []int{0, 1, 7} {
				synctest.Test(t, func(t *testing.T) {
					rnd := rand.New(rand.NewPCG(uint64(ahead), uint64(maxWait)))
					rows := make([]trace.Record, 400)
					for i := range rows {
						// No request ends at an instant at which another is due: which of the two is first then is anybody's guess.
						rows[i] = trace.Record{Offset: time.Duration(i) * 10_001 * time.Microsecond, InputTokens: 1 + rnd.IntN(300), OutputTokens: 3}
						switch rnd.IntN(6) {
						case 0:
							rows[i].Session = fmt.Sprint(rnd.IntN(20))
						case 1:
							rows[i].InputTokens, rows[i].Text = 0, fmt.Sprint("text ", i)
						}
					}
					f := &fake{ttft: 30 * time.Millisecond, itl: 5 * time.Millisecond}
					b := newBench(t, source0(rows...), schedule.Options{Mode: schedule.Once}, f, func(w *Workload) {
						w.Lanes, w.MaxWait, w.Ahead = 2, maxWait, ahead
						w.Cancel = Cancel{Ratio: 0.1, After: 20 * time.Millisecond}
					})
					b.queue.waiting.near = near
					b.run(t, t.Context(), t.Context())
					slices.SortFunc(b.kept.all, func(x, y measure.Request) int { return x.Timeline.Write.Compare(y.Timeline.Write) })
					var all strings.Builder
					for _, r := range b.kept.all {
						l := r.Timeline
						fmt.Fprintln(&all, r.ID, r.Loop, r.Row, r.Session, r.Turn, r.InputTokens, r.OutputTokens, r.Outcome, l.Planned, l.Due,
							l.Ready, l.Waited, l.Write, l.End, string(b.fake.bodies[r.ID]))
					}
					fmt.Fprintln(&all, b.kept.dropped)
					switch got := all.String(); {
					case near == 0:
						plain = got
					case got != plain:
						was, is := strings.Split(plain, "\n"), strings.Split(got, "\n")
						for i := range min(len(was), len(is)) {
							if was[i] != is[i] {
								t.Fatalf("ahead %d, max_wait %v, %d near: want\n%.300s, got\n%.300s", ahead, maxWait, near, was[i], is[i])
							}
						}
					}
					if held := len(b.kept.all) + b.kept.dropped[measure.Overload] + b.kept.dropped[measure.Missed]; held != len(rows) {
						t.Errorf("want %d requests, got %d", len(rows), held)
					}
				})
			}
		}
	}
}
