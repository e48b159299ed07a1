package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/sim"
)

// Play gives the first and the last tokens of the served engine, to the nanosecond.
func TestPlay(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(o *sim.Options)
	}{
		{"default", func(*sim.Options) {}},
		{"few slots", func(o *sim.Options) { o.Slots = 3 }},
		{"full queue", func(o *sim.Options) { o.Slots, o.MaxQueue = 2, 3 }},
		{"given times", func(o *sim.Options) { o.TTFT, o.ITL = 20*time.Millisecond, time.Millisecond }},
		{"noise", func(o *sim.Options) { o.Jitter, o.SlowShare, o.SlowFactor = 0.3, 0.2, 3 }},
		{"shared steps", func(o *sim.Options) { o.Slots, o.StepTokens = 8, 64 }},
		{"shared steps with noise", func(o *sim.Options) { o.Slots, o.StepTokens, o.Jitter, o.SlowShare = 4, 64, 0.3, 0.2 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := sim.Defaults()
			// Odd rates: two events of one instant have no order in the served engine.
			o.PrefillRate, o.DecodeRate, o.BatchCost = 1999.37, 203.71, 0.1013
			c.set(&o)
			r := rand.New(rand.NewPCG(1, 2))
			var arrivals []Arrival
			at := time.Duration(0)
			for i := range 60 {
				at += time.Duration(r.ExpFloat64() * 30e6)
				arrivals = append(arrivals, Arrival{
					ID: fmt.Sprint("row-", i), At: at, Prompt: 1 + r.IntN(100), Output: 1 + r.IntN(30),
				})
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
			synctest.Test(t, func(t *testing.T) {
				e, err := sim.New(o)
				if err != nil {
					t.Fatal(err)
				}
				var all sync.WaitGroup
				for i, a := range arrivals {
					all.Go(func() {
						<-time.After(a.At)
						got := writer{ResponseRecorder: httptest.NewRecorder(), began: time.Now()}
						e.Handler().ServeHTTP(&got, completion(t, a))
						want := played[i]
						if want.Refused {
							if got.Code != http.StatusServiceUnavailable {
								t.Errorf("row %d: status %d, want 503", i, got.Code)
							}
							return
						}
						if first, last := a.At+got.at[0], a.At+got.at[len(got.at)-1]; first != want.First || last != want.Last {
							t.Errorf("row %d: tokens at %v and %v, Play has %v and %v", i, first, last, want.First, want.Last)
						}
					})
				}
				all.Wait()
			})
		})
	}
}

// A writer notes the instant at which each part of a stream is written.
type writer struct {
	*httptest.ResponseRecorder
	began time.Time
	at    []time.Duration
}

func (w *writer) Write(b []byte) (int, error) {
	if len(b) > 0 { // else the headers are sent
		w.at = append(w.at, time.Since(w.began))
	}
	return w.ResponseRecorder.Write(b)
}

// completion is the streamed request of an arrival.
func completion(t *testing.T, a Arrival) *http.Request {
	t.Helper()
	body := fmt.Sprintf(`{"model": "sim", "prompt": %q, "stream": true, "max_tokens": %d, "ignore_eos": true}`,
		strings.TrimSpace(strings.Repeat("w ", a.Prompt)), a.Output)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/completions", strings.NewReader(body))
	r.Header.Set("X-Request-Id", a.ID)
	return r
}

// A prompt that another request computed before is found in the cache.
func TestPlayCache(t *testing.T) {
	o := sim.Defaults()
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
