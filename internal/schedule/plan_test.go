package schedule

import (
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"testing"
	"time"

	"replayd/internal/scalar"
	"replayd/internal/trace"
)

const (
	ms  = time.Millisecond
	sec = time.Second
	day = 24 * time.Hour
)

// memory returns a source of rows, which must be sorted by Offset.
func memory(rows []trace.Record) Source {
	src := Source{
		HasTimestamps: true,
		Gaps:          func(least time.Duration) []trace.Gap { return gapsOf(rows, least) },
		Rows: func(from time.Duration) (func() (trace.Record, error), error) {
			i := sort.Search(len(rows), func(i int) bool { return rows[i].Offset >= from })
			return func() (trace.Record, error) {
				if i == len(rows) {
					return trace.Record{}, io.EOF
				}
				i++
				return rows[i-1], nil
			}, nil
		},
	}
	var gaps []time.Duration
	for i, r := range rows {
		src.Last = r.Offset
		if i > 0 && r.Offset > rows[i-1].Offset {
			gaps = append(gaps, r.Offset-rows[i-1].Offset)
		}
	}
	if slices.Sort(gaps); len(gaps) > 0 {
		src.Tick = (gaps[(len(gaps)-1)/2] + gaps[len(gaps)/2]) / 2
	}
	return src
}

// at returns a source with a row at each offset.
func at(offsets ...time.Duration) Source {
	rows := make([]trace.Record, len(offsets))
	for i, o := range offsets {
		rows[i] = trace.Record{Number: i, Offset: o}
	}
	return memory(rows)
}

