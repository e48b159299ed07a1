// Package metrics exports the client-side series: the counts and latencies of each workload, and the process's own
// series.
package metrics

import (
	"fmt"
	"slices"

	"replayd/internal/measure"

	"github.com/prometheus/client_golang/prometheus"
)

// This file declares every client-side series. docs/reference/metrics.md explains them, and a test compares the two.

const namespace = "replayd"

// threeLabels are the labels of every series of a workload. Prometheus adds job and instance.
var threeLabels = []string{"workload", "target", "model"}

// The closed lists of label values, in the order of the arrays that count them.
var (
	allOutcomes    = measure.Outcomes()
	allDropReasons = measure.DropReasons()
	tokenKinds     = [...]string{"prompt", "output", "cached", "reasoning"}
	mismatchKinds  = [...]string{"prompt", "output"}
	stampSources   = [...]string{"kernel", "read"}
	usageRules     = measure.UsageRuleNames()

	// usualFinishes have series from the start, so that a rate does not miss the first.
	usualFinishes = [...]string{"stop", "length", "tool_calls", "abort", measure.NoFinish, measure.OtherFinish}
)

// indexOf returns the index of v in list. It panics if v is not in list, which is a bug.
func indexOf[T ~string](list []T, v T) int {
	i := slices.Index(list, v)
	if i < 0 {
		panic(fmt.Sprintf("metrics: %q is none of %q", string(v), list))
	}
	return i
}

// Counters and gauges of a workload.
var (
	descExpected  = desc("requests_expected_total", "Requests that fell due, sent or not.")
	descRequests  = desc("requests_total", "Finished requests by how they ended.", "outcome")
	descDropped   = desc("requests_dropped_total", "Requests that were never sent, by the reason. Filtered ones were not expected.", "reason")
	descInFlight  = desc("requests_in_flight", "Requests that a lane has taken and that have not finished.")
	descWaiting   = desc("requests_waiting", "Requests that fell due and wait for a lane or for the turn before.")
	descRetries   = desc("retries_total", "Requests sent a second time, because a kept connection was stale.")
	descMerged    = desc("coalesced_reads_total", "Socket reads that held more than one content chunk: all but the last got too late a time.")
	descSource    = desc("timestamp_source_info", "1 for where the chunk times of the latest answer came from: the kernel's receive stamp, or the clock after the read.", "source")
	descTokens    = desc("tokens_total", "Tokens of ok requests. Cached ones are part of prompt, reasoning ones of output.", "kind")
	descMismatch  = desc("length_mismatch_total", "Ok answers whose usage differs from the length that the trace asked for.", "kind")
	descNoUsage   = desc("responses_without_usage_total", "Ok answers without a token count of the server: a tokenizer counted their text, or content chunks were counted, a lower bound.")
	descGoodput   = desc("goodput_requests_total", "Ok requests that kept every service level of their workload.")
	descUnjudged  = desc("requests_not_judged_total", "Ok requests of which one read held too many tokens to tell whether they kept a bound on the time between tokens.")
	descEligible  = desc("requests_eligible_total", "Requests whose fate is known and is the service's: what a service level is judged on.")
	descViolation = desc("slo_violations_total", "Finished requests that broke a service level; error: that did not end ok.", "slo")
	descRequested = desc("requested_model_requests_total", "Finished requests by the model that their row names, if it names one.", "requested_model", "outcome")
	descReplica   = desc("replica_requests_total", "Finished requests by the replica that the answer names, if it names one.", "replica_name")
	descMoved     = desc("session_replica_changes_total", "Finished requests that another replica answered than the request before in their session.")
	descEcho      = desc("echo_header_answers_total", "Answers of sessions by what became of the header that later requests of the session send back.", "result")
	descThreshold = desc("slo_threshold_seconds", "The configured bound of a service level on a time: the most that is within it.", "slo")
	descLeastLen  = desc("slo_threshold_tokens", "The configured bound of a service level on a length: the least that is within it.", "slo")
	descLeastRate = desc("slo_threshold_tokens_per_second", "The configured bound of a service level on a rate of tokens: the least that is within it.", "slo")
	descObjective = desc("slo_objective_ratio", "The configured share of requests that should be good.")
	descLoop      = desc("loop", "Number that tells the loop being played from others. Counted since 1970 with align wall_clock, in minutes since 1970 with cron, else from 0.")
	descLoopsDone = desc("loops_completed_total", "Loops over the trace that were played to their end.")
	descSkipped   = desc("activations_skipped_total", "Activations of the cron expression that fell into a pass and began none.")
	descLoopsLeft = desc("loops_skipped_total", "Whole loops left out: they were over before their first row was read.")
	descPosition  = desc("position_seconds", "Trace time that is being played; it rests at the last row until the next loop.")
	descLoopTime  = desc("loop_duration_seconds", "Time from the start of a loop to the start of the next.")
	descNextDue   = desc("next_due_timestamp_seconds", "When the next request is due, in seconds since 1970.")
	descIdle      = desc("loop_idle_ratio", "Share of the loop without rows: in gaps of more than a minute.")
	descSkew      = desc("wall_clock_skew_seconds", "Wall clock − the loop's own time: what steps of the clock added since the loop began.")
	descPaused    = desc("paused", "1 while the workload is paused: what falls due is dropped.")
	descGuard     = desc("guard_open", "1 while the guard holds requests back because of a limit: what falls due is dropped.", "limit")
	descShards    = desc("shards", "Processes that share the trace; 1: this one has all of it.")
	descShard     = desc("shard_index", "Which of them this process is, from 0.")
	descUp        = desc("workload_up", "1 while the workload plays, waits to play or has properly ended; 0 when a fault holds it or has ended it.")
	descStuck     = desc("workload_stuck", "1 while the workload stands still: a step of its replay has not moved for 5 s.")
	descTrace     = desc("trace_info", "The trace that is being played.", "path", "format", "sha256", "requests", "block_tokens")
	descHitRatio  = desc("trace_prefix_hit_ratio", "Share of the trace's prompt tokens that an infinite prefix cache would hit.")
)

