package scrape

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"replayd/internal/bounded"
	"replayd/internal/secret"
)

// identities returns all series of replayd's page as text, those of an engine's histogram by bucket.
func identities(t *testing.T, reg prometheus.Gatherer) (all []string) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			id := f.GetName() + fmt.Sprint(m.GetLabel())
			all = append(all, id)
			for _, b := range m.GetHistogram().GetBucket() {
				all = append(all, id+fmt.Sprint(b.GetUpperBound()))
			}
		}
	}
	return all
}

// overflowed returns the counts of label values without a place.
func overflowed(t *testing.T, reg prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, f := range families {
		if f.GetName() == "replayd_label_overflow_total" {
			for _, m := range f.GetMetric() {
				if v := m.GetCounter().GetValue(); v > 0 {
					counts[value(m, "label")] = v
				}
			}
		}
	}
	return counts
}

// A page that invents ranks, buckets and a model at each scrape makes no more series in all scrapes than in the first ones.
func TestHostilePagesMakeFewSeries(t *testing.T) {
	scrapes := 1000
	if text := os.Getenv("HOSTILE_SCRAPES"); text != "" {
		var err error
		if scrapes, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		f, e := newFixture(), &server{}
		f.collector.Overflow = bounded.NewOverflow(f.registry)
		target := f.target(t, e, TargetOptions{Page: "http://engine:8000/metrics"})
		target.Show()
		one := target.endpoints[0]
		r := rand.New(rand.NewPCG(1, 2))
		seen, most := map[string]bool{}, 0
		var before runtime.MemStats
		for i := range scrapes {
			lines := make([]string, 0, 310)
			for range 300 {
				lines = append(lines, fmt.Sprintf(`vllm:num_requests_waiting{engine="%d",model_name="m%d"} 1`, r.Uint64(), r.Uint64()))
			}
			for j, upper := range []float64{r.Float64(), 1 + r.Float64(), 2 + r.Float64()} {
				lines = append(lines, fmt.Sprintf(`vllm:time_to_first_token_seconds_bucket{le="%v"} %d`, upper, j))
			}
			const ttft = "vllm:time_to_first_token_seconds"
			lines = append(lines, ttft+`_bucket{le="+Inf"} 9`, ttft+"_sum 9", ttft+"_count 9")
			e.say(lines...)
			one.scrape(t.Context())
			if i%10 == 0 || i < 200 {
				page := identities(t, f.registry)
				most = max(most, len(page))
				for _, id := range page {
					seen[id] = true
				}
			}
			if i == 200 {
				runtime.GC()
				runtime.ReadMemStats(&before)
			}
			<-time.After(time.Second) // virtual
		}
		e.mu.Lock()
		e.asked = nil
		e.mu.Unlock()
		var after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&after)
		grown := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) >> 10
		t.Logf("%d scrapes: %d different series, at most %d at once; heap %+d KiB since the 200th; without a place: %v",
			scrapes, len(seen), most, grown, overflowed(t, f.registry))
		if own := 25; len(seen) > maxRanks+maxBuckets+maxModels+1+own {
			t.Errorf("want at most %d ranks, %d buckets, %d models and %d others, got %d series", maxRanks, maxBuckets, maxModels+1, own, len(seen))
		}
		if grown > 2048 {
			t.Errorf("want no more memory than after 200 scrapes, got %d KiB more", grown)
		}
		if got := overflowed(t, f.registry); got["rank"] == 0 || got["le"] == 0 || got["model_name"] == 0 {
			t.Errorf("want values without a place counted, got %v", got)
		}
	})
}

// The buckets that are left are right. Ranks without a place have no sum. A day later there is room.
func TestWhatIsLeftIsRight(t *testing.T) {
	now := time.Unix(0, 0)
	q, waiting := quantity("ttft_seconds"), quantity("requests_waiting")
	var p places
	for i := range maxBuckets {
		p.show(&Reading{Figures: []Figure{{
			Quantity: q,
			Buckets:  histogramOf(1, []float64{float64(i)}, []uint64{1}),
		}}}, now, nil)
	}
	for i := range maxRanks - 1 {
		p.show(&Reading{Figures: []Figure{{Quantity: waiting, Rank: secret.Text(fmt.Sprint(i))}}}, now, nil)
	}
	r := &Reading{Model: "m", Figures: []Figure{
		{Quantity: q, Buckets: histogramOf(9, []float64{1, 1.5, 2}, []uint64{2, 4, 6})},
		{Quantity: waiting, Rank: "x", Value: 1},
		{Quantity: waiting, Rank: "y", Value: 1},
		{Quantity: waiting, Value: 3},
	}}
	got := p.show(r, now, nil)
	left := got.Figures[0].Buckets
	upper, counts := bucketsOf(left)
	if left.GetSampleCount() != 9 || !slices.Equal(upper, []float64{1, 2}) || !slices.Equal(counts, []uint64{2, 6}) {
		t.Errorf("want the known buckets as they were, got %v", left)
	}
	if len(r.Figures[0].Buckets.Bucket) != 3 {
		t.Error("want the reading unchanged")
	}
	if len(got.Figures) != 3 || got.Figures[1].Rank != "x" || got.Figures[2].Rank != "" {
		t.Errorf("want x and the figure without a rank, got %+v", got.Figures)
	}
	if got := p.show(r, now.Add(forgetValue), nil); len(got.Figures) != 4 || len(got.Figures[0].Buckets.Bucket) != 3 {
		t.Errorf("a day later: want room for y and for the bucket, got %+v", got.Figures)
	}
}

