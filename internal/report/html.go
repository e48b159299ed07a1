package report

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"replayd/internal/measure"
	"replayd/internal/number"
	"replayd/internal/result"
)

// HTML returns the page of one run, or of several runs side by side. The caller sets the theme, the footer and the
// dashboard's form.
func HTML(runs []result.Run) Page {
	if len(runs) == 1 {
		return pageOf(runs[0])
	}
	return comparison(runs)
}

func pageOf(run result.Run) Page {
	l := newRunData(run)
	p := Page{Title: cmp.Or(run.Name, "replayd run"), Lead: l.lead(), Warnings: warnings(run), Facts: l.facts(), Tiles: l.tiles()}
	if len(l.rows) == 0 {
		return p
	}
	p.Add(l.latencies(), l.sessions(), l.overTime(), l.throughput(), l.lengths())
	p.Add(l.slices(), l.failures(), l.trust(), l.serverMetrics())
	return p
}

func (l runData) lead() string {
	f := l.figures
	if len(l.rows) == 0 {
		if l.Ledger != nil && l.Ledger.Unsent() > 0 {
			return "There is no request in this run: " + result.NeverSentText(*l.Ledger) + "."
		}
		return "There is no request in this run."
	}
	sent := fmt.Sprintf("%s in %s", number.Count(len(l.rows), "request"), number.Value(l.seconds, "s"))
	short := l.Ledger != nil && l.Ledger.Unsent() > 0 && result.AllThere(l.Run)
	if short {
		sent = fmt.Sprintf("%s of %s expected requests in %s, %s", number.Whole(len(l.rows)), number.Whole(l.Ledger.Expected), number.Value(l.seconds, "s"), result.DroppedText(*l.Ledger))
	}
	switch {
	case f.Failed == 0 && f.Cancelled == 0:
		all := ", all ok."
		if short {
			all = "; all that were sent ended ok."
		}
		sent += all
	case f.Cancelled == 0:
		sent += fmt.Sprintf(": %s ok, %s failed (%s of those sent).", number.Whole(f.OK), number.Whole(f.Failed), number.Percent(f.Failed, len(l.rows)))
	default:
		sent += fmt.Sprintf(": %s ok, %s failed, %s cancelled as asked.", number.Whole(f.OK), number.Whole(f.Failed), number.Whole(f.Cancelled))
	}
	if d := l.of("time_to_first_token"); d.N() > 0 {
		sent += fmt.Sprintf(" The first token came within %s for half of them and within %s for 99 %%.", number.Value(d.Percentile(50), "ms"), number.Value(d.Percentile(99), "ms"))
	} else if d := l.of("request_latency"); d.N() > 0 {
		sent += fmt.Sprintf(" An answer took %s for half of them and at most %s for 99 %%.", number.Value(d.Percentile(50), "ms"), number.Value(d.Percentile(99), "ms"))
	}
	switch {
	case l.Picked:
	case l.Ledger == nil:
		sent += " " + upper(result.UnknownLedger) + "."
	case !result.AllThere(l.Run):
		sent += fmt.Sprintf(" The ledger counts %s expected, %s finished%s.",
			number.Whole(l.Ledger.Expected), number.Whole(l.Ledger.Finished()), result.MissingText(*l.Ledger))
	}
	return sent
}

func (l runData) tiles() []Tile {
	all, last := attainmentTiles(l.Run)
	if cache := cacheTile(l.Run); cache.Level == Bad {
		all = append(all, cache)
	} else {
		last = append(last, cache)
	}
	if len(l.rows) == 0 {
		return append(all, last...)
	}
	rate := func(name, tag, unit string) {
		if v := l.single(tag); !math.IsNaN(v) {
			all = append(all, Tile{Name: name, Text: number.Value(v, ""), Note: unit})
		}
	}
	rate("Requests", "request_throughput", "ok per second")
	rate("Output", "output_token_throughput", "tokens per second")
	rate("Output per GPU", "output_token_throughput_per_gpu", "tokens per second")
	for _, q := range shownQuantities {
		if d := l.of(q.Tag()); d.N() > 0 {
			all = append(all, Tile{Name: upper(q.short) + " p50", Text: number.Value(d.Percentile(50), "ms"), Note: "p90 " + number.Value(d.Percentile(90), "ms") + ", p99 " + number.Value(d.Percentile(99), "ms")})
		}
	}
	if good := l.single("goodput"); !math.IsNaN(good) {
		all = append(all, Tile{Name: "Goodput", Text: number.Value(good, ""), Note: "good requests per second"})
	}
	failed := Tile{Name: "Failed", Text: number.Whole(l.figures.Failed), Note: number.Percent(l.figures.Failed, len(l.rows)) + " of those sent", Level: Good}
	if l.figures.Failed > 0 {
		failed.Level = Poor
	}
	if 100*l.figures.Failed > len(l.rows) {
		failed.Level = Bad
	}
	all = append(all, failed)
	if twice := l.retried(); twice > 0 {
		all = append(all, Tile{
			Name: "Sent twice", Text: number.Whole(twice), Level: Poor,
			Note: number.Percent(twice, len(l.rows)) + ", as a kept connection was closed",
		})
	}
	if d := l.of("lateness"); d.N() > 0 {
		all = append(all, Tile{Name: "Lateness p99", Text: number.Value(d.Percentile(99), "ms"), Note: "of sending, lane waits included", Level: l.lateLevel()})
	}
	if reads, merged, delay := l.reads(); l.blurred() != "" {
		tile := Tile{Name: "Coalesced reads", Text: number.Whole(merged), Note: "reads that held several chunks", Level: Poor}
		if reads > 0 {
			tile.Text, tile.Note = number.Percent(merged, reads), "of reads held several chunks; read delay "+number.Value(delay, "ms")
		}
		all = append(all, tile)
	}
	return append(all, last...)
}

func (l runData) facts() (facts Facts) {
	s, add := l.Settings, facts.Add
	count := func(name string, n int64, what string) {
		if n > 0 {
			add(name, number.Whole(n)+what)
		}
	}
	add("Command", s.Command)
	add("Model", s.Model)
	add("Endpoint", s.Endpoint)
	count("Concurrency", int64(s.Concurrency), "")
	if s.Rate > 0 {
		add("Rate asked for", number.Value(s.Rate, "requests/s"))
	}
	count("GPUs", int64(s.GPUs), "")
	add("SLO", strings.ReplaceAll(s.SLO.String(), ",", ", "))
	if l.zero > 0 {
		add("Began", time.Unix(0, l.zero).UTC().Format(time.DateTime)+" UTC")
	}
	if warm := len(l.Rows) - len(l.rows); warm > 0 {
		add("Warm-up", number.Count(warm, "request")+", in no figure here")
	}
	for _, line := range l.Lengths().Lines() {
		add(upper(line[0]), line[1])
	}
	if l.Ledger == nil {
		return facts
	}
	add("Expected", number.Count(int(l.Ledger.Expected), "request"))
	for _, why := range measure.DropReasons() {
		count("Never sent: "+string(why), l.Ledger.Dropped[why], "")
	}
	count("Filtered", l.Ledger.Filtered, ", not expected")
	return facts
}
