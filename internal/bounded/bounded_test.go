package bounded

import (
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// Values that are seen keep their places and what is kept with them. Another value gets the place of the one seen longest ago, once that is
// long enough ago.
func TestSet(t *testing.T) {
	begin := time.Unix(0, 0)
	at := func(minutes int) time.Time { return begin.Add(time.Duration(minutes) * time.Minute) }
	s := NewSet[int](2, time.Hour)
	*s.See("a", at(0)) = 1
	*s.See("b", at(10)) = 2
	if s.See("c", at(59)) != nil || s.Has("c") {
		t.Error("want no place for a third value within the hour")
	}
	if v := s.See("a", at(59)); v == nil || *v != 1 {
		t.Error("want what is kept with a")
	}
	if s.See("c", at(69)) != nil {
		t.Error("want no place: b was seen 59 minutes ago")
	}
	*s.See("c", at(70)) = 3
	got := map[string]int{}
	for value, v := range s.All() {
		got[value] = *v
	}
	if want := map[string]int{"a": 1, "c": 3}; !maps.Equal(got, want) {
		t.Errorf("want %v, got %v", want, got)
	}
	if v := s.See("b", at(119)); v == nil || *v != 0 {
		t.Error("want b to begin anew at the place of a")
	}
}

// Whatever is seen: a set has at most so many values, and in any time of that length at most as many new ones. Values in use stay.
func TestSetIsBounded(t *testing.T) {
	const most, forget = 8, 100 * time.Second
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		s := NewSet[struct{}](most, forget)
		now := time.Unix(0, 0)
		var entered []time.Time
		for range 2000 {
			now = now.Add(time.Duration(r.IntN(5000)) * time.Millisecond)
			for used := range 4 {
				if s.See(fmt.Sprint("used", used), now) == nil {
					t.Fatalf("seed %d: a value in use has lost its place", seed)
				}
			}
			value := fmt.Sprint(r.IntN(40))
			known := s.Has(value)
			if s.See(value, now) != nil && !known {
				entered = append(entered, now)
			}
			if n := len(s.entries); n > most {
				t.Fatalf("seed %d: %d values", seed, n)
			}
		}
		for i := most; i < len(entered); i++ {
			if d := entered[i].Sub(entered[i-most]); d < forget {
				t.Fatalf("seed %d: %d new values within %v", seed, most+1, d)
			}
		}
	}
}

func TestSetAllocates(t *testing.T) {
	s := NewSet[int](1, time.Hour)
	now := time.Unix(0, 0)
	s.See("a", now)
	if n := testing.AllocsPerRun(100, func() { s.See("a", now); s.See("b", now) }); n != 0 {
		t.Errorf("want no allocations for known values and for those without a place, got %v", n)
	}
}

// Each label has its series from the start, and one line in the log.
func TestOverflow(t *testing.T) {
	var log strings.Builder
	reg := prometheus.NewPedanticRegistry()
	o := NewOverflow(reg)
	o.LogTo(slog.New(slog.NewTextHandler(&log, nil)))
	if n, err := testutil.GatherAndCount(reg); n != len(all) || err != nil {
		t.Errorf("want %d series, got %d, %v", len(all), n, err)
	}
	o.Add(Rank, 3)
	o.Add(Rank, 4)
	o.Add(Model, 0)
	if got := testutil.ToFloat64(o.total.WithLabelValues("rank")); got != 7 {
		t.Errorf("want 7, got %v", got)
	}
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "label=rank") {
		t.Errorf("want one line, about rank, got %s", log.String())
	}
	(*Overflow)(nil).Add(Rank, 1)
}
