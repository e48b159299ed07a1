package schedule

// mostSessions bounds how many sessions are in progress at once: each holds its rows in memory.
const mostSessions = 1 << 20

// checkSessions checks the options of plans that are read session by session.
func (o *Options) checkSessions() (f Faults) {
	if o.RateOf != "" {
		f.oneOf("rate_of", string(o.RateOf), string(Requests), string(Starts))
	}
	if o.RateOf == Starts && !o.byGaps() {
		f.add("rate_of", "needs arrival constant, poisson or gamma for %q, got arrival %s", o.RateOf, o.Arrival)
	}
	switch {
	case o.Arrival != Sessions && o.SessionsAtOnce != 0:
		f.add("sessions_at_once", "needs arrival sessions, got arrival %s", o.Arrival)
	case o.Arrival == Sessions && (o.SessionsAtOnce < 1 || o.SessionsAtOnce > mostSessions):
		f.add("sessions_at_once", "want 1 to %d for arrival sessions, got %d", mostSessions, o.SessionsAtOnce)
	}
	switch s := o.StartWithin; {
	case s == StartWithin{}:
	case !(s.From >= 0 && s.From <= s.To && s.To <= 1):
		f.add("start_within", "want shares of 0 to 1, the first not above the second, got %v to %v", s.From, s.To)
	case o.Arrival != Sessions:
		f.add("start_within", "needs arrival sessions, got arrival %s", o.Arrival)
	}
	return f
}
