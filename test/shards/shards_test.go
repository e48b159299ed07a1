//go:build real

package shards_test

import (
	"fmt"
	"math"
	"slices"
	"syscall"
	"testing"
	"time"

	"replayd/test/outside"
)

// A world is everything that runs. It ends with the test.
type world struct {
	replicas []*replica // the shards, and the one that replays all
	logs     []string   // of their engines: the shards share the first
	prom     outside.Prometheus
	first    int64 // number of the first loop that all replicas run whole
}

// begin returns the instant at which a loop begins: align wall_clock counts loops since 1970.
func begin(loopNumber int64) time.Time { return time.Unix(0, loopNumber*int64(loop)) }

// before returns an instant at which the previous loop was answered and scraped, and this loop has not begun.
func before(loopNumber int64) time.Time { return begin(loopNumber).Add(-1500 * time.Millisecond) }

func newWorld(t *testing.T, dir string) *world {
	t.Helper()
	path := writeTrace(t, dir)
	together, log := startEngine(t, dir, "engine")
	alone, logOfOne := startEngine(t, dir, "engine-of-one")
	w := &world{logs: []string{log, logOfOne}}
	for i := range shards {
		p := statefulSet(t, i)
		if i == shards-1 {
			p = indexedJob(i)
		}
		w.replicas = append(w.replicas, newReplica(t, dir, p, together, path, fmt.Sprintf("{index: auto, of: %d}", shards)))
	}
	w.replicas = append(w.replicas, newReplica(t, dir, pod{name: "whole"}, alone, path, "{index: 0, of: 1}"))
	for _, r := range w.replicas {
		r.start(t, dir)
	}
	w.prom = startPrometheus(t, dir, w.replicas)
	outside.Until(t, func() error {
		if got := w.prom.Number(t, "count(replayd_shards and on (instance) up == 1)", time.Now()); got != shards+1 {
			return fmt.Errorf("want %d processes scraped, got %v", shards+1, got)
		}
		return nil
	})
	w.first = time.Now().Add(begin(1).Sub(before(1))).UnixNano()/int64(loop) + 1
	return w
}

func TestShards(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	n := w.first
	const dead = 2
	until(t, before(n+1))
	w.replicas[dead].process.Signal(t, syscall.SIGKILL) // nothing is in flight, so the whole loop can be judged
	killed := time.Now()

	records := make([][]record, len(w.replicas))
	for i, r := range w.replicas {
		records[i] = r.recorded(t, n)
	}
	owner := owners(t, records[:shards])
	if t.Failed() {
		return
	}
	w.rowsOnce(t, n, func(int) bool { return true })
	all := map[string][]record{many: slices.Concat(records[:shards]...), one: records[shards]}
	w.counts(t, n, all)
	w.quantiles(t, n, all)
	early, err := w.prom.Query(t.Context(), `ALERTS{alertname="ReplaydShardMissing"}`, before(n+1))
	if err != nil || len(early) > 0 {
		t.Errorf("want no alert while all are there, got %v, %v", early, err)
	}

	lost := 0
	for _, o := range owner {
		if o == dead {
			lost++
		}
	}
	w.fires(t, killed)
	until(t, before(n+2))
	w.hole(t, n+1, lost)
	w.rowsOnce(t, n+1, func(row int) bool { return owner[row] != dead })

	// The process comes back like a pod of a StatefulSet, with the same name and configuration.
	until(t, begin(n+2).Add(4*time.Second))
	back := time.Now()
	w.replicas[dead].start(t, dir)
	ready := time.Now()
	w.resolves(t)
	until(t, before(n+3))
	w.rejoined(t, n+2, owner, dead, back, ready)
}

// rowsOnce checks the wanted rows at the shards' engine, and all rows at the other engine.
func (w *world) rowsOnce(t *testing.T, n int64, wanted func(row int) bool) {
	t.Helper()
	wantOnce(t, arrivals(t, w.logs[0], n), begin(n), wanted)
	wantOnce(t, arrivals(t, w.logs[1], n), begin(n), func(int) bool { return true })
}

