package daemon

import (
	"log/slog"
	"math"

	"replayd/internal/config"
)

// Descriptors that are kept back from visitors.
const (
	ofProcess    = 24 // log, listener, event polls, certificates, names, records, state and its lock, with their successors
	ofTarget     = 4  // a probe, a scrape of its page, a look-up of its name, a file of credentials
	ofReplica    = 64 // scrapes where replicas are found by name, at most
	ofGPU        = 6  // pipes of a program, or a connection
	ofWorkload   = 4  // traces, before and after a reload
	leastVisited = 16 // for visitors, however few are left: a scrape must get in
)

// descriptors returns how many descriptors a configuration needs, without those of visitors.
func descriptors(c *config.Config) int {
	need := ofProcess + ofGPU*len(c.GPUs)
	for _, t := range c.Targets {
		need += ofTarget
		if t.Metrics.Replicas != "" {
			need += ofReplica
		}
		if t.Router.Replicas != "" {
			need += ofReplica
		} else if t.Router.URL != "" {
			need++
		}
	}
	lanes := map[string]int{}
	more := func(n int) { need = min(need, math.MaxInt32) + min(n, math.MaxInt32) + ofWorkload }
	for _, w := range c.Workloads {
		lanes[w.Name] = w.Lanes
		more(w.Lanes)
	}
	for _, one := range c.Comparisons { // the candidate has a workload of its own
		more(lanes[one.Workload])
	}
	return need
}

// visitorsOf returns how many connections visitors may have: those configured, as far as descriptors are left.
func visitorsOf(c *config.Config, limit int) int {
	return min(c.Web.MaxConnections, max(leastVisited, limit-descriptors(c)))
}

// warnDescriptors logs that the limit of descriptors is too low for the lanes of a configuration.
func warnDescriptors(log *slog.Logger, c *config.Config, limit int) {
	if need := descriptors(c) + leastVisited; need > limit {
		log.Warn("the limit of open files is too low for all lanes: requests that find no descriptor are dropped as missed",
			"limit", limit, "want", need)
	}
}
