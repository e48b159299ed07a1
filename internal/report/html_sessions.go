package report

import (
	"fmt"

	"replayd/internal/chart"
	"replayd/internal/measure"
	"replayd/internal/number"
	"replayd/internal/result"
)

func (l runData) sessions() Section {
	if l.Ledger == nil || l.Ledger.Sessions.IsZero() || l.Picked {
		return Section{}
	}
	of, d := l.Ledger.Sessions, l.of("session_makespan")
	s := Section{Short: "Sessions", Title: "Sessions: " + result.SessionsText(of), Text: []string{"Sessions that have begun: " + result.SessionsText(of) + "."}}
	if d.N() > 0 {
		s.Title = fmt.Sprintf("Sessions: half end within %s, one in ten takes longer than %s", number.Value(d.Percentile(50), "s"), number.Value(d.Percentile(90), "s"))
		x := chart.Axis{Label: "makespan of a session", Unit: "s"}
		s.Plots = append(s.Plots, boundedECDF("Sessions", "the ok ones", x, d, l.Settings.Session.Makespan.Seconds()))
	}
	within := ""
	if m := l.Settings.Session.Makespan; m > 0 {
		within = " within " + m.String()
	}
	if of.Eligible() > 0 {
		s.Text = append(s.Text, fmt.Sprintf("%s of %s eligible sessions (%s) ended ok%s.", number.Whole(of.Good), number.Whole(of.Eligible()), number.Percent(of.Good, of.Eligible()), within))
	}
	if of.Prompt > 0 {
		s.Text = append(s.Text, fmt.Sprintf("The server had cached %s of the prompt tokens of ok sessions.", number.Percent(of.Cached, of.Prompt)))
	}
	if n := of.Outcomes[measure.SessionOK]; n > 0 {
		s.Tables = append(s.Tables, partTable(of.Time, n))
	}
	return s
}

func partTable(spent measure.SessionTime, n int64) chart.Table {
	t := chart.Table{Title: "Time of ok sessions along their critical path"}
	t.Columns = chart.Columns("", "mean (s)", "share (%)")
	row := func(name string, seconds float64) {
		t.Rows = append(t.Rows, []string{name, number.Cell(seconds / float64(n)), number.Digits(100*seconds/max(spent.Sum().Seconds(), 1e-9), 3)})
	}
	for p, name := range [measure.NumSessionParts]string{
		"tools: waits between requests", "lateness: due to write, lanes included", "TTFT: write to first content", "decode: first content to end",
	} {
		row(name, spent[p].Seconds())
	}
	row("makespan", spent.Sum().Seconds())
	return t
}
