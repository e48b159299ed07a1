package schedule

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"replayd/internal/trace"
)

// untimed returns a source of n rows without timestamps.
func untimed(n int) Source { return Generated(n, numbers) }

// numbers generates rows that have only a number.
func numbers() func() trace.Record {
	i := -1
	return func() trace.Record {
		i++
		return trace.Record{Number: i}
	}
}

// instants returns the times of a loop's rows since the start of the loop.
func instants(t testing.TB, p *Plan) []time.Duration {
	t.Helper()
	l := p.Loop(epoch, epoch)
	return after(dues(t, p, l, l.Start))
}

func TestConstantRate(t *testing.T) {
	f := func(rate float64, rows int, want ...time.Duration) {
		t.Helper()
		p := plan(t, untimed(rows), Options{Pattern: Pattern{Arrival: Constant, Rate: rate}, Repeat: Repeat{Mode: Once}})
		if got := instants(t, p); !slices.Equal(got, want) {
			t.Errorf("%v/s: %v, want %v", rate, got, want)
		}
	}
	f(1, 3, sec, 2*sec, 3*sec) // the first row comes after a gap
	f(4, 2, 250*ms, 500*ms)
	f(3, 4, 333_333_333, 666_666_667, sec, 1_333_333_333) // rounded to the nearest nanosecond
	f(0.1, 2, 10*sec, 20*sec)
	f(1e6, 2, time.Microsecond, 2*time.Microsecond)

	// Row i of 7,000,000 at 7/s, over 11 days: rounding errors do not add up.
	a := plan(t, untimed(1), Options{Pattern: Pattern{Arrival: Constant, Rate: 7}, Repeat: Repeat{Mode: Once}}).arrivals()
	for i := int64(1); i <= 7_000_000; i++ {
		got, ok := a.next()
		if want := time.Duration((2*i*1e9 + 7) / 14); !ok || got != want {
			t.Fatalf("row %d: %v, want %v", i, got, want)
		}
	}
}

// Computed by hand. In the ramp from 0 to 100/s in a minute, request i is at √(1.2 i) s, up to request 3,000. Then
// the rate is 100/s up to request 15,000, and 200/s after it.
func TestStages(t *testing.T) {
	p := plan(t, untimed(16_000), Options{
		Pattern: Pattern{Arrival: Constant, Stages: []Stage{
			{Rate: 100, Over: time.Minute, Hold: 2 * time.Minute}, {Rate: 200},
		}},
		Repeat: Repeat{Mode: Once},
	})
	for i, got := range instants(t, p) {
		n := float64(i + 1)
		want := math.Sqrt(1.2 * n)
		switch {
		case n > 15_000:
			want = 180 + (n-15_000)/200
		case n > 3000:
			want = 60 + (n-3000)/100
		}
		if math.Abs(got.Seconds()-want) > 1e-9 {
			t.Fatalf("request %v at %v, want %v s", n, got, want)
		}
	}
	if got := instants(t, p); got[2999] != time.Minute || got[14_999] != 3*time.Minute || got[15_000] != 3*time.Minute+5*ms {
		t.Errorf("at the stages' ends: %v, %v and %v", got[2999], got[14_999], got[15_000])
	}

	f := func(rate float64, stages []Stage, want ...time.Duration) {
		t.Helper()
		p := plan(t, untimed(5), Options{Pattern: Pattern{Arrival: Constant, Rate: rate, Stages: stages}, Repeat: Repeat{Mode: Once}})
		if got := instants(t, p); !slices.Equal(got, want) {
			t.Errorf("%v, %v: %v, want %v", rate, stages, got, want)
		}
	}
	f(1, []Stage{{Rate: 1, Hold: 2 * sec}, {Rate: 0, Hold: time.Minute}, {Rate: 2}},
		sec, 2*sec, 62500*ms, 63*sec, 63500*ms) // a pause
	f(2, []Stage{{Rate: 0, Over: 4 * sec}}, 4*sec-time.Duration(math.Round(2e9*math.Sqrt(3))), 4*sec-time.Duration(math.Round(2e9*math.Sqrt2)),
		2*sec, 4*sec) // 2 t − t²/4 = n; there is no fifth request
	f(4, []Stage{{Rate: 4}}, 250*ms, 500*ms, 750*ms, sec, 1250*ms)
	f(0, []Stage{{Rate: 0, Over: 9 * sec, Hold: sec}, {Rate: 1}}, 11*sec, 12*sec, 13*sec, 14*sec, 15*sec)
}

