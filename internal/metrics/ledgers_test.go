package metrics

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
	"replayd/test/measuretest"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

const bubbleBegan = 946684800_000000000 // start of a synctest bubble, Unix ns

// Ledgers are sorted by workload name, counts under two model names are one ledger, and the ledger of a workload that a
// reload removes and adds again continues.
func TestLedgersOfAMeter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMeter(prometheus.NewRegistry())
		want := func(lines ...string) {
			t.Helper()
			text := ""
			for _, l := range lines {
				text += fmt.Sprintf(`{"ledger":{"version":1,"time_ns":%d,"began_ns":%d,%s}}`+"\n", time.Now().UnixNano(), bubbleBegan, l)
			}
			if diff := cmp.Diff(text, string(m.AppendLedgers(nil))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		}
		want()
		target := vllm(m)
		learns := learner(m, target)
		chat := Labels{Workload: "chat", Target: "vllm", Model: "m"}
		o := WorkloadOptions{SLO: measuretest.SLO, Shard: Shard{1, 4}}
		w := m.Workload(chat, o)
		const none = `"expected":0,"in_flight":0,"waiting":0,"outcomes":{},"dropped":{},"filtered":0,"good":0,"eligible":0`
		born := `"workload":"chat","target":"vllm","shard":"1/4","slo":"` + measuretest.SLO.String() + `",` + none
		want(born, `"workload":"w","target":"vllm","shard":"0/1","slo":"",`+none)
		<-time.After(time.Second)
		target.Serves("a")
		learns.until(measure.OK)
		target.Serves("b")
		learns.until(measure.Cancelled)
		w.Expected(4)
		w.Filtered(2)
		w.Sent()
		w.Dropped(measure.Paused)
		w.Dropped(measure.Overload)
		const two = `"workload":"w","target":"vllm","shard":"0/1","slo":"",` +
			`"expected":2,"in_flight":0,"waiting":0,"outcomes":{"cancelled":1,"ok":1},"dropped":{},"filtered":0,"good":1,"eligible":1`
		want(`"workload":"chat","target":"vllm","shard":"1/4","slo":"`+measuretest.SLO.String()+
			`","expected":4,"in_flight":1,"waiting":1,"outcomes":{},"dropped":{"overload":1,"paused":1},"filtered":2,"good":0,"eligible":1`, two)
		w.Dropped(measure.Shutdown)
		w.Finished(measuretest.Request("", 0, measure.Aborted))
		m.Remove(w)
		want(two)
		<-time.After(time.Minute)
		m.Workload(chat, WorkloadOptions{}).until(measure.OK)
		want(`"workload":"chat","target":"vllm","shard":"0/1","slo":"",`+
			`"expected":5,"in_flight":0,"waiting":0,"outcomes":{"aborted":1,"ok":1},"dropped":{"overload":1,"paused":1,"shutdown":1},"filtered":2,"good":1,"eligible":2`, two)
		if l := m.Ledger(); l.Expected != 7 || l.Outcomes[measure.OK] != 2 || l.Balance() != nil {
			t.Errorf("the sum: %+v, %v", l, l.Balance())
		}
	})
}
