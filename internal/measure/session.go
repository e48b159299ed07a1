package measure

import "time"

// A SessionPart is a part of the time of a session along its critical path.
type SessionPart int

// Parts of the time of a session; the list is complete. They add up to its makespan.
const (
	Tools        SessionPart = iota // from the end of a request, or the session's begin, until the next one may be sent
	WaitedToSend                    // from then to the write: the lateness, a wait for a lane included, and connecting
	ToFirstToken                    // from the write to the first content; of an answer that is not streamed, to its end
	Decode                          // from the first content to the end of the answer
	NumSessionParts
)

var sessionParts = [NumSessionParts]string{"tools", "lateness", "ttft", "decode"}

// String returns the part's name, as in series and files.
func (p SessionPart) String() string { return sessionParts[p] }

// A SessionTime is the time of a session by part.
type SessionTime [NumSessionParts]time.Duration

// Sum returns the time of all parts.
func (t SessionTime) Sum() (sum time.Duration) {
	for _, d := range t {
		sum += d
	}
	return sum
}

// Add returns the sum of two times, part by part.
func (t SessionTime) Add(other SessionTime) SessionTime {
	for p, d := range other {
		t[p] += d
	}
	return t
}

// A SessionPath is the critical path from a session's begin to the end of one of its rows: through the parent for which the row waited
// last, and that one's path. The zero value is the path before a row without parents.
type SessionPath struct {
	from time.Time   // due instant of the first row of the path
	ends time.Time   // end of the last one
	time SessionTime // from there on
}

// Then returns the path to the end of a row that was sent after p: it might be sent at ready, was written at write, and had its first
// content at first; zero: it had none, or was not streamed. Instants that are out of order count as the one before.
func (p SessionPath) Then(ready, write, first, end time.Time) SessionPath {
	if p.from.IsZero() {
		p.from, p.ends = ready, ready
	}
	if first.IsZero() {
		first = end
	}
	for part, at := range [NumSessionParts]time.Time{ready, write, first, end} {
		if part < int(Decode) && at.After(end) {
			at = end
		}
		if d := at.Sub(p.ends); d > 0 {
			p.time[part] += d
			p.ends = at
		}
	}
	return p
}

// End returns the end of the path's last row. It is zero for the zero path.
func (p SessionPath) End() time.Time { return p.ends }

// Since returns the path's time from the begin of its session. A first row that was due later has its time until then as Tools. The zero
// path has none.
func (p SessionPath) Since(begun time.Time) SessionTime {
	t := p.time
	if p.from.After(begun) {
		t[Tools] += p.from.Sub(begun)
	}
	return t
}

// A SessionOutcome is how a session ended.
type SessionOutcome string

// Outcomes of sessions; the list is complete.
const (
	SessionOK    SessionOutcome = "ok"     // each request ended ok, or was cancelled by the workload
	SessionNotOK SessionOutcome = "failed" // a request failed, or was dropped for a reason that counts against the service
	SessionCut   SessionOutcome = "cut"    // else: a request was dropped for another reason, aborted or left to another process, or none was sent
)

var sessionOutcomes = [...]SessionOutcome{SessionOK, SessionNotOK, SessionCut}

// NumSessionOutcomes is the number of outcomes of sessions.
const NumSessionOutcomes = len(sessionOutcomes)

// SessionOutcomes returns all outcomes of sessions.
func SessionOutcomes() []SessionOutcome { return append([]SessionOutcome(nil), sessionOutcomes[:]...) }

// A Session is a session that has ended: the rows of one session name in one pass of a loop.
type Session struct {
	Name     string
	Loop     int64
	Pass     int64 // of the loop, from 0
	Outcome  SessionOutcome
	Begun    time.Time   // due instant of its first request
	Time     SessionTime // along the critical path, from Begun to the end of its last request
	Requests int         // that were sent

	Prompt, Cached int  // tokens of its ok requests, as counted by the server
	CacheReported  bool // the server reported cached tokens
}

// Makespan returns the time from the due instant of the first request to the end of the last.
func (s *Session) Makespan() time.Duration { return s.Time.Sum() }

// CachedRatio returns the share of the prompt tokens that the server had cached. ok is false if the server does not say.
func (s *Session) CachedRatio() (share float64, ok bool) {
	if !s.CacheReported || s.Prompt <= 0 {
		return 0, false
	}
	return float64(s.Cached) / float64(s.Prompt), true
}

// A SessionSLO is the bound of a good session: it ends ok within Makespan. 0: within any time.
type SessionSLO struct {
	Makespan time.Duration `koanf:"makespan"`
}

// Good reports whether a session is good. A makespan that equals the bound is.
func (b SessionSLO) Good(s *Session) bool {
	return s.Outcome == SessionOK && (b.Makespan <= 0 || s.Makespan() <= b.Makespan)
}