func plan(t testing.TB, src Source, o Options) *Plan {
	t.Helper()
	if o.Speed == 0 {
		o.Speed = 1
	}
	if o.Arrival == "" {
		o.Arrival = Exact
	}
	if o.Mode == "" {
		o.Mode = Loops
	}
	if o.Align == "" && o.Mode == Loops {
		o.Align = Start
	}
	p, err := New(src, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// dues returns the rows of a loop from a time on.
func dues(t testing.TB, p *Plan, l Loop, from time.Time) []Due {
	t.Helper()
	rows, err := p.Rows(l, from)
	if err != nil {
		t.Fatal(err)
	}
	var list []Due
	for {
		d, err := rows.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, d)
	}
}

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// after returns the time of each row since the start of its loop.
func after(list []Due) []time.Duration {
	out := make([]time.Duration, len(list))
	for i, d := range list {
		out[i] = d.At.Sub(d.Loop.Start)
	}
	return out
}

func TestEveryIsTheShortestStepThatHolds(t *testing.T) {
	f := func(span time.Duration, speed float64, want time.Duration) {
		t.Helper()
		p := plan(t, at(0, span), Options{Pattern: Pattern{Speed: speed}})
		if got := p.every; got != want {
			t.Errorf("%v at speed %v: every %v, want %v", span, speed, got, want)
		}
	}
	f(3_536_999*ms, 1, time.Hour) // Mooncake's conversation trace
	f(3_536_999*ms, 20, 5*time.Minute)
	f(0, 1, time.Minute)
	f(59_999*ms, 1, time.Minute)
	f(time.Minute, 1, 2*time.Minute) // a row at the end would belong to the next loop
	f(time.Minute, 0.5, 5*time.Minute)
	f(14*time.Minute, 1, 15*time.Minute)
	f(16*time.Minute, 1, 20*time.Minute)
	f(29*time.Minute, 1, 30*time.Minute)
	f(61*time.Minute, 1, 2*time.Hour)
	f(11*time.Hour, 1, 12*time.Hour)
	f(13*time.Hour, 1, day)
	f(day-1, 1, day)
	f(day, 1, 2*day)
	f(49*time.Hour, 1, 3*day)

	// For a window, the time from its start to its last row counts, wherever its first row is.
	src := at(0, 100*sec, 150*sec, 200*sec, 4000*sec)
	for _, c := range []struct {
		from, to, want time.Duration
	}{{0, 0, 2 * time.Hour}, {0, 200 * sec, 5 * time.Minute}, {100 * sec, 200 * sec, time.Minute}, {100 * sec, 201 * sec, 2 * time.Minute}, {4000 * sec, 0, time.Minute}, {1, 9000 * sec, 2 * time.Hour}} {
		if got := plan(t, src, Options{From: c.from, To: c.to}).every; got != c.want {
			t.Errorf("window %v to %v: every %v, want %v", c.from, c.to, got, c.want)
		}
	}
	// The last tick is spread over 25 s, the median of the gaps 30 s and 20 s: two rows at 50 and 62.5 s.
	if got := plan(t, at(0, 30*sec, 50*sec, 50*sec), Options{Pattern: Pattern{Arrival: Spread}}).every; got != 2*time.Minute {
		t.Errorf("spread to 62.5 s: every %v, want 2m", got)
	}
	if got := plan(t, src, Options{Pattern: Pattern{Speed: 2}, Repeat: Repeat{Mode: Once}}).every; got != 2000*sec {
		t.Errorf("once: %v, want 2000 s, the time to the last row", got)
	}
}

func TestNewNamesEveryFault(t *testing.T) {
	good := Options{Pattern: Pattern{Arrival: Exact, Speed: 1}, Repeat: Repeat{Mode: Loops, Align: WallClock}}
	src := at(0, 10*sec, 90*sec)
	untimed := src
	untimed.HasTimestamps = false
	f := func(src Source, change func(*Options), want string) {
		t.Helper()
		o := good
		change(&o)
		if p, err := New(src, o); p != nil || err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	f(src, func(o *Options) { *o = Options{} }, `arrival: want exact, spread, constant, poisson, gamma, users, concurrency or sessions, got ""`+"\n"+
		`speed: want 0.001 to 1000, got 0`+"\n"+
		`repeat.mode: want once, loop or cron, got ""`)
	f(untimed, func(*Options) {}, `arrival: want a trace with timestamps for "exact", got one without: constant, poisson, gamma and concurrency need none`)
	f(untimed, func(o *Options) { o.Arrival = Spread }, `arrival: want a trace with timestamps for "spread", got one without: constant, poisson, gamma and concurrency need none`)
	f(src, func(o *Options) { o.Speed = 1001 }, `speed: want 0.001 to 1000, got 1001`)
	f(src, func(o *Options) { o.Speed = 0.0009 }, `speed: want 0.001 to 1000, got 0.0009`)
	f(src, func(o *Options) { o.Speed = math.NaN() }, `speed: want 0.001 to 1000, got NaN`)
	f(at(0, 100*day), func(o *Options) { o.Speed = 0.01 }, `speed: want one at which 2400h0m0s of trace last at most 87600h0m0s, got 0.01`)
	f(src, func(o *Options) { o.From = 91 * sec }, `trace.from: want 0s to the trace's last row at 1m30s, got 1m31s`)
	f(src, func(o *Options) { o.From = -1 }, `trace.from: want a duration ≥ 0, got -1ns`)
	f(src, func(o *Options) { o.From, o.To = sec, sec }, `trace.to: want a duration > from (1s), or 0s for the end, got 1s`)
	f(src, func(o *Options) { o.To = -1 }, `trace.to: want a duration > from (0s), or 0s for the end, got -1ns`)
	f(src, func(o *Options) { o.From, o.To = 11*sec, 90*sec }, `trace.from: want a window with a row in it, got 11s to 1m30s`)
	f(src, func(o *Options) { o.Align = "" }, `repeat.align: want wall_clock or start, got ""`)
	f(src, func(o *Options) { o.Every = -1 }, "repeat.every: want a duration of 0s to 87600h0m0s, got -1ns")
	f(src, func(o *Options) { o.Every, o.Shard.Of = 90*sec, -1 },
		`repeat.every: want more than 1m30s, the length of the trace at speed 1, got 1m30s`+"\nshard.of: want an integer ≥ 1, got -1")
	f(src, func(o *Options) { o.Every, o.Speed = 44*sec, 2 },
		`repeat.every: want more than 45s, the length of the trace at speed 2, got 44s`)
	f(src, func(o *Options) { o.Offset = 2 * time.Minute }, `repeat.offset: want less than every (2m0s), either way, got 2m0s`)
	f(src, func(o *Options) { o.Offset = -2 * time.Minute }, `repeat.offset: want less than every (2m0s), either way, got -2m0s`)
	f(src, func(o *Options) { o.Align, o.Offset = Start, sec }, `repeat.offset: needs align "wall_clock", got align "start"`)
	f(src, func(o *Options) { o.Mode, o.Align, o.Every, o.Offset = Once, "", 1, 3 },
		`repeat.every: needs mode "loop", got mode "once"`+"\n"+`repeat.offset: needs mode "loop", got mode "once"`)
	f(src, func(o *Options) { o.Shard = Shard{4, 4} }, `shard.index: want an index < 4, got 4`)
	f(src, func(o *Options) { o.Shard = Shard{-1, 4} }, `shard.index: want an index < 4, got -1`)
	f(src, func(o *Options) { o.Shard = Shard{1, 0} }, `shard.of: want an integer ≥ 1, got 0`)
}

func TestFailuresOfTheTraceArePassedOn(t *testing.T) {
	broken := errors.New("broken")
	good := at(0, 0, 10*sec, 20*sec)
	f := func(what string, calls int, o Options) {
		t.Helper()
		n := 0
		src := good
		src.Rows = func(from time.Duration) (func() (trace.Record, error), error) {
			next, _ := good.Rows(from)
			if n++; n > calls && what == "open" {
				return nil, broken
			}
			return func() (trace.Record, error) {
				if n++; n > calls {
					return trace.Record{}, broken
				}
				return next()
			}, nil
		}
		o.Speed, o.Mode = 1, Once
		p, err := New(src, o)
		if err == nil {
			var rows *Rows
			if rows, err = p.Rows(p.Loop(epoch, epoch), epoch); err == nil {
				for err == nil {
					_, err = rows.Next()
				}
			}
		}
		if !errors.Is(err, broken) {
			t.Errorf("%s after %d calls of %+v: got %v", what, calls, o, err)
		}
	}
	for calls := range 6 {
		f("open", calls, Options{Pattern: Pattern{Arrival: Exact}})
		f("open", calls, Options{Pattern: Pattern{Arrival: Spread}})
		f("next", calls, Options{Pattern: Pattern{Arrival: Exact}})
		f("next", calls, Options{Pattern: Pattern{Arrival: Exact}, To: 15 * sec})
		f("next", calls, Options{Pattern: Pattern{Arrival: Spread}})
	}
}

func TestAFileIsASource(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	rows := `{"timestamp": 0, "input_length": 1}
{"timestamp": 1000, "input_length": 2}
{"timestamp": 1000, "input_length": 3}
{"timestamp": 4000, "input_length": 4}
{"timestamp": 6000, "input_length": 5}
`
	if err := os.WriteFile(path, []byte(rows), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := trace.Open(t.Context(), path, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// The tick is 2 s, the median of the gaps 1, 3 and 2 s. It has two rows.
	p := plan(t, FromFile(f), Options{Pattern: Pattern{Arrival: Spread, Speed: 2}})
	got := dues(t, p, p.Loop(epoch, epoch), epoch)
	if want := []time.Duration{0, 500 * ms, 1000 * ms, 2 * sec, 3 * sec}; !slices.Equal(after(got), want) || got[4].InputTokens != 5 {
		t.Errorf("got %v, want %v", after(got), want)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Rows(p.Loop(epoch, epoch), epoch); err == nil {
		t.Error("a closed file gives rows")
	}
}

// random returns a trace with ticks, pauses and sessions.
func random(rng *rand.Rand) []trace.Record {
	var rows []trace.Record
	offset := time.Duration(rng.IntN(3)) * sec
	for range 1 + rng.IntN(60) {
		for range 1 + rng.IntN(4) {
			r := trace.Record{Number: len(rows), Offset: offset}
			if rng.IntN(2) == 0 {
				r.Session = "s" + strconv.Itoa(rng.IntN(8))
			}
			rows = append(rows, r)
		}
		offset += time.Duration(1+rng.IntN(4000)) * ms
	}
	return rows
}

// options returns random options that are valid for any trace.
func options(rng *rand.Rand, last time.Duration) Options {
	o := Options{
		Pattern: Pattern{Arrival: []Arrival{Exact, Spread}[rng.IntN(2)], Speed: []float64{1, 20, 0.3, 7, 0.001, 1000}[rng.IntN(6)]},
		Repeat:  Repeat{Align: []Align{WallClock, Start}[rng.IntN(2)]},
	}
	if rng.IntN(3) == 0 {
		o.From = time.Duration(rng.Int64N(int64(last) + 1))
	}
	return o
}

func TestPropertiesOfRandomPlans(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		rows := random(rng)
		src := memory(rows)
		o := options(rng, src.Last)
		p := plan(t, src, o)
		l := p.Loop(epoch, epoch.Add(time.Duration(rng.Int64N(int64(1000*day)))))
		all := dues(t, p, l, l.Start)

		// Every row of the window occurs once, in the order of the file, inside the loop and never before its own
		// time.
		want := rows[sort.Search(len(rows), func(i int) bool { return rows[i].Offset >= o.From }):]
		if len(all) != len(want) {
			t.Fatalf("%+v: %d rows, want %d", o, len(all), len(want))
		}
		for i, d := range all {
			exact := l.Start.Add(p.wall(want[i].Offset - o.From))
			switch {
			case d.Number != want[i].Number || d.Loop != l:
				t.Fatalf("%+v: place %d has row %d of loop %d", o, i, d.Number, d.Loop.Number)
			case o.Arrival == Exact && !d.At.Equal(exact) || d.At.Before(exact):
				t.Fatalf("%+v: row %d is due at %v, the trace says %v", o, i, d.At, exact)
			case !d.At.Before(l.Start.Add(p.every)):
				t.Fatalf("%+v: row %d at %v is outside of its loop", o, i, d.At.Sub(l.Start))
			case i > 0 && d.At.Before(all[i-1].At):
				t.Fatalf("%+v: row %d is due before the one before it", o, i)
			case i > 0 && o.Arrival == Spread && src.Tick > 0 && o.Speed <= 20 && d.At.Equal(all[i-1].At):
				t.Fatalf("%+v: rows %d and the one before are due together", o, i)
			}
		}

		// Joining at any time gives the rest of the rows. At the time of a row, the rest includes that row.
		for range 10 {
			from := l.Start.Add(time.Duration(rng.Int64N(int64(p.length) + 2)))
			if rng.IntN(2) == 0 {
				from = all[rng.IntN(len(all))].At
			}
			tail := slices.IndexFunc(all, func(d Due) bool { return !d.At.Before(from) })
			if tail < 0 {
				tail = len(all)
			}
			if got := dues(t, p, l, from); !slices.EqualFunc(got, all[tail:], same) {
				t.Fatalf("%+v: from %v: %d rows, want the last %d", o, from.Sub(l.Start), len(got), len(all)-tail)
			}
		}

		// The shards together have all rows at the same times, and a session is on one shard.
		of := 1 + rng.IntN(5)
		var union []Due
		home := map[string]int{}
		for i := range of {
			o.Shard = Shard{scalar.Auto(i), of}
			sharded := plan(t, src, o)
			if sharded.every != p.every {
				t.Fatalf("%+v: every %v, the whole plan's is %v", o, sharded.every, p.every)
			}
			for _, d := range dues(t, sharded, l, l.Start) {
				if on, ok := home[d.Session]; ok && on != i && d.Session != "" {
					t.Fatalf("%+v: session %s is on shards %d and %d", o, d.Session, on, i)
				}
				home[d.Session] = i
				union = append(union, d)
			}
		}
		slices.SortFunc(union, func(a, b Due) int { return a.Number - b.Number })
		if !slices.EqualFunc(union, all, same) {
			t.Fatalf("%+v: %d shards have %d rows, want %d", o, of, len(union), len(all))
		}
	}
}

func same(a, b Due) bool { return a.Number == b.Number && a.At.Equal(b.At) && a.Loop == b.Loop }
