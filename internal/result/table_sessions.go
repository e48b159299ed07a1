package result

import (
	"fmt"
	"strings"
	"time"

	"replayd/internal/measure"
	"replayd/internal/number"
	"replayd/internal/terminal"
)

// writeSessions prints how the sessions ended, how long the ok ones took and in which parts, if there were any.
func (s *Summary) writeSessions(out *terminal.Table, of measure.Sessions) {
	if of.IsZero() {
		return
	}
	fmt.Fprintln(out)
	out.Line("sessions", "%s", SessionsText(of))
	if d := s.makespans.Durations(); d.N > 0 {
		out.Line("makespan", "mean %s, p50 %s, p90 %s, max %s; %s requests a session", long(d.Mean), long(s.makespans.Percentile(50)),
			long(s.makespans.Percentile(90)), long(d.Max), number.Cell(float64(of.Requests)/float64(d.N)))
		out.Line("session time", "%s", SessionTimeText(of.Time))
	}
	if of.Prompt > 0 {
		out.Line("cached", "%s of the prompt tokens of ok sessions", number.Percent(of.Cached, of.Prompt))
	}
	bound := "ok"
	if s.sessions.Makespan > 0 {
		bound = "ok within " + s.sessions.Makespan.String()
	}
	out.Line("session attainment", "%s: %d of %d eligible (%s)", shareText(of.Attainment()), of.Good, of.Eligible(), bound)
}

// long formats a makespan: 18m40s, and below a minute as latencies are: 7.21 s.
func long(d time.Duration) string {
	if d < time.Minute {
		return number.Latency(d)
	}
	return d.Round(time.Second).String()
}

// SessionsText counts sessions by how they ended: "12: 10 ok, 2 failed".
func SessionsText(of measure.Sessions) string {
	var parts []string
	for _, o := range measure.SessionOutcomes() {
		if n := of.Outcomes[o]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, o))
		}
	}
	if of.InProgress > 0 {
		parts = append(parts, fmt.Sprintf("%d in progress", of.InProgress))
	}
	return fmt.Sprintf("%d: %s", of.Begun, strings.Join(parts, ", "))
}

// SessionTimeText says how much of the time of ok sessions each part took: "61 % tools, 0.1 % lateness, …".
func SessionTimeText(t measure.SessionTime) string {
	parts := make([]string, len(t))
	for p, d := range t {
		parts[p] = fmt.Sprintf("%s %s", number.Percent(d, max(t.Sum(), time.Nanosecond)), measure.SessionPart(p))
	}
	return strings.Join(parts, ", ") + " along the critical path"
}
