package result

import (
	"maps"
	"math"
	"sync"
	"time"

	"replayd/internal/measure"
	"replayd/internal/stats"
)

// ownTable has the quantities of the table of run, with their names in it. ITL is not a quantity of a request and is
// shown before e2e.
var ownTable = []struct {
	measure.Quantity
	name string
}{
	{measure.TTFT, "TTFT"},
	{measure.TTFAT, "TTFAT"},
	{measure.TTFTFromDue, "TTFT from due"},
	{measure.TPOT, "TPOT"},
	{measure.E2E, "e2e"},
	{measure.E2EFromDue, "e2e from due"},
	{measure.Lateness, "lateness"},
}

// A Summary collects the latencies of a run, its failures and its cached tokens. The run's ledger has the number of
// requests and their outcomes. Methods may be called concurrently. Memory is bounded to some 25 MiB, however many
// requests the Summary sees.
type Summary struct {
	slo      measure.SLO
	sessions measure.SessionSLO

	mu        sync.Mutex
	samples   [measure.NumQuantities]stats.Sample // of ownTable: lateness of all sent requests, the others of ok requests
	itl       stats.Sample                        // of ok requests
	connect   stats.Sample                        // of requests that opened their connection
	makespans stats.Sample                        // of ok sessions
	readDelay stats.Sample                        // of every read with content and a kernel timestamp
	retried   int64                               // requests that were sent twice
	merged    int64                               // reads that held several chunks, with or without a kernel timestamp
	inside    int64                               // gaps between chunks of one read
	worst     measure.Values                      // worst value of each bounded quantity
	decoded   int64                               // output tokens after the first ones
	decoding  time.Duration                       // time that the decoded tokens took
	first     time.Time                           // the earliest due instant
	last      time.Time                           // the latest end, whatever the outcome
	failures  map[measure.Outcome]failure
	cache     cacheSum
	reading   Reading
	prompts   lengthCount // of ok requests
	answers   lengthCount
}

// NewSummary returns an empty summary. It tracks the worst value of each quantity that slo bounds.
func NewSummary(slo measure.SLO, sessions measure.SessionSLO) *Summary {
	return &Summary{slo: slo, sessions: sessions, worst: measure.NoValues(), failures: map[measure.Outcome]failure{}}
}

// Observe adds a finished request, unless it belongs to the warm-up. It keeps nothing of r.
func (s *Summary) Observe(r *measure.Request) {
	if r.Phase == measure.Warmup {
		return
	}
	v := r.Values()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first.IsZero() || r.Timeline.Due.Before(s.first) {
		s.first = r.Timeline.Due
	}
	if r.Timeline.End.After(s.last) {
		s.last = r.Timeline.End
	}
	for _, d := range r.Timeline.ReadDelays {
		s.readDelay.Add(d)
	}
	if r.Retried {
		s.retried++
	}
	if r.Sent() && r.Timeline.Connect > 0 {
		s.connect.Add(r.Timeline.Connect)
	}
	s.merged += int64(r.Timeline.MergedReads)
	for _, q := range ownTable {
		if !math.IsNaN(v[q.Quantity]) {
			s.samples[q.Quantity].Add(measure.FromMilliseconds(v[q.Quantity]))
		}
	}
	if _, seen := s.failures[r.Outcome]; r.Outcome.Failed() && !seen {
		s.failures[r.Outcome] = failure{r.ID, string(r.Error), r.Model}
	}
	s.reading.add(r)
	if r.Outcome != measure.OK {
		return
	}
	s.cache.add(r)
	s.prompts.add(r.PromptLength())
	s.answers.add(r.AnswerLength())
	for _, b := range s.slo {
		s.worst[b.Quantity] = b.Worse(s.worst[b.Quantity], v[b.Quantity])
	}
	if chunks := r.Timeline.Chunks; !math.IsNaN(v[measure.TPOT]) {
		s.decoded += int64(r.Usage.Decoded())
		s.decoding += chunks[len(chunks)-1] - chunks[0]
	}
	s.inside += max(0, int64(len(r.Timeline.Chunks))-1)
	for gap := range r.ITL() {
		s.itl.Add(gap)
		s.inside--
	}
}

// Session adds a session that has ended. The ledger counts sessions.
func (s *Summary) Session(of *measure.Session) {
	if of.Outcome != measure.SessionOK {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.makespans.Add(of.Makespan())
}

// span returns the time from the first due instant to the end of the last request. The caller holds the lock.
func (s *Summary) span() time.Duration { return s.last.Sub(s.first) }

// perUser returns Σ (output tokens − 1) ÷ Σ (last content − first content), the tokens/s that one user sees, or 0
// without data. The caller holds the lock.
func (s *Summary) perUser() float64 {
	if s.decoding == 0 {
		return 0
	}
	return float64(s.decoded) / s.decoding.Seconds()
}

// blurred reports whether at least 1 in 100 reads held several chunks. Then the p99 of the gaps between chunks is not
// reliable: all chunks of a read but the last have too late a time. The cause is a load beyond the capacity of the
// machine, or a server that writes several chunks at once; in the second case the read delay is small. The caller holds
// the lock.
func (s *Summary) blurred() bool { return s.merged > 0 && s.merged*100 >= s.readDelay.Durations().N }

// A miss is one bound of an SLO that requests of a run broke.
type miss struct {
	bound    measure.Bound
	requests int64         // expected requests that broke the bound
	worst    float64       // in the quantity's unit
	p99      time.Duration // of all requests that have the quantity, within the bound or not; 0: not known
}

// misses returns the broken bounds in the order of the quantities. A request counts under each bound that it broke.
// What did not end ok is not among them. The caller holds the lock.
func (s *Summary) misses(l measure.Ledger) (misses []miss) {
	for _, b := range s.slo {
		if n := l.Broken[b.Quantity.String()]; n > 0 {
			misses = append(misses, miss{b, n, s.worst[b.Quantity], s.samples[b.Quantity].Percentile(99)})
		}
	}
	return misses
}

// Cache returns the cache of the observed requests. tokens is the number of tokens that the prompts share with each
// other; shared is false if that is not known. The server's own counters in series are used if no answer reported
// cached tokens.
func (s *Summary) Cache(tokens int64, shared bool, series []ServerSeries) *Cache {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.cache.Cache
	c.Source = CacheUsage
	if !s.cache.reported {
		var ok bool
		if c, ok = engineCache(series); !ok {
			return nil
		}
	}
	if shared {
		tokens += s.cache.template
		c.Explained = &tokens
	}
	return &c
}

// Reading returns where answers differed from the API; nil: nowhere.
func (s *Summary) Reading() *Reading {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.reading.Lines()) == 0 {
		return nil
	}
	r := s.reading
	r.Rules = maps.Clone(r.Rules)
	return &r
}

// A failure is the first request of an outcome, because a count alone does not tell what to fix.
type failure struct{ id, text, model string }
