package scrape

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// A Role is what a page's server is to a target. The pages of all roles are read alike, and each role has series of its
// own.
type Role struct {
	noun       string // in texts, and the name of a label
	key        string // the section of a target in the configuration
	table      func() ([]Row, error)
	quantities []*Quantity // that have series, in the order of the page
	info       *Family     // names what answers

	up, duration, samples, errors, bad, age, restarts, shared *prometheus.Desc
}

// The roles.
var (
	Engines = newRole("engine", "metrics", namespace, engines, quantities)
	Routers = newRole("router", "router", routerNamespace, routers, routerQuantities)
)

func newRole(noun, key, space string, table func() ([]Row, error), list []*Quantity) *Role {
	desc := func(name, help string, more ...string) *prometheus.Desc {
		return prometheus.NewDesc(space+name, help, append([]string{"target", "address"}, more...), nil)
	}
	page := "the " + noun + "'s page"
	return &Role{
		noun: noun, key: key, table: table, quantities: list,
		info: NewFamily(space+"info", "The "+noun+" by its page, and the model that the page names.", Info,
			[]string{"target", "address", noun, "model_name"}),

		up:       desc("up", "1 when the latest scrape of "+page+" gave a whole page."),
		duration: desc("scrape_duration_seconds", "Time that the latest scrape of "+page+" took."),
		samples:  desc("scrape_samples", "Samples on the page at the latest scrape, known ones and others."),
		errors:   desc("scrape_errors_total", "Scrapes of "+page+" that gave no whole page, by the reason.", "reason"),
		bad:      desc("bad_samples_total", "Samples on "+page+" that were left out: they could not be read, or their values are impossible."),
		age:      desc("age_seconds", "Time since the latest successful scrape of the "+noun+"."),
		restarts: desc("restarts_total", "Times that another process answered than before: counters fell, or the page says so."),
		shared:   desc("address_shared", "1 while several processes answer at this address in turn: the counters then are of now one and now another."),
	}
}

// unknown returns the error for a page without figures of the role's table. told is what the names on the page tell.
func (r *Role) unknown(told string) error {
	switch {
	case told == "" && r.noun == "engine":
		return errorOf(ReasonUnknown, "the metrics page of an unknown engine: map its families under metrics.map; a dcgm-exporter's "+
			"page belongs under gpus, or to --gpu-telemetry")
	case told == "":
		return errorOf(ReasonUnknown, "the metrics page of an unknown %s: map its families under %s.map", r.noun, r.key)
	case r.noun == "engine":
		return errorOf(ReasonUnknown, "this is the page of a router, %s: name it under router.url, and the engines' pages under metrics", told)
	default:
		return errorOf(ReasonUnknown, "this is the page of an engine, %s: name it under metrics, and the router's page under router.url", told)
	}
}

const routerNamespace = "replayd_router_"

// routerQuantities are those that some router publishes.
var routerQuantities = []*Quantity{
	routerQuantity("requests_running", Gauge, "Requests that the router has sent to its replicas and that have not ended."),
	routerQuantity("requests_waiting", Gauge, "Requests in the router's own queue."),
	routerQuantity("replicas_ready", Gauge, "Replicas that the router takes for healthy."),
	routerQuantity("prefix_cache_queries_tokens", Counter, "Prompt tokens looked for in the replicas' prefix caches, as the router counts them."),
	routerQuantity("prefix_cache_hits_tokens", Counter, "Prompt tokens found in the replicas' prefix caches, as the router counts them."),
	routerQuantity("prompt_tokens", Counter, "Prompt tokens, as the router counts them."),
	routerQuantity("generation_tokens", Counter, "Output tokens, as the router counts them."),
	routerQuantity("requests_finished", Counter, "Requests that ended, as the router counts them."),
	routerQuantity("ttft_seconds", Histogram, "From a request's arrival to its first token, as the router sees it."),
	routerQuantity("tpot_seconds", Histogram,
		"Mean time per output token after the first, one value a request, as the router sees it."),
	routerQuantity("itl_seconds", Histogram, "From one token, or one chunk, to the next, as the router sees it."),
	routerQuantity("e2e_seconds", Histogram, "From a request's arrival to its last token, as the router sees it."),
	routerQuantity("queue_seconds", Histogram, "Time in the router's own queue."),
	routerQuantity("decision_seconds", Histogram, "Time that the router took to choose a replica."),
}

func routerQuantity(name string, kind Kind, help string) *Quantity {
	return quantityIn(routerNamespace, name, kind, help)
}

// quantity returns the quantity of a name in the vocabulary of all roles, or nil if there is none. The figures of all
// roles have it.
func quantity(name string) *Quantity {
	return cmp.Or(named(quantities, name), named(routerQuantities, name))
}

func named(list []*Quantity, name string) *Quantity {
	if i := slices.IndexFunc(list, func(q *Quantity) bool { return q.Name == name }); i >= 0 {
		return list[i]
	}
	return nil
}