// A fleet of 40 engines with 2 ranks each is rolled out within 40 minutes every day for 30 days (5 with -short), with new addresses, a
// new model and other buckets each time, and half of it is replaced every six hours. All of it is on the page all the time.
func TestFleetsKeepTheirPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, e := newFixture(), &server{}
		f.collector.Overflow = bounded.NewOverflow(f.registry)
		var names []netip.Addr
		next := netip.MustParseAddr("10.0.0.1")
		join := func(n int) {
			for range n {
				names, next = append(names, next), next.Next()
			}
		}
		join(40)
		target := f.target(t, nil, TargetOptions{
			URL: "http://engines.example:8000", Replicas: "engines.example", Interval: 30 * time.Minute,
			resolver: func(context.Context, string) ([]netip.Addr, error) { return names, nil },
		})
		seen := map[string]bool{}
		look := func(day int) {
			target.follow(t.Context(), func(ctx context.Context, one *endpoint) {
				context.AfterFunc(ctx, func() { f.collector.release(one.address()) })
				one.fetcher = &Fetcher{client: &http.Client{Transport: e}}
			})
			var lines []string
			for rank := range 2 {
				lines = append(lines,
					fmt.Sprintf(`vllm:num_requests_waiting{engine="%d",model_name="model-%d"} 1`, rank, day),
					fmt.Sprintf(`vllm:time_to_first_token_seconds_bucket{engine="%d",le="%d"} 1`, rank, 1+day),
					fmt.Sprintf(`vllm:time_to_first_token_seconds_bucket{engine="%d",le="+Inf"} 1`, rank),
					fmt.Sprintf(`vllm:time_to_first_token_seconds_sum{engine="%d"} 1`, rank),
					fmt.Sprintf(`vllm:time_to_first_token_seconds_count{engine="%d"} 1`, rank))
			}
			e.say(lines...)
			for _, one := range target.endpoints {
				one.scrape(t.Context())
			}
			synctest.Wait()
			waiting := 0
			for _, id := range identities(t, f.registry) {
				if strings.HasPrefix(id, "replayd_engine_up") {
					seen[id] = true
				}
				if strings.HasPrefix(id, "replayd_engine_requests_waiting") {
					waiting++
				}
			}
			if waiting != 2*len(names) {
				t.Fatalf("day %d: want %d ranks, got %d", day, 2*len(names), waiting)
			}
		}
		days := 30
		if testing.Short() {
			days = 5
		}
		for day := range days {
			for range 8 { // a pod after the other, with five more meanwhile
				join(5)
				look(day)
				names = names[5:]
				<-time.After(5 * time.Minute) // virtual
			}
			for range 3 {
				<-time.After(6 * time.Hour)
				names = names[20:]
				join(20)
				look(day)
			}
			<-time.After(5*time.Hour + 20*time.Minute)
		}
		t.Logf("%d engines in %d days", len(seen), days)
		if len(seen) < 100*days {
			t.Errorf("want a new fleet each day, got %d engines in all", len(seen))
		}
		if got := overflowed(t, f.registry); len(got) > 0 {
			t.Errorf("want a place for all, got %v without one", got)
		}
		for _, one := range target.endpoints {
			one.end()
		}
	})
}

// Addresses that DNS makes up without end get 256 new places in six hours. Those without one are scraped for the guard.
func TestAddressesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		f.collector.Overflow = bounded.NewOverflow(f.registry)
		seen := map[string]bool{}
		for i := range 1000 {
			a := address{"vllm", fmt.Sprint(i)}
			f.collector.use(a, nil, 0)
			for _, id := range identities(t, f.registry) {
				if strings.HasPrefix(id, "replayd_engine_up") {
					seen[id] = true
				}
			}
			f.collector.release(a)
			<-time.After(21 * time.Second) // just below six hours in all
		}
		if len(seen) != maxAddresses {
			t.Errorf("want %d of 1000 engines on the page, got %d", maxAddresses, len(seen))
		}
		if got := overflowed(t, f.registry)["address"]; got != 1000-maxAddresses {
			t.Errorf("want %d without a place, got %v", 1000-maxAddresses, got)
		}
	})
}

// histogramOf returns a histogram of a count and of cumulative counts by their upper bounds.
func histogramOf(count uint64, upper []float64, counts []uint64) *dto.Histogram {
	h := &dto.Histogram{SampleCount: &count}
	for i, u := range upper {
		h.Bucket = append(h.Bucket, &dto.Bucket{UpperBound: &u, CumulativeCount: &counts[i]})
	}
	return h
}

// bucketsOf returns the upper bounds of a histogram, and their cumulative counts.
func bucketsOf(h *dto.Histogram) (upper []float64, counts []uint64) {
	for _, b := range h.GetBucket() {
		upper, counts = append(upper, b.GetUpperBound()), append(counts, b.GetCumulativeCount())
	}
	return upper, counts
}
