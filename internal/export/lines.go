package export

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"replayd/internal/measure"
	"replayd/internal/number"
	"replayd/internal/result"
)

// maxReasons is the most reasons in one line.
const maxReasons = 3

// successLine says in one line how the requests ended, and why some failed. Requests that the workload cancelled are
// neither ok nor failed, and not part of the success rate.
func successLine(r result.Run, f result.Statistics) string {
	rows := r.Measured()
	turnedAway := 0
	for _, row := range rows {
		if row.Outcome == measure.HTTP4xx || row.Outcome == measure.HTTP429 {
			turnedAway++
		}
	}
	counts := []string{number.Whole(len(rows)) + " sent", number.Whole(f.OK) + " ok"}
	add := func(n int, what string) {
		if n > 0 {
			counts = append(counts, number.Whole(n)+" "+what)
		}
	}
	add(turnedAway, "refused")
	add(f.Failed-turnedAway, "failed")
	add(f.Cancelled, "cancelled")
	if l := r.Ledger; l != nil {
		for _, why := range measure.DropReasons() {
			add(int(l.Dropped[why]), "dropped ("+string(why)+")")
		}
		add(int(l.Filtered), "filtered")
	}
	line := fmt.Sprintf("Success Rate: %s (%s", share(f.OK, f.OK+f.Failed), strings.Join(counts, ", "))
	why, between := result.Reasons(rows), ": "
	for _, one := range why[:min(len(why), maxReasons)] {
		line += between + one.String()
		between = "; "
	}
	if more := len(why) - maxReasons; more > 0 {
		line += fmt.Sprintf("; %d other reasons", more)
	}
	return line + ")"
}

// plannedLines describes, below a table, how much of the planned load was sent and served well.
func plannedLines(r result.Run) []string {
	if r.Ledger == nil {
		return []string{"Attainment: N/A (" + result.UnknownLedger + ")"}
	}
	l := *r.Ledger
	ofExpected, ofEligible := result.AttainmentTexts(l)
	return []string{
		fmt.Sprintf("Attainment: %s (%s%s)", share(int(l.Good), int(l.Judged())), ofExpected, result.MissingText(l)),
		fmt.Sprintf("Service Attainment: %s (%s)", share(int(l.Good), int(l.Eligible)), ofEligible),
	}
}

// namedLines returns texts behind their names.
func namedLines(named [][2]string) (lines []string) {
	for _, l := range named {
		lines = append(lines, strings.ToUpper(l[0][:1])+l[0][1:]+": "+l[1])
	}
	return lines
}

// footer has the lines below the figures of both layouts.
func footer(r result.Run, f result.Statistics) []string {
	lines := []string{successLine(r, f)}
	if !r.Settings.Streamed {
		lines = append(lines, "Time to First Token, Inter Token Latency: N/A (the answers were not streamed; --streaming asks for streams)")
	}
	if line := goodputLine(r.Settings, f); line != "" {
		lines = append(lines, line)
	}
	lines = append(lines, plannedLines(r)...)
	lines = append(lines, namedLines(r.Lengths().Lines())...)
	lines = append(lines, "Prefix Cache: "+r.Cache.String())
	if warm := r.Cache.Warm(); warm != "" {
		lines = append(lines, "Warm: "+warm)
	}
	lines = append(lines, namedLines(r.Reading.Lines())...)
	perGPU := "N/A (how many GPUs there are is not known)"
	if m, ok := f.Metric("output_token_throughput_per_gpu"); ok {
		perGPU = fmt.Sprintf("%s tokens/sec (%d GPUs)", grouped(m.Value), r.Settings.GPUs)
	}
	lines = append(lines, "Output Token Throughput Per GPU: "+perGPU)
	for _, p := range r.Partial {
		lines = append(lines, "Incomplete: "+p)
	}
	return lines
}

func goodputLine(s result.Settings, f result.Statistics) string {
	good, ok := f.Metric("good_request_count")
	if !ok {
		return ""
	}
	bounds := make([]string, len(s.SLO))
	for i, b := range s.SLO { // in AIPerf's spelling
		bounds[i] = b.Quantity.Tag() + ":" + strconv.FormatFloat(b.Limit, 'f', -1, 64)
	}
	judged := f.OK + f.Failed
	sent := "requests sent"
	if f.Cancelled > 0 {
		sent += " and not cancelled"
	}
	return fmt.Sprintf("Goodput: %s of %s %s (%s) kept %s", number.Whole(int(good.Value)), number.Whole(judged), sent,
		share(int(good.Value), judged), strings.Join(bounds, " "))
}

// share formats a share in percent with two decimals, rounded down, because less than all must not look like all.
func share(part, whole int) string {
	if whole == 0 {
		return "N/A"
	}
	if part == whole {
		return "100%"
	}
	return fmt.Sprintf("%.2f%%", float64(part*10_000/whole)/100)
}

// grouped formats a number with two decimals and thousands separators, and NaN or an infinity as N/A.
func grouped(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "N/A"
	}
	return strings.Replace(number.Grouped(v, 2), "−", "-", 1)
}
