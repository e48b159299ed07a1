package scrape

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rolesOf returns the roles of a recorded page by its file name. Dynamo's frontend may have either.
func rolesOf(name string) []*Role {
	switch engine := engineOf(name); {
	case strings.HasPrefix(name, "dynamo") && strings.Contains(name, "frontend"):
		return []*Role{Engines, Routers}
	case slices.Contains([]string{"smg", "llm-d", "gie", "envoy", "production-stack"}, engine):
		return []*Role{Routers}
	default:
		return []*Role{Engines}
	}
}

// goldenOf returns the name of a page's golden file: that of a router's page read as an engine's has none.
func goldenOf(name string, role *Role) string {
	name = strings.TrimSuffix(name, ".txt")
	if len(rolesOf(name)) > 1 && role == Routers {
		name += "_router"
	}
	return filepath.Join("testdata/golden", name+".golden")
}

// tables returns the rows of all embedded tables.
func tables(t testing.TB) []Row {
	t.Helper()
	ofEngines, err := engines()
	ofRouters, other := routers()
	if err != nil || other != nil {
		t.Fatal(err, other)
	}
	return slices.Concat(ofEngines, ofRouters)
}

// allQuantities returns those of engines, and then those that only routers have.
func allQuantities() []*Quantity {
	return append(slices.Clone(quantities), slices.DeleteFunc(slices.Clone(routerQuantities), func(q *Quantity) bool {
		return named(quantities, q.Name) != nil
	})...)
}

// A page of a role under the other gives no figures, and an error that says where it belongs. The page of vLLM's
// production stack has vLLM's names, and is no engine's.
func TestPageOfAnotherRole(t *testing.T) {
	pages, err := filepath.Glob("testdata/pages/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	says := map[*Role]string{
		Engines: "this is the page of a router, %: name it under router.url, and the engines' pages under metrics",
		Routers: "this is the page of an engine, %: name it under metrics, and the router's page under router.url",
	}
	seen := 0
	for _, path := range pages {
		name := filepath.Base(path)
		for _, role := range []*Role{Engines, Routers} {
			if slices.Contains(rolesOf(name), role) || strings.HasPrefix(name, "dynamo") || strings.Contains(name, "_bare") { // Dynamo is in both tables, bare names tell nothing
				continue
			}
			seen++
			body, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			f, e := newFixtureOf(role), &server{}
			e.say(strings.TrimSuffix(strings.TrimSuffix(string(body), "\n"), "# EOF"))
			target := f.target(t, e, TargetOptions{Page: "http://there:8000/metrics"})
			target.Show()
			one := target.endpoints[0]
			one.scrape(t.Context())
			s := one.engine.now()
			want := strings.ReplaceAll(says[role], "%", engineOf(name))
			if s.up() || s.reason != ReasonUnknown || !strings.HasSuffix(s.err.Error(), want) || len(s.series) > 0 {
				t.Errorf("%s as the page of the %s: want %q and no series, got %q: %v with %d", name, role.noun, want, s.reason, s.err, len(s.series))
			}
			if load, err := target.Load(); err == nil {
				t.Errorf("%s as the page of the %s: want no load, got %+v", name, role.noun, load)
			}
		}
	}
	if seen < 30 {
		t.Errorf("want most pages, got %d", seen)
	}
}

// Whoever maps families of a router's page under metrics.map, for a guard on its queue, still may.
func TestMappedRouter(t *testing.T) {
	f, e := newFixture(), &server{}
	e.say(`smg_worker_health{worker="a"} 1`, `smg_admission_queue_depth 7`)
	target := f.target(t, e, TargetOptions{
		Page: "http://there:29000/metrics", Map: []Row{{Family: "smg_admission_queue_depth", Quantity: "requests_waiting"}},
	})
	target.Show()
	target.endpoints[0].scrape(t.Context())
	if load, err := target.Load(); err != nil || load.Waiting != 7 {
		t.Errorf("want 7 waiting requests, got %v, %v", load.Waiting, err)
	}
	f.want(t, []string{"info"}, `info{address="there:29000",engine="custom",model_name="",target="vllm"} 1`)
}

// A router's page has the same labels as an engine's, under names of its own, and its own texts.
func TestRouterSeries(t *testing.T) {
	f, e := newFixtureOf(Routers), &server{}
	body, err := os.ReadFile("testdata/pages/smg_1.13.0_busy.txt")
	if err != nil {
		t.Fatal(err)
	}
	e.say(string(body))
	target := f.target(t, e, TargetOptions{Page: "http://router:29000/metrics"})
	target.Show()
	target.endpoints[0].scrape(t.Context())
	got := f.shown(t, "replayd_router_info", "replayd_router_up", "replayd_router_requests_waiting", "replayd_router_requests_running",
		"replayd_router_replicas_ready", "replayd_router_bad_samples_total")
	at := `address="router:29000",target="vllm"} `
	want := []string{
		`replayd_router_bad_samples_total{` + at + `0`,
		`replayd_router_info{address="router:29000",model_name="",router="smg",target="vllm"} 1`,
		`replayd_router_replicas_ready{address="router:29000",rank="",target="vllm"} 2`, `replayd_router_requests_running{address="router:29000",rank="",target="vllm"} 6`,
		`replayd_router_requests_waiting{address="router:29000",rank="",target="vllm"} 6`, `replayd_router_up{` + at + `1`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("want\n%s\ngot\n%s", strings.Join(want, "\n"), strings.Join(got, "\n"))
	}
	e.say("nothing 1")
	target.endpoints[0].scrape(t.Context())
	if log, want := f.log.String(), `msg="router metrics cannot be scraped" target=vllm replica=router:29000 reason=unknown `+
		`err="the metrics page of an unknown router: map its families under router.map"`; !strings.Contains(log, want) {
		t.Errorf("want %s in\n%s", want, log)
	}
}
