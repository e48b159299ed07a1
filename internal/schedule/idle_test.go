package schedule

import (
	"testing"
	"time"

	"replayd/internal/trace"
)

// The expected shares are sums of the times of more than a minute without a row.
func TestIdle(t *testing.T) {
	const minute = time.Minute
	turns := FromRecords([]trace.Record{{Session: "a"}, {Session: "a"}}, false)
	rate := func(perSecond float64, rows int, every time.Duration) Options {
		return Options{Pattern: Pattern{Arrival: Constant, Rate: perSecond}, Rows: rows, Repeat: Repeat{Every: every}}
	}
	every := func(d time.Duration) Options { return Options{Repeat: Repeat{Every: d}} }
	once := Options{Repeat: Repeat{Mode: Once}}
	speed := func(s float64) func(*Options) { return func(o *Options) { o.Speed = s } }
	with := func(o Options, change func(*Options)) Options { change(&o); return o }
	const unknown = -1
	for name, c := range map[string]struct {
		src  Source
		o    Options
		want float64
	}{
		"a gap and the time between loops":  {at(0, 30*sec, 10*minute), every(20 * minute), (9.5 + 10) / 20},
		"a minute is no gap":                {at(0, minute), every(2 * minute), 0},
		"a nanosecond more is one":          {at(0, minute+1), every(2*minute + 1), float64(minute+1) / float64(2*minute+1)},
		"by the wall clock":                 {at(0, 31*sec), with(every(2*minute), speed(0.5)), 62.0 / 120},
		"faster":                            {at(0, 100*sec), with(every(2*minute), speed(2)), 70.0 / 120},
		"before the first row":              {at(50*sec, minute), every(2 * minute), 110.0 / 120},
		"once":                              {at(0, 2*minute, 2*minute+30*sec), once, 120.0 / 150},
		"once, from the begin of the trace": {at(2 * minute), once, 1},
		"once, one row":                     {at(0), once, 0},
		"a window": {
			at(0, 2*minute, 3*minute, 5*minute, 9*minute),
			with(every(10*minute), func(o *Options) { o.From, o.To = minute, 6*minute }), (2 + 6 + 1) / 10.0,
		},
		"so many rows": {at(0, 2*minute, 9*minute), with(every(10*minute), func(o *Options) { o.Rows = 2 }), 1},
		"spread": {
			at(0, 0, 100*sec, 200*sec), with(every(300*sec), func(o *Options) { o.Arrival = Spread }), (100 + 100) / 300.0,
		},
		"spread over gaps": {
			at(0, 0, 130*sec, 260*sec), with(every(300*sec), func(o *Options) { o.Arrival = Spread }), (65 + 65 + 130) / 300.0,
		},
		"exact":                 {at(0, 0, 100*sec, 200*sec), every(300 * sec), 1},
		"a rate":                {at(0), rate(1, 60, time.Hour), 3541.0 / 3600},
		"a low rate":            {at(0), rate(1.0/90, 4, 0), 1},
		"a rate without an end": {at(0), rate(1, 60, 0), 0},
		"cron":                  {at(0, 10*sec), Options{Repeat: Repeat{Mode: Cron, Cron: "0 * * * *"}}, 3590.0 / 3600},
		"closed loop":           {at(0), Options{Pattern: Pattern{Arrival: Concurrency}}, unknown},
		"sessions at a rate": {
			turns, with(rate(1, 0, time.Hour), func(o *Options) { o.RateOf = Starts }), unknown,
		},
	} {
		p := plan(t, c.src, c.o)
		got, known := p.Idle(p.Period(p.Loop(epoch, epoch)))
		if !known {
			got = unknown
		}
		if diff := got - c.want; diff > 1e-12 || diff < -1e-12 {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// Rows in memory have the gaps that a file of theirs has.
func TestGapsOfRowsInMemory(t *testing.T) {
	rows := []trace.Record{{}, {}, {Offset: 3 * sec}, {Offset: 5 * sec}, {Offset: 5 * sec}}
	got := FromRecords(rows, true).Gaps(2 * sec)
	if want := (trace.Gap{From: 0, To: 3 * sec, Rows: 2}); len(got) != 1 || got[0] != want {
		t.Errorf("got %+v, want %+v alone", got, want)
	}
}

// NextDue is the first row of all loops from an instant on, in this loop or in the next.
func TestNextDue(t *testing.T) {
	offsets := []time.Duration{10 * sec, 20 * sec, 300 * sec}
	for _, o := range []Options{
		{Repeat: Repeat{Every: 10 * time.Minute}},
		{Repeat: Repeat{Every: 10 * time.Minute, Align: WallClock}},
		{Repeat: Repeat{Mode: Cron, Cron: "*/10 * * * *"}},
	} {
		p := plan(t, at(offsets...), o)
		for now := time.Duration(0); now < 20*time.Minute; now += 10 * sec {
			want := epoch.Add(20*time.Minute + offsets[0])
			for loop := 10 * time.Minute; loop >= 0; loop -= 10 * time.Minute {
				for i := len(offsets) - 1; i >= 0; i-- {
					if loop+offsets[i] >= now {
						want = epoch.Add(loop + offsets[i])
					}
				}
			}
			from := epoch.Add(now)
			got, ok, err := p.NextDue(p.Loop(epoch, from), from)
			if err != nil || !ok || !got.Equal(want) {
				t.Errorf("%s %s: %v after the start: got %v, %v, %v, want %v", o.Mode, o.Align, now, got, ok, err, want)
			}
		}
	}
	hourly := Options{Repeat: Repeat{Every: time.Hour}, Shard: Shard{Index: 3, Of: 4}}
	for name, p := range map[string]*Plan{
		"over":            plan(t, at(offsets...), Options{Repeat: Repeat{Mode: Once}}),
		"no row of shard": plan(t, at(offsets...), hourly),
		"closed loop":     plan(t, at(offsets...), Options{Pattern: Pattern{Arrival: Concurrency}}),
	} {
		from := epoch.Add(400 * sec)
		if got, ok, err := p.NextDue(p.Loop(epoch, from), from); err != nil || ok {
			t.Errorf("%s: got %v, %v, %v, want none", name, got, ok, err)
		}
	}
}