// counts checks that the four together, and the one, have the counts of the trace, in both kinds of histogram. Of ITL and
// TPOT they have the counts that the records allow: on a busy machine a read can hold several chunks, with no time between.
func (w *world) counts(t *testing.T, n int64, records map[string][]record) {
	t.Helper()
	tokens := 0
	for _, r := range trace() {
		tokens += r.output
	}
	check := func(expr string, least, most int) {
		t.Helper()
		if got := w.prom.Number(t, expr, before(n+1)) - w.prom.Number(t, expr, before(n)); !(got >= float64(least) && got <= float64(most)) {
			t.Errorf("%s: want %d to %d in a loop, got %v", expr, least, most, got)
		}
	}
	for namespace, all := range records {
		counter := func(series, labels string, want int) {
			t.Helper()
			check(fmt.Sprintf(`sum(replayd_%s{namespace=%q%s})`, series, namespace, labels), want, want)
		}
		histogram := func(name string, least, most int) {
			t.Helper()
			check(fmt.Sprintf(`sum(replayd_%s_seconds_count{namespace=%q})`, name, namespace), least, most)
			check(fmt.Sprintf(`sum(replayd_%s_seconds_bucket{namespace=%q,le="+Inf"})`, name, namespace), least, most)
			check(fmt.Sprintf(`histogram_count(sum(replayd_%s_seconds{namespace=%q}))`, name, namespace), least, most)
		}
		counter("requests_expected_total", "", rows)
		counter("requests_total", `,outcome="ok"`, rows)
		counter("goodput_requests_total", "", rows)
		counter("tokens_total", `,kind="output"`, tokens)
		for _, name := range []string{"lateness", "lane_wait", "session_wait", "ttft", "ttft_from_due", "e2e", "e2e_from_due"} {
			histogram(name, rows, rows)
		}
		answers, least, most := gaps(all)
		histogram("tpot", answers, answers)
		histogram("itl", least, most)
		t.Logf("%-4s %d of %d answers came in several reads, with %d to %d gaps between %d tokens", namespace, answers, rows, least, most, tokens)
	}

	for i, r := range w.replicas[:shards] {
		if got := w.prom.Number(t, fmt.Sprintf(`replayd_shard_index{namespace=%q,pod=%q} and replayd_shards == %d`, many, r.pod.name, shards), before(n+1)); got != float64(i) {
			t.Errorf("%s: want shard %d of %d, got %v", r.pod.name, i, shards, got)
		}
	}
}

// quantiles compares the quantiles of the sum of the four with those of the one, and with the mean of the four's own
// quantiles.
//
// A quantile of a histogram is in the bucket of its observation, so it is compared with that observation, from the
// records: a native bucket is at most 2^(1/16) wide, 4.4 %. How much the two replays differ is noise of this machine, and
// is only logged.
func (w *world) quantiles(t *testing.T, n int64, all map[string][]record) {
	bucket := math.Exp2(1. / 16)
	median, worst := apart(all[many], all[one])
	t.Logf("TTFT of one row in both replays: apart by %v in the median, %v at most", milliseconds(median), milliseconds(worst))
	for _, q := range []float64{0.5, 0.9} {
		for _, namespace := range []string{many, one} {
			exact := quantile(q, all[namespace]).Seconds()
			native := w.prom.Number(t, fmt.Sprintf(`histogram_quantile(%v, sum(rate(replayd_ttft_seconds{namespace=%q}[%v])))`, q, namespace, loop), before(n+1))
			if !(native <= exact*bucket && native >= exact/bucket) {
				t.Errorf("%s: quantile %v: want one in the bucket of %v s, got %v s", namespace, q, exact, native)
			}
			classic := w.prom.Number(t, fmt.Sprintf(`histogram_quantile(%v, sum by (le) (rate(replayd_ttft_seconds_bucket{namespace=%q}[%v])))`, q, namespace, loop), before(n+1))
			if low, high := bounds(exact); !(classic >= low && classic <= high) {
				t.Errorf("%s: quantile %v: want one in the bucket of %v s, %v to %v s, got %v s", namespace, q, exact, low, high, classic)
			}
			t.Logf("%-4s quantile %v: %.1f ms by the records; of the sum of histograms %.1f ms (native), %.1f ms (classic)", namespace, q, exact*1000, native*1000, classic*1000)
		}

		// Shard 3 has the long prompts, and a mean of the four quantiles ignores how many requests those are.
		each := fmt.Sprintf(`histogram_quantile(%v, sum by (pod) (rate(replayd_ttft_seconds{namespace=%q}[%v])))`, q, many, loop)
		mean := w.prom.Number(t, "avg("+each+")", before(n+1))
		for i, r := range w.replicas[:shards] {
			t.Logf("     shard %d alone: %.1f ms", i, 1000*w.prom.Number(t, each+fmt.Sprintf(` and on (pod) up{pod=%q}`, r.pod.name), before(n+1)))
		}
		t.Logf("     the mean of these: %.1f ms", mean*1000)
		if exact := quantile(q, all[many]).Seconds(); !(math.Abs(mean/exact-1) > bucket-1) {
			t.Errorf("quantile %v: want a mean of quantiles that is wrong by more than a bucket, or this shows nothing: got %v for %v s", q, mean, exact)
		}
	}
}

