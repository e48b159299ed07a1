package main

import (
	"regexp"
	"strings"
)

// Prometheus keeps the classic series of a histogram that it scrapes as native only where it is told to
// (always_scrape_classic_histograms), so instances of one fleet may have either form. A native series has no _sum, _count or
// _bucket in PromQL.

// ended are the sum and the count of a histogram, where their rate is taken: each instance gives them in its own form.
var ended = regexp.MustCompile(`rate\((replayd_\w+)_(sum|count)(\{[^{}]*\})?(\[[^\]]+\])( offset [^()]+)?\)`)

const summed = `sum by \(((?:\w+, )*)le\) \(rate\((replayd_\w+)_bucket(\{[^{}]*\})?(\[[^\]]+\])( offset [^()]+)?\)\)`

var (
	buckets   = regexp.MustCompile(summed)
	quantiled = regexp.MustCompile(`(histogram_quantile\([\d.]+, )` + summed + `\)|` + summed)
)

// byInstance takes each instance's sum and count in the form that it has, so that means are right for any mixture of forms.
func byInstance(text string) string {
	return ended.ReplaceAllString(text, `(histogram_${2}(rate(${1}${3}${4}${5})) or ${0})`)
}

// native returns an expression for instances of both forms.
func native(expr string) string {
	expr = byInstance(expr)
	return quantiled.ReplaceAllStringFunc(expr, func(of string) string {
		begin, end := "", ""
		if m := quantiled.FindStringSubmatch(of); m[1] != "" {
			begin, end = m[1], ")"
		}
		one, other := forms(of)
		return "(" + begin + one + end + " or " + begin + other + end + ")"
	})
}

// forms returns the buckets of all instances, native and classic. Two forms cannot be merged, so there is none where an instance
// lacks the form. Which instances there are is told by a plain counter.
func forms(sum string) (one, other string) {
	m := buckets.FindStringSubmatch(sum)
	by, name, window := strings.TrimSuffix(m[1], ", "), m[2], m[4]+m[5]
	where := strings.Trim(m[3], "{}")
	rate := func(name, more string) string {
		if all := strings.Trim(where+more, ","); all != "" {
			name += "{" + all + "}"
		}
		return "rate(" + name + window + ")"
	}
	instances := rate("replayd_requests_expected_total", "")
	whole := " unless on (" + by + ") (" + instances + " unless "
	grouped := "sum"
	if by != "" {
		grouped += " by (" + by + ") "
	}
	return grouped + "(" + rate(name, "") + ")" + whole + rate(name, "") + ")",
		m[0] + whole + "ignoring (le) " + rate(name+"_bucket", `,le="+Inf"`) + ")"
}

var (
	record       = regexp.MustCompile(`(?m)^( +- record: \w+:replayd_\w+)_bucket(:\w+\n +expr: \|\n +)(` + summed + `)$`)
	quantileRule = regexp.MustCompile(`(?m)^( +)(histogram_quantile\(.*)_bucket(:.*)$`)
)

// nativeRules returns the native form of a file of recording rules. What is recorded of buckets is recorded in both forms.
func nativeRules(text string) string {
	_, text, _ = strings.Cut(text, "\ngroups:\n")
	text = record.ReplaceAllStringFunc(text, func(rule string) string {
		m := record.FindStringSubmatch(rule)
		one, other := forms(m[3])
		return m[1] + m[2] + one + "\n" + m[1] + "_bucket" + m[2] + other
	})
	text = quantileRule.ReplaceAllString(text, "${1}${2}${3}\n${1}or\n${1}${2}_bucket${3}")
	text = byInstance(text)
	return "# Made of alerts/latency.yaml, to take in its place where native histograms are scraped: go generate ./dashboards/...\n" +
		"# Means are right for instances of both forms. A quantile has no value while instances differ.\n" +
		"groups:\n" + text
}
