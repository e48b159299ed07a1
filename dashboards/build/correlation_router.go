package main

import "fmt"

// ofRouter are the panels of the router before the engines, as far as it publishes anything.
func ofRouter() []*panel {
	gauge := func(role, name string) string {
		return fmt.Sprintf(`max by (cluster, namespace, address, rank) (replayd_%s_%s{%s})`, role, name, onTarget)
	}
	client, router, engines := mean("replayd_ttft_seconds", of), mean("replayd_router_ttft_seconds", onTarget), mean("replayd_engine_ttft_seconds", onTarget)
	return []*panel{
		timeseries("TTFT: client, router and engines", "s",
			"Mean TTFT as the client, the router and the engines see it, and what is between router and engines: the router's mean less the engines'. Between up: the router's queue, its decision, or the way to the replicas. Engines up: see the rows above. Client above router: network or a proxy before the router. Router and engines count all their traffic. Several routers publish no TTFT, and then nothing is between.",
			"ReplaydClientEngineDisagree",
			query{client, "client"}, query{router, "router"}, query{engines, "engines"}, query{router + " - " + engines, "between"}).
			colored("^client$", blue).colored("^router$", green).colored("^engines$", orange).colored("^between$", purple),
		timeseries("Requests waiting: router and engines", "short",
			"Requests in the router's own queue, in the engines' queues, and those that the router has sent to replicas. A queue in the router and none in the engines: a limit of the router holds requests back, or it waits for a replica. Queues in some engines only: look at the router's policy, and at the replicas one by one on Fleet.",
			"ReplaydOverload",
			query{"sum(" + gauge("router", "requests_waiting") + ")", "router: waiting"},
			query{"sum(" + gauge("engine", "requests_waiting") + ")", "engines: waiting"},
			query{"sum(" + gauge("router", "requests_running") + ")", "router: sent"},
			query{"max(" + gauge("engine", "requests_waiting") + ")", "longest queue of an engine"}).
			set(object{"min": 0, "decimals": 0}).colored("^router: waiting$", purple).colored("^engines: waiting$", "red").colored("^router: sent$", green).dashed("^longest queue of an engine$", orange),
		timeseries("Ready replicas", "short",
			"Replicas that the router takes for healthy, by the router that sees the fewest, and engines whose page replayd reads. Fewer ready than read: the router has taken a replica out that still answers; its log says why, and the others carry the load.",
			"ReplaydOverload",
			query{"min(" + gauge("router", "replicas_ready") + ")", "ready, says the router"},
			query{fmt.Sprintf(`count(max by (cluster, namespace, address) (replayd_engine_up{%s}) == 1)`, onTarget), "engines that replayd reads"}).
			set(object{"min": 0, "decimals": 0}).colored("^ready, says the router$", green).dashed("^engines that replayd reads$", orange),
		timeseries("Router: decision and queue time", "s",
			"Mean time that the router took to choose a replica, and mean time in its own queue. Decision up: the router lacks CPU, or its scorers are slow. Queue up: more load than its limits let through.",
			"ReplaydOverload",
			query{mean("replayd_router_decision_seconds", onTarget), "decision"}, query{mean("replayd_router_queue_seconds", onTarget), "queue"}).
			set(object{"min": 0}).colored("^decision$", green).colored("^queue$", purple),
	}
}