// The times of requests must agree with a numeric integral of the rate, in steps of a millisecond.
func TestInstantsByNumericIntegration(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	for range 60 {
		rate := float64(rng.IntN(3)) * 10 * rng.Float64()
		var stages []Stage
		for range rng.IntN(4) {
			stages = append(stages, Stage{
				Rate: float64(rng.IntN(3)) * 20 * rng.Float64(),
				Over: time.Duration(rng.IntN(2)) * time.Duration(rng.IntN(5000)) * ms,
				Hold: time.Duration(rng.IntN(2)) * time.Duration(rng.IntN(5000)) * ms,
			})
		}
		p := newProfile(rate, stages)
		at := func(t float64) float64 { // the rate at time t
			r := rate
			for _, s := range stages {
				over, hold := s.Over.Seconds(), s.Hold.Seconds()
				if t < over {
					return r + (s.Rate-r)*t/over
				}
				if r, t = s.Rate, t-over; t < hold {
					return r
				}
				t -= hold
			}
			return r
		}
		expected := 0.0
		for i := range 30_000 {
			step := at((float64(i) + 0.5) / 1000)
			expected += step / 1000
			if step == 0 || i%97 != 0 {
				continue
			}
			want := float64(i+1) / 1000
			got, ok := p.at(expected)
			// The midpoint rule is wrong in the millisecond in which a stage begins. The error of the count,
			// divided by the rate, is the error of the time.
			if wrong := 0.002 + 0.4/step; !ok || math.Abs(got.Seconds()-want) > wrong {
				t.Fatalf("%v %v: %v requests are expected after %v, want %v s", rate, stages, expected, got, want)
			}
			if before, ok := p.at(expected * 0.999); !ok || before > got {
				t.Fatalf("%v %v: fewer requests later: %v after %v", rate, stages, before, got)
			}
		}
	}
}

// Poisson arrivals in a ramp: the count in each tenth of the time is within 5 standard deviations of the integral
// of the rate.
func TestPoissonUnderARamp(t *testing.T) {
	p := plan(t, untimed(100_000), Options{Pattern: Pattern{
		Arrival: Poisson,
		Stages:  []Stage{{Rate: 1000, Over: 100 * sec}},
	}, Repeat: Repeat{Mode: Once}, Seed: 3, Duration: 100 * sec})
	var counts [10]float64
	for _, at := range instants(t, p) {
		counts[min(9, at/(10*sec))]++
	}
	for i, got := range counts {
		from, to := float64(i)*10, float64(i+1)*10
		if want := (to*to - from*from) * 5; math.Abs(got-want) > 5*math.Sqrt(want) {
			t.Errorf("%v to %v s: %v requests, want %v", from, to, got, want)
		}
	}
}

func TestRateAndVariationOfWholePlans(t *testing.T) {
	f := func(o Options, cv float64) {
		t.Helper()
		const n = 100_000
		o.Rate, o.Mode = 50, Once
		all := instants(t, plan(t, untimed(n), o))
		sum, squares := 0.0, 0.0
		for i, at := range all {
			gap := at.Seconds()
			if i > 0 {
				gap -= all[i-1].Seconds()
			}
			sum, squares = sum+gap, squares+gap*gap
		}
		mean := sum / n
		got := math.Sqrt(max(0, squares/n-mean*mean)) / mean
		if math.Abs(mean*50-1) > 4*cv/math.Sqrt(n)+1e-9 || math.Abs(got-cv) > 4*cv*math.Sqrt((1+cv*cv)/(2*n))+1e-6 {
			t.Errorf("%s %v: %v/s, CV of gaps %v, want 50/s, %v", o.Arrival, o.Burstiness, 1/mean, got, cv)
		}
	}
	f(Options{Pattern: Pattern{Arrival: Constant}}, 0)
	f(Options{Pattern: Pattern{Arrival: Poisson}, Seed: 1}, 1)
	f(Options{Pattern: Pattern{Arrival: Gamma, Burstiness: 0.25}, Seed: 1}, 2)
	f(Options{Pattern: Pattern{Arrival: Gamma, Burstiness: 4}, Seed: 1}, 0.5)

	// Gamma arrivals with burstiness 1 are Poisson arrivals, with the same draws. Another seed gives other draws.
	o := Options{Pattern: Pattern{Arrival: Poisson, Rate: 5}, Repeat: Repeat{Mode: Once}, Seed: 9}
	poisson := instants(t, plan(t, untimed(100), o))
	o.Arrival, o.Burstiness = Gamma, 1
	if got := instants(t, plan(t, untimed(100), o)); !slices.Equal(got, poisson) {
		t.Error("gamma of shape 1 is not poisson")
	}
	o.Seed++
	if got := instants(t, plan(t, untimed(100), o)); got[0] == poisson[0] {
		t.Error("another seed, the same first gap")
	}
}

