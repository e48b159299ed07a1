package main

import (
	"regexp"
	"strings"
)

// A classic quantile is interpolated in its bucket: 4.75 s where a native one says 3.08 s. wideBuckets has for each
// histogram whose quantiles are drawn a bucket where it matters, as in docs/reference/metrics.md.
var wideBuckets = map[string]string{
	"ttft": "2.5 to 5 s", "ttfat": "2.5 to 5 s", "ttft_from_due": "2.5 to 5 s", "e2e": "2.5 to 5 s",
	"tpot": "0.1 to 0.15 s", "itl": "0.1 to 0.15 s", "session_makespan": "120 to 300 s",
	"lateness": "0.01 to 0.05 s", "lane_wait": "0.01 to 0.05 s", "session_wait": "0.01 to 0.05 s",
	"read_delay": "0.01 to 0.05 s",
}

var (
	classicQuantile  = regexp.MustCompile(`histogram_quantile\([\d.]+, sum by \(le\) \(rate\(replayd_(\w+)_seconds_bucket`)
	recordedQuantile = regexp.MustCompile(`workload:replayd_(\w+)_seconds:quantile`)
)

// tellBuckets says in the description of each panel with quantiles of classic buckets how coarse they are.
func (b *board) tellBuckets() {
	for _, p := range b.all() {
		for _, q := range p.Targets {
			unless := ""
			m := classicQuantile.FindStringSubmatch(q.Expr)
			if m == nil {
				unless, m = " unless native/latency.yaml is loaded", recordedQuantile.FindStringSubmatch(q.Expr)
			}
			if m != nil {
				p.describe(" Quantiles are of classic buckets" + unless + ", so anywhere in a bucket, such as " +
					wideBuckets[m[1]] + "; those of native histograms are within 10 %: see Histograms in docs/reference/metrics.md.")
				break
			}
		}
	}
}

// describe adds to the description, before the name of the runbook's section.
func (p *panel) describe(text string) {
	before, section, named := strings.Cut(p.Description, " Runbook: ")
	p.Description = before + text
	if named {
		p.Description += " Runbook: " + section
	}
}
