package report

import (
	"fmt"
	"math"

	"replayd/internal/chart"
	"replayd/internal/measure"
	"replayd/internal/number"
	"replayd/internal/result"
	"replayd/internal/stats"
)

// The p99 of lateness is good or poor up to these fractions of the
// median TTFT. The median latency stands in if there is no TTFT.
const (
	lateGood = 0.01
	latePoor = 0.1
)

func (l runData) lateLevel() Level {
	of := l.of("time_to_first_token")
	if of.N() == 0 {
		of = l.of("request_latency")
	}
	switch share := l.of("lateness").Percentile(99) / of.Percentile(50); {
	case math.IsNaN(share):
		return ""
	case share <= lateGood:
		return Good
	case share <= latePoor:
		return Poor
	}
	return Bad
}

// reads returns the number of reads of content with a kernel timestamp, the number of reads that held several chunks,
// and the mean read delay in ms (NaN if unknown).
func (l runData) reads() (all, merged int, delay float64) {
	sum := 0.0
	for _, r := range l.rows {
		all, merged = all+r.Reads, merged+r.Merged
		sum += r.ReadDelay * float64(r.Reads)
	}
	return all, merged, sum / float64(all)
}

func (l runData) retried() (n int) {
	for _, r := range l.rows {
		if r.Retried {
			n++
		}
	}
	return n
}

// blurred returns a warning if at least 1 read in 100 held several chunks. The gaps between those chunks are not the
// server's. Otherwise it returns "".
func (l runData) blurred() string {
	all, merged, delay := l.reads()
	switch {
	case merged == 0 || merged*100 < all:
		return ""
	case all == 0: // no kernel timestamps, or a file of records
		return fmt.Sprintf("%s held several chunks. All but the last chunk of such a read have a time that is too late, and the gaps between them are not in ITL. The causes: %s.",
			number.Count(merged, "read"), result.CoalescedCauses)
	}
	return fmt.Sprintf("%s of %s (%s) held several chunks. All but the last chunk of such a read have a time that is too late, and the gaps between them are not in ITL. "+
		"The mean delay between the arrival of bytes and their read was %s. If that is as long as a gap or longer, this machine could not keep up. The causes: %s.",
		number.Count(merged, "read"), number.Whole(all), number.Percent(merged, all), number.Value(delay, "ms"), result.CoalescedCauses)
}

// trust says whether the load was the planned one: every expected request was sent, and in time.
func (l runData) trust() Section {
	s := Section{Short: "Trust"}
	d, beyond, blurred := l.of("lateness"), beyondPlan(l.Run), l.blurred()
	if d.N() == 0 {
		s.Title = "The files do not say how late requests were sent"
		s.Text = []string{"So this page cannot say whether the load was the planned one."}
		if beyond != "" {
			s.Text = append(s.Text, beyond+".")
		}
		if blurred != "" {
			s.Text = append(s.Text, blurred)
		}
		return s
	}
	p99 := number.Value(d.Percentile(99), "ms")
	switch level := l.lateLevel(); {
	case beyond != "":
		s.Title = fmt.Sprintf("%s; 99 %% of the sent requests were at most %s late", beyond, p99)
	case level == Bad:
		s.Title = fmt.Sprintf("Requests were late (p99 %s): the load was not the planned one", p99)
	case level == Poor:
		s.Title = fmt.Sprintf("Requests were somewhat late: p99 %s", p99)
	case level == Good:
		s.Title = fmt.Sprintf("The load was the planned one: 99 %% of the requests were at most %s late", p99)
	default:
		s.Title = fmt.Sprintf("99 %% of the requests were at most %s late", p99)
	}
	s.Text = []string{fmt.Sprintf("Lateness is the start of the write minus the instant at which a request should have been sent, without the time to open a connection. It includes the wait for a free lane. "+
		"The latencies above start at the write, so lateness does not lengthen them, but a late request was not sent as planned. The maximum was %s.", number.Value(d.Max(), "ms"))}
	var connects []float64 // ms, of the requests that opened a connection for themselves
	for i := range l.rows {
		if d := l.rows[i].Connect; d > 0 {
			connects = append(connects, d)
		}
	}
	if of := stats.NewDistribution(connects); of.N() > 0 {
		s.Text = append(s.Text, fmt.Sprintf("%s of %s opened a connection of their own: half within %s, 99 %% within %s. The others went out on an open one.",
			number.Whole(of.N()), number.Count(len(l.rows), "request"), number.Value(of.Percentile(50), "ms"), number.Value(of.Percentile(99), "ms")))
	}
	if blurred != "" {
		s.Title += "; some reads held several chunks"
		s.Text = append(s.Text, blurred)
	}
	x := chart.Axis{Label: "lateness", Unit: "ms"}
	s.Plots = append(s.Plots, chart.Histogram(fmt.Sprintf("Lateness: half within %s", number.Value(d.Percentile(50), "ms")), x, d.Values))
	if len(l.rows) >= fewestBinned && l.seconds > 0 {
		width := timeBin(l.lastSent(), min(percentBins, max(fewestBins, len(l.rows)/perBin)))
		whole := l
		whole.ok = l.rows
		plot := whole.bands(shownQuantity{measure.Lateness, "Lateness", "lateness"}, width)
		s.Plots = append(s.Plots, plot)
	}
	return s
}
