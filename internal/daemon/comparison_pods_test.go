package daemon

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/canary"
)

// names resolves the names of pods.
type names struct {
	mu        sync.Mutex
	addresses map[string][]string
	err       error
}

func (n *names) set(name string, addresses ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addresses[name] = addresses
}

func (n *names) fail(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.err = err
}

func (n *names) resolve(_ context.Context, name string) (found []netip.Addr, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, a := range n.addresses[name] {
		found = append(found, netip.MustParseAddr(a))
	}
	return found, n.err
}

// pairsOfPods counts the pairs of pods that the rows went to whose requests have ended since the first of sent.
func (w *world) pairsOfPods(first int) map[[2]uint16]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	rows := map[string][2]uint16{}
	for _, r := range w.sent[first:] {
		workload, row, _ := strings.Cut(r.ID, "/")
		pair := rows[row]
		pair[map[string]int{"load": 0, "load@canary": 1}[workload]] = r.Pod
		rows[row] = pair
	}
	pairs := map[[2]uint16]int{}
	for _, pair := range rows {
		if pair[0] > 0 && pair[1] > 0 {
			pairs[pair]++
		}
	}
	return pairs
}

// Rows go round all pairs of pods that both names have. A failure of DNS changes nothing. Other pods make the open
// pairs void, and the latencies begin anew.
func TestPodsOfAComparison(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, conf := twoServers(t, 1)
		dns := &names{addresses: map[string][]string{"stable": {"10.0.0.2", "10.0.0.1"}, "canary": {"10.0.1.1", "10.0.1.2"}}}
		w.resolve = dns.resolve
		conf.Targets[0].Pods, conf.Targets[1].Pods = []string{"dns+stable:8000"}, []string{"dns+canary:8000"}
		w.start(conf, true)
		pass(62 * time.Second)
		pairs := w.pairsOfPods(0)
		for _, pair := range [][2]uint16{{1, 1}, {1, 2}, {2, 1}, {2, 2}} {
			if n := pairs[pair]; n < 130 || n > 170 {
				t.Errorf("pods %v have %d of 600 rows: %v", pair, n, pairs)
			}
		}
		w.mu.Lock()
		want := []string{"10.0.0.1:8000", "10.0.0.2:8000", "10.0.1.1:8000", "10.0.1.2:8000"}
		if got := slices.Sorted(maps.Keys(w.dialed)); !slices.Equal(got, want) {
			t.Errorf("there were connections to %v, want %v", got, want)
		}
		for address, n := range w.dialed {
			if n > 6 {
				t.Errorf("%d connections to %s for 300 rows, want those before to be used again", n, address)
			}
		}
		w.mu.Unlock()

		dns.fail(errors.New("no such host"))
		pass(30 * time.Second)
		s := w.compared()
		if p := s.Counters.Totals().Pairs; s.Pods != [2]int{2, 2} || p.Void > 0 || p.Bad != [2]int64{} {
			t.Errorf("with DNS down there are %v pods, and the pairs are %+v", s.Pods, p)
		}
		if n := s.Judgment.Metrics[canary.TTFT].Blocks; n < 10 {
			t.Errorf("%d blocks, want 10 for what is said below", n)
		}
		if got := w.page().Sum("replayd_target_lookup_errors_total", "canary"); got != 3 {
			t.Errorf("got %v failed look-ups, want one every 10 s", got)
		}
		epoch := s.Epoch
		dns.fail(nil)
		dns.set("canary", "10.0.1.3", "10.0.1.2", "10.0.1.1", "10.0.1.3")
		pass(11 * time.Second)
		s = w.compared()
		if void := s.Counters.Totals().Pairs.Voids[canary.VoidPodsChanged]; s.Pods != [2]int{2, 3} || void == 0 || void > 25 {
			t.Errorf("there are %v pods, and %d pairs are void", s.Pods, void)
		}
		if s.Judgment.Metrics[canary.TTFT].Blocks > 6 || !s.Epoch.Equal(epoch) {
			t.Errorf("the evidence of latencies goes on: %+v, of the epoch %v", s.Judgment.Metrics[canary.TTFT], s.Epoch)
		}
		if got := w.page().Sum("replayd_target_pods", "canary"); got != 3 {
			t.Errorf("replayd_target_pods is %v, want 3", got)
		}
		w.mu.Lock()
		first := len(w.sent)
		w.mu.Unlock()
		pass(time.Minute)
		if pairs := w.pairsOfPods(first); len(pairs) != 6 {
			t.Errorf("rows went to the pairs of pods %v, want six", pairs)
		}
		w.end()
		if n := w.compared().Counters.Totals(); n.Open() != 0 {
			t.Errorf("in the end: %+v", n)
		}
	})
}