func TestRateFaults(t *testing.T) {
	f := func(src Source, o Options, want ...string) {
		t.Helper()
		if o.Speed == 0 {
			o.Speed = 1
		}
		if o.Mode == "" {
			o.Mode = Once
		}
		if p, err := New(src, o); p != nil || err == nil || err.Error() != strings.Join(want, "\n") {
			t.Errorf("got  %v\nwant %s", err, strings.Join(want, "\n"))
		}
	}
	src, endless := untimed(10), untimed(0)
	f(src, Options{
		Pattern: Pattern{Arrival: Poisson, Speed: 2, Burstiness: 2, Users: 3}, Repeat: Repeat{Mode: "x"},
		From: sec, Rows: -1, Duration: -1, Shard: Shard{2, 2},
	},
		`speed: needs arrival exact or spread, got arrival poisson`,
		`rate: want a number > 0 for arrival poisson, got none`,
		`burstiness: needs arrival gamma, got arrival poisson`, `users: needs arrival users, got arrival poisson`,
		`trace.from: want none for rows without timestamps, got 1s to 0s`, `rows: want 0 to 100000000, got -1`, `duration: want 0s to 87600h0m0s, got -1ns`,
		`repeat.mode: want once, loop or cron, got "x"`, `shard.index: want an index < 2, got 2`)
	f(at(0, sec), Options{Pattern: Pattern{Arrival: Exact, Rate: 1, Stages: []Stage{{Rate: 1}}, Burstiness: 0.5, Users: 1}},
		`rate: needs arrival constant, poisson, gamma or users, got arrival exact`, `stages: needs arrival constant, poisson or gamma, got arrival exact`,
		`burstiness: needs arrival gamma, got arrival exact`, `users: needs arrival users, got arrival exact`)
	f(src, Options{Pattern: Pattern{Arrival: Concurrency, Rate: 1}, Duration: Longest + 1},
		`rate: needs arrival constant, poisson, gamma or users, got arrival concurrency`, `duration: want 0s to 87600h0m0s, got 87600h0m0.000000001s`)
	for _, rate := range []float64{-1, math.NaN(), math.Inf(1), 1e6 + 1} {
		f(src, Options{Pattern: Pattern{Arrival: Constant, Rate: rate}}, `rate: want 0 to 1000000, got `+number(rate))
		f(src, Options{Pattern: Pattern{Arrival: Constant, Rate: rate, Stages: []Stage{{Rate: 1}}}},
			`rate: want 0 to 1000000, got `+number(rate))
		f(src, Options{Pattern: Pattern{Arrival: Constant, Stages: []Stage{{Rate: 1}, {Rate: rate}}}},
			`stages[1].rate: want 0 to 1000000, got `+number(rate))
	}
	f(src, Options{Pattern: Pattern{Arrival: Gamma, Rate: 1}}, `burstiness: want 0.01 to 1000, got 0`)
	f(src, Options{Pattern: Pattern{Arrival: Gamma, Rate: 1, Burstiness: math.NaN()}}, `burstiness: want 0.01 to 1000, got NaN`)
	f(src, Options{Pattern: Pattern{Arrival: Users, Rate: 1}}, `users: want 1 to 1048576 for arrival users, got 0`)
	f(src, Options{Pattern: Pattern{Arrival: Users, Users: 1, Rate: 1, Stages: []Stage{{Rate: 2}}}},
		`stages: needs arrival constant, poisson or gamma, got arrival users`)
	f(src, Options{Pattern: Pattern{
		Arrival: Constant,
		Stages:  []Stage{{Rate: 1, Over: -1}, {Rate: 2, Hold: Longest}, {Rate: 1, Over: 1, Hold: 1}},
	}},
		`stages[0].over: want 0s to 87600h0m0s, got -1ns`, `stages[2].over: want 0s to 0s, got 1ns`,
		`stages[2].hold: want 0s to 0s, got 1ns`, `stages[2].hold: want none for the last stage, whose rate stays, got 1ns`)
	f(src, Options{Pattern: Pattern{Arrival: Constant, Stages: make([]Stage, 1001)}}, `stages: want at most 1000, got 1001`)
	f(src, Options{Pattern: Pattern{Arrival: Constant, Stages: make([]Stage, 2)}}, `stages: want one with a rate above 0, got none`)
	f(src, Options{Pattern: Pattern{Arrival: Constant, Rate: 1e-9}},
		`rate: want one at which a loop lasts at most 87600h0m0s, got 1e-09`)
	f(src, Options{Pattern: Pattern{Arrival: Users, Users: 1, Rate: 1e-9}},
		`rate: want one at which a loop lasts at most 87600h0m0s, got 1e-09`)
	f(src, Options{Pattern: Pattern{Arrival: Constant, Rate: 1}, Duration: sec - 1},
		`rate: want a loop with a row in it, got none in 999.999999ms`)
	f(src, Options{Pattern: Pattern{Arrival: Constant, Stages: []Stage{{Rate: 1, Hold: sec / 2}, {Rate: 0}}}},
		`rate: want a loop with a row in it, got none in 500ms`)
	f(src, Options{
		Pattern: Pattern{Arrival: Constant, Rate: 10},
		Repeat: Repeat{
			Mode: Loops, Align: Start,
			Every: sec - 1,
		},
	}, `repeat.every: want at least 1s, the time to the last row, got 999.999999ms`)
	f(src, Options{
		Pattern: Pattern{Arrival: Users, Users: 2, Rate: 10},
		Repeat: Repeat{
			Mode: Loops, Align: Start,
			Every: 900 * ms,
		},
	}, `repeat.every: want more than 900ms, the time to the last row, got 900ms`)
	f(endless, Options{Pattern: Pattern{Arrival: Poisson, Rate: 1}},
		`synthetic.requests: want one of them for rows without an end with arrival "poisson", got neither`)
	if !testing.Short() { // it counts to a hundred million
		f(endless, Options{Pattern: Pattern{Arrival: Constant, Rate: 1e6}, Duration: 100*sec + time.Microsecond},
			`synthetic.requests: want at most 100000000 rows in a loop, got more`)
	}
	f(FromRecords(nil, false), Options{Pattern: Pattern{Arrival: Constant, Rate: 1}},
		`rows: want a source with a row in it, got none`)
	f(FromRecords(nil, false), Options{Pattern: Pattern{Arrival: Users, Users: 3, Rate: 1}},
		`rows: want a source with a row in it, got none`)
	f(at(0, 9*sec), Options{Pattern: Pattern{Arrival: Concurrency}, From: sec, To: 9 * sec},
		`trace.from: want a window with a row in it, got 1s to 9s`)
	f(at(0, 9*sec), Options{Pattern: Pattern{Arrival: Exact}, Rows: 3},
		`rows: want at most 2, those of the window, with arrival "exact", got 3`)
	f(at(0, 9*sec), Options{Pattern: Pattern{Arrival: Exact}, From: 1, Duration: sec},
		`trace.from: want a window with a row in it, got 1ns to 0s, for 1s`)
	f(src, Options{Pattern: Pattern{Arrival: Concurrency}, Repeat: Repeat{Mode: Cron, Cron: "0 3 * * *"}},
		`arrival: want one with times for mode "cron", got "concurrency"`)
	f(src, Options{
		Pattern: Pattern{Arrival: Concurrency},
		Repeat: Repeat{
			Mode: Loops, Every: 1, Offset: 3,
			Cron: "x",
		},
	}, `repeat.cron: needs mode "cron", got mode "loop"`,
		`repeat.every: needs another arrival, got arrival concurrency`,
		`repeat.offset: needs another arrival, got arrival concurrency`)
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