// Counters of how answers ended and were read.
var (
	descRules = desc("usage_rules_total",
		"Ok answers with partial or impossible token counts, by the usage rule that applied.", "rule")
	descFinishes = desc("finish_reasons_total",
		"Answers of status 2xx by their finish reason; none: without one, other: not known.", "reason")
	descUnread = desc("unread_events_total", "Events of answers, or parts of them, without a meaning to replayd.")
)

// Series of a target. Only the first has the label model, here the name that the server itself lists: the others exist before it is known.
var (
	descTarget       = targetDesc("info", "A target, the model that its server lists, and the base URL of its API.", "model", "api", "url")
	descReached      = targetDesc("up", "1 if the last request to the target, or the last probe of it, reached it: an HTTP answer came, whatever it said.")
	descPods         = targetDesc("pods", "Pods that the requests to the target go to now: 1 for a target without pods.")
	descLookupErrors = targetDesc("lookup_errors_total", "Look-ups of the DNS name of the target's pods that have failed: the pods stay as they were.")
	descTLSErrors    = targetDesc("tls_file_errors_total", "Reads of the target's certificate files that have failed: new connections have those that were read before.")
)

func desc(name, help string, extra ...string) *prometheus.Desc {
	return newDesc(name, help, slices.Concat(threeLabels, extra))
}

func targetDesc(name, help string, extra ...string) *prometheus.Desc {
	return newDesc("target_"+name, help, slices.Concat([]string{"target"}, extra))
}

// plainDescs are all series of workloads and targets but the histograms.
var plainDescs []*prometheus.Desc

func newDesc(name, help string, labels []string) *prometheus.Desc {
	d := prometheus.NewDesc(namespace+"_"+name, help, labels, nil)
	plainDescs = append(plainDescs, d)
	return d
}

func opts(name, help string) prometheus.Opts {
	return prometheus.Opts{Namespace: namespace, Name: name, Help: help}
}

// Classic bounds in seconds. Those of TTFT, TPOT, ITL and e2e include every bound of vLLM's own histograms
// (vllm/v1/metrics, loggers.py and buckets.py), so that client and engine can be compared bucket by bucket. There are
// few bounds because each costs a series per workload; the native buckets resolve to 4.4 %.
var (
	boundsTTFT = []float64{
		0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
	}
	boundsITL = []float64{
		0.001, 0.002, 0.004, 0.006, 0.008, // added by replayd
		0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80,
	}
	boundsE2E = []float64{
		0.1, // added by replayd
		0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680,
	}
	boundsMakespan = []float64{1, 2, 5, 10, 30, 60, 120, 300, 600, 900, 1200, 1800, 2700, 3600, 5400, 7200, 10800, 14400, 28800, 86400}
	boundsSession  = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000}
	boundsRatio    = []float64{0, 0.1, 0.25, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99, 1}
	boundsWait     = []float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 600}
	boundsConnect  = []float64{0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5}
	boundsRead     = []float64{0.00001, 0.00005, 0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1}
)

