package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

// Play gives the first and the last tokens of the served engine, to the nanosecond.
func TestPlay(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(o *Options)
	}{
		{"default", func(*Options) {}},
		{"few slots", func(o *Options) { o.Slots = 3 }},
		{"full queue", func(o *Options) { o.Slots, o.MaxQueue = 2, 3 }},
		{"given times", func(o *Options) { o.TTFT, o.ITL = 20*time.Millisecond, time.Millisecond }},
		{"noise", func(o *Options) { o.Jitter, o.SlowShare, o.SlowFactor = 0.3, 0.2, 3 }},
		{"shared steps", func(o *Options) { o.Slots, o.StepTokens = 8, 64 }},
		{"shared steps with noise", func(o *Options) { o.Slots, o.StepTokens, o.Jitter, o.SlowShare = 4, 64, 0.3, 0.2 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := Defaults()
			// Odd rates: two events of one instant have no order in the served engine.
			o.PrefillRate, o.DecodeRate, o.BatchCost = 1999.37, 203.71, 0.1013
			c.set(&o)
			r := rand.New(rand.NewPCG(1, 2))
			var arrivals []Arrival
			at := time.Duration(0)
			for i := range 60 {
				at += time.Duration(r.ExpFloat64() * 30e6)
				arrivals = append(arrivals, Arrival{ID: fmt.Sprint("row-", i), At: at, Prompt: 1 + r.IntN(100), Output: 1 + r.IntN(30)})
			}
			played, err := Play(o, arrivals)
			if err != nil {
				t.Fatal(err)
			}
			refused := 0
			for _, p := range played {
				if p.Refused {
					refused++
				}
			}
			if (refused > 0) != (c.name == "full queue") {
				t.Errorf("%d refused", refused)
			}
			o.CacheTokens = 0 // equal words would be found in the cache
			simulate(t, o, func(b bench) {
				var wg sync.WaitGroup
				for i, a := range arrivals {
					wg.Go(func() {
						pass(a.At)
						got := b.post(b.Context(), pathCompletions, a.ID, completion(text("w", a.Prompt), a.Output))
						want := played[i]
						if want.Refused {
							if got.status != 503 {
								b.Errorf("row %d: status %d, want 503", i, got.status)
							}
							return
						}
						if first, last := a.At+got.at[0], a.At+got.at[len(got.at)-1]; first != want.First || last != want.Last {
							b.Errorf("row %d: tokens at %v and %v, Play has %v and %v", i, first, last, want.First, want.Last)
						}
					})
				}
				wg.Wait()
			})
		})
	}
}

// A prompt that another request computed before is found in the cache.
func TestPlayCache(t *testing.T) {
	o := Defaults()
	o.PrefillRate, o.BlockTokens = 1000, 10
	for _, shared := range []int{0, 64} {
		o.StepTokens = shared
		played, err := Play(o, []Arrival{
			{ID: "a", Prompt: 40, Output: 1, Keys: []uint64{1, 2, 3, 4}},
			{ID: "b", At: time.Second, Prompt: 45, Output: 1, Keys: []uint64{1, 2, 9, 9}},
		})
		if err != nil {
			t.Fatal(err)
		}
		want := []Played{
			{First: 40 * time.Millisecond, Last: 40 * time.Millisecond},
			{Cached: 20, First: 1025 * time.Millisecond, Last: 1025 * time.Millisecond},
		}
		if !slices.Equal(played, want) {
			t.Errorf("steps of %d tokens: got %+v, want %+v", shared, played, want)
		}
	}
}

// The noise has the median and the deviation that the options name, and the same seed and id give the same noise.
func TestPace(t *testing.T) {
	o := Defaults()
	if got := o.pace("a"); got != even {
		t.Errorf("without noise: got %v", got)
	}
	o.Jitter, o.SlowShare, o.SlowFactor = 0.2, 0.1, 1000
	other := o
	other.Seed++
	const n = 20000
	var logs []float64
	slow, sum, differ := 0, 0.0, 0
	for i := range n {
		id := fmt.Sprint(i)
		p := o.pace(id)
		if p != o.pace(id) {
			t.Fatalf("request %s: two paces", id)
		}
		if p != other.pace(id) {
			differ++
		}
		if p.prefill > 30 {
			slow++
			if p.decode < 30 {
				t.Errorf("request %s: prefill %v, decode %v", id, p.prefill, p.decode)
			}
			continue
		}
		logs = append(logs, math.Log(p.prefill))
		sum += math.Log(p.prefill) * math.Log(p.prefill)
	}
	slices.Sort(logs)
	median, deviation, share := logs[len(logs)/2], math.Sqrt(sum/float64(len(logs))), float64(slow)/n
	if math.Abs(median) > 0.01 || math.Abs(deviation-0.2) > 0.01 || math.Abs(share-0.1) > 0.01 {
		t.Errorf("median of the logarithm %v, deviation %v, share of slow requests %v, want 0, 0.2 and 0.1", median, deviation, share)
	}
	if differ != n {
		t.Errorf("another seed: %d of %d paces differ", differ, n)
	}
}
