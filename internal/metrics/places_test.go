package metrics

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"replayd/internal/bounded"
	"replayd/internal/measure"
	"replayd/internal/secret"
)

// A deploy a day for 30 days (10 with -short) gives the served model another name, and each of 60 replicas too; a LoRA adapter is served
// for an hour of each day. Each has its own series while it is served. The ledger keeps all that was counted, and the increases on the page
// add up to it.
func TestNamesOfAFleetKeepTheirPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewPedanticRegistry()
		m := NewMeter(reg)
		target := vllm(m)
		w := learner(m, target)
		pods := make([]string, 60)
		var sent, increase float64
		before := map[string]float64{}
		step := func(model string) {
			target.Serves(model)
			for _, pod := range pods {
				w.Expected(1)
				w.Sent()
				w.Finished(&measure.Request{Outcome: measure.HTTP5xx, Replica: secret.Text(pod)})
				sent++
			}
			p := gather(t, reg)
			if got := p.sum("replayd_replica_requests_total", "replica_name="+pods[0], "model="+model); got < 1 {
				t.Fatalf("%s: want requests of %s, got %v", model, pods[0], got)
			}
			if n := len(p.metrics("replayd_target_info", "model="+model)); n != 1 {
				t.Fatalf("want a target that serves %s", model)
			}
			if got := p.models("replayd_requests_total"); len(got) > maxModels+2 {
				t.Fatalf("want at most %d models, got %q", maxModels+2, got)
			}
			now := map[string]float64{}
			for _, model := range p.models("replayd_requests_total") {
				now[model] = p.sum("replayd_requests_total", "model="+model)
				increase += max(0, now[model]-before[model])
			}
			before = now
		}
		days := 30
		if testing.Short() {
			days = 10
		}
		for day := range days {
			model := fmt.Sprint("model-", day)
			for i := 0; i < len(pods); i += 20 {
				for j := range 20 {
					pods[i+j] = fmt.Sprintf("pod-%d-%d", day, i+j)
				}
				step(model)
				<-time.After(12 * time.Minute) // virtual
			}
			if day == 7 { // a reload
				next := learner(m, target)
				m.Remove(w)
				w = next
			}
			for range 3 {
				<-time.After(440 * time.Minute)
				step(model)
			}
			step(model + "-adapter")
			<-time.After(time.Hour)
			step(model)
			<-time.After(24*time.Hour - 36*time.Minute - 3*440*time.Minute - time.Hour)
		}
		if got := gather(t, reg).sum("replayd_label_overflow_total"); got != 0 {
			t.Errorf("want a place for all names, got %v without one", got)
		}
		l := w.Ledger()
		if got := m.Ledger(); l.Expected != int64(sent) || got.Expected != int64(sent) || l.Outcomes[measure.HTTP5xx] != int64(sent) {
			t.Errorf("want %v requests in the ledgers, got %+v and %+v", sent, l, got)
		}
		if increase != sent {
			t.Errorf("want increases of %v, got %v", sent, increase)
		}
	})
}

// A server that invents a model at each probe and a replica at each answer gets no more series in 28 hours than in the first minutes, but
// for those that each further six hours and day may bring. The sum of other never falls.
func TestHostileNamesMakeFewSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewPedanticRegistry()
		m := NewMeter(reg)
		target := vllm(m)
		w := learner(m, target)
		r := rand.New(rand.NewPCG(1, 2))
		models, replicas, most := map[string]bool{}, map[string]bool{}, 0
		other := 0.0
		for i := range 10000 {
			target.Serves(fmt.Sprint("m", r.Uint64()))
			w.Expected(1)
			w.Sent()
			w.Finished(&measure.Request{Outcome: measure.HTTP5xx, Replica: secret.Text(fmt.Sprint("r", r.Uint64()))})
			if i%50 == 0 || i < 20 {
				p := gather(t, reg)
				for _, model := range p.models("replayd_requests_total") {
					models[model] = true
				}
				n := 0
				for _, f := range p {
					n += len(f.GetMetric())
				}
				most = max(most, n)
				for _, one := range p.metrics("replayd_replica_requests_total") {
					replicas[fmt.Sprint(one.GetLabel())] = true
				}
				now := p.sum("replayd_requests_total", "model="+bounded.Other)
				if now < other {
					t.Fatalf("other fell from %v to %v", other, now)
				}
				other = now
			}
			<-time.After(10 * time.Second) // virtual
		}
		t.Logf("%d models and %d replicas in 28 hours, at most %d series at once", len(models), len(replicas), most)
		if len(models) > 2*maxModels+2 {
			t.Errorf("want at most %d models in 28 hours, got %d", 2*maxModels+2, len(models))
		}
		// 28 hours are five times six; each model has replicas of its own, and all but other few.
		if bound := (maxModels + 2) * (maxReplicas + 1); most > bound+600 || len(replicas) > 5*(maxReplicas+1)*2 {
			t.Errorf("got %d series at once and %d replicas in 28 hours", most, len(replicas))
		}
		if l := w.Ledger(); l.Expected != 10000 {
			t.Errorf("want all requests in the ledger, got %d", l.Expected)
		}
	})
}