// The histograms of a workload, as indices in series.hists.
const (
	histLateness = iota
	histLaneWait
	histSessionWait
	histReadDelay
	histConnect
	histTTFT
	histTTFAT
	histTTFTFromDue
	histTPOT
	histITL
	histE2E
	histE2EFromDue
	numPlainHists // those after it are of sessions

	histMakespan = iota - 1
	histSessionRequests
	histCachedRatio
	numHists
)

// Zero thresholds of the native histograms, mostly in seconds: smaller values count as zero. Otherwise a few values of
// nanoseconds would use up the 160 buckets. At full resolution, 160 adjacent buckets span a factor of 1024: from 100 µs
// to 0.1 s, or from 1 µs to 1 ms.
const (
	zeroLatency = 100e-6
	zeroSocket  = 1e-6 // local reads and connects take tens of microseconds
)

var histOpts = [numHists]prometheus.HistogramOpts{
	histLateness:    durations("lateness", zeroLatency, boundsWait, "Start of the write − max(due, end of the session wait) − the time to connect, of every request sent."),
	histLaneWait:    durations("lane_wait", zeroLatency, boundsWait, "The part of the lateness spent waiting for a free lane, of every request sent."),
	histSessionWait: durations("session_wait", zeroLatency, boundsWait, "How long after its due instant the turn before held a request back, of every request sent."),
	histReadDelay:   durations("read_delay", zeroSocket, boundsRead, "Time of a socket read − the kernel's receive time: how wrong a clock after the read would have been."),
	histConnect:     durations("connect", zeroSocket, boundsConnect, "Time to open a connection (name, dial, TLS), of the requests that opened one."),
	histTTFT:        durations("ttft", zeroLatency, boundsTTFT, "First chunk with content − start of the write, of ok requests."),
	histTTFAT:       durations("ttfat", zeroLatency, boundsTTFT, "First chunk with content that is not reasoning − start of the write, of ok requests."),
	histTTFTFromDue: durations("ttft_from_due", zeroLatency, boundsTTFT, "First chunk with content − due instant, of ok requests."),
	histTPOT:        durations("tpot", zeroLatency, boundsITL, "(Last content − first content) / (output tokens − 1, or − those of the first chunk with per_chunk_usage), of ok requests."),
	histITL:         durations("itl", zeroLatency, boundsITL, "Gaps between content chunks of ok requests."),
	histE2E:         durations("e2e", zeroLatency, boundsE2E, "Last chunk with content − start of the write, of ok requests."),
	histE2EFromDue:  durations("e2e_from_due", zeroLatency, boundsE2E, "Last chunk with content − due instant, of ok requests."),

	histMakespan:        durations("session_makespan", zeroLatency, boundsMakespan, "End of the last request − due instant of the first, of ok sessions."),
	histSessionRequests: native("session_requests", zeroLatency, boundsSession, "Requests of ok sessions."),
	histCachedRatio:     native("session_cached_ratio", zeroLatency, boundsRatio, "Share of the prompt tokens that the server had cached, of ok sessions whose server says so."),
}

// durations declares a histogram with classic and native buckets. NativeHistogramMinResetDuration is 0, because a reset
// of the native buckets would reset the classic ones too: at the limit, the native buckets become wider instead.
//
// The factor selects schema 4, where each bucket bound is 2^(1/16) times the previous one. Prometheus interpolates
// within a bucket. If all values are at one edge of it, a quantile is off by the width of the bucket: by 4.43 % here,
// by 9.05 % with a factor of 1.1.
func durations(name string, zero float64, bounds []float64, help string) prometheus.HistogramOpts {
	return native(name+"_seconds", zero, bounds, help)
}

// native declares a histogram of another unit likewise.
func native(name string, zero float64, bounds []float64, help string) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Namespace:                      namespace,
		Name:                           name,
		Help:                           help,
		Buckets:                        bounds,
		NativeHistogramBucketFactor:    1.05,
		NativeHistogramMaxBucketNumber: 160,
		NativeHistogramZeroThreshold:   zero,
	}
}