// bounds returns the bounds of the classic bucket of a TTFT (docs/reference/metrics.md), in seconds.
func bounds(ttft float64) (low, high float64) {
	for _, high = range []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1} {
		if ttft <= high {
			return low, high
		}
		low = high
	}
	return low, math.Inf(1)
}

// fires expects the alert about the missing shard, and only for its fleet.
func (w *world) fires(t *testing.T, killed time.Time) {
	t.Helper()
	var firing []string
	outside.Until(t, func() error {
		if firing = w.firing(t, "ReplaydShardMissing"); len(firing) == 0 {
			return fmt.Errorf("want ReplaydShardMissing to fire")
		}
		return nil
	})
	if want := []string{many + ": canary on sim: 3 of 4 shards are running"}; !slices.Equal(firing, want) {
		t.Errorf("want %q, got %q", want, firing)
	}
	t.Logf("firing %v after the kill at the latest, with rules %d times as fast: %q", time.Since(killed).Round(100*time.Millisecond), scale, firing)
}

// hole checks that the fleet's expected requests of a loop are fewer by the lost rows, as a count and as a rate.
func (w *world) hole(t *testing.T, n int64, lost int) {
	t.Helper()
	// The dead shard's series are gone by now, so the result has only series that exist at both times.
	const expected = `sum(replayd_requests_expected_total{namespace="many"} - replayd_requests_expected_total{namespace="many"} offset %v)`
	if got := w.prom.Number(t, fmt.Sprintf(expected, loop), before(n+1)); got != float64(rows-lost) {
		t.Errorf("want %d of %d rows expected, got %v", rows-lost, rows, got)
	}
	rate := func(namespace string) float64 {
		return w.prom.Number(t, fmt.Sprintf(`sum(rate(replayd_requests_expected_total{namespace=%q}[%v]))`, namespace, loop), before(n+1))
	}
	want := 1 - float64(lost)/rows
	got := rate(many) / rate(one)
	if !(math.Abs(got-want) < 1./12) { // each rate is extrapolated by up to one of its 12 samples
		t.Errorf("want %.3f of the rate that is expected of the whole trace, got %.3f", want, got)
	}
	t.Logf("%d of %d rows were the dead shard's; the fleet's expected rate is %.3f of the whole trace's, want %.3f", lost, rows, got, want)
}

// resolves waits until the alert is gone.
func (w *world) resolves(t *testing.T) {
	t.Helper()
	began := time.Now()
	outside.Until(t, func() error {
		if firing := w.firing(t, "ReplaydShardMissing"); len(firing) > 0 {
			return fmt.Errorf("want it resolved, got %q", firing)
		}
		return nil
	})
	t.Logf("resolved %v after the shard was ready", time.Since(began).Round(100*time.Millisecond))
}

// rejoined checks that a shard sent nothing before it was back and everything from a second after it was ready, and
// that the others were unaffected.
func (w *world) rejoined(t *testing.T, n int64, owner []int, shard int, back, ready time.Time) {
	t.Helper()
	came := arrivals(t, w.logs[0], n)
	missed, sent := 0, 0
	for i, r := range trace() {
		due := begin(n).Add(r.offset)
		switch {
		case len(came[i]) > 1:
			t.Errorf("row %d: want it once, it came at %v", i, came[i])
		case len(came[i]) == 0 && (owner[i] != shard || due.After(ready.Add(time.Second))):
			t.Errorf("row %d of shard %d was not sent", i, owner[i])
		case len(came[i]) == 1 && owner[i] == shard && due.Before(back):
			t.Errorf("row %d was due before the shard was back, and was sent", i)
		case len(came[i]) == 0:
			missed++
		case owner[i] == shard:
			sent++
		}
	}
	if missed == 0 || sent == 0 {
		t.Errorf("want the shard back in the middle of its rows, it missed %d and sent %d", missed, sent)
	}
	t.Logf("back %v into the loop, ready %v later: %d rows of this loop were lost, %d were sent", back.Sub(begin(n)).Round(time.Millisecond), ready.Sub(back).Round(time.Millisecond), missed, sent)
}
