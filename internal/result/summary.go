package result

import (
	"math"
	"sync"
	"time"

	"replayd/internal/measure"
	"replayd/internal/stats"
)

// A Summary collects the latencies of a run. The run's ledger has the number of requests and their outcomes. Methods
// may be called concurrently. Memory is bounded to some 20 MiB, however many requests the Summary sees.
type Summary struct {
	slo      measure.SLO
	sessions measure.SessionSLO

	mu        sync.Mutex
	samples   [measure.NumQuantities]stats.Sample // of tabled: lateness of all sent requests, the others of ok requests
	itl       stats.Sample                        // of ok requests
	makespans stats.Sample                        // of ok sessions
	readDelay stats.Sample                        // of every read with content and a kernel timestamp
	merged    int64                               // reads that held several chunks, with or without a kernel timestamp
	worst     measure.Values                      // worst value of each bounded quantity
	decoded   int64                               // output tokens after the first ones
	decoding  time.Duration                       // time that the decoded tokens took
	first     time.Time                           // the earliest due instant
	last      time.Time                           // the latest end, whatever the outcome
}

// NewSummary returns an empty summary. It tracks the worst value of each quantity that slo bounds.
func NewSummary(slo measure.SLO, sessions measure.SessionSLO) *Summary {
	return &Summary{slo: slo, sessions: sessions, worst: measure.NoValues()}
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
	s.merged += int64(r.Timeline.MergedReads)
	for _, q := range tabled {
		if !math.IsNaN(v[q.Quantity]) {
			s.samples[q.Quantity].Add(measure.FromMilliseconds(v[q.Quantity]))
		}
	}
	if r.Outcome != measure.OK {
		return
	}
	for _, b := range s.slo {
		s.worst[b.Quantity] = b.Worse(s.worst[b.Quantity], v[b.Quantity])
	}
	if chunks := r.Timeline.Chunks; !math.IsNaN(v[measure.TPOT]) {
		s.decoded += int64(r.Usage.Decoded())
		s.decoding += chunks[len(chunks)-1] - chunks[0]
	}
	for gap := range r.ITL() {
		s.itl.Add(gap)
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

// A miss is one bound of an SLO that requests of a run broke. The miss named error stands for requests that did not end
// ok.
type miss struct {
	slo      string        // name of the quantity, or error
	bound    measure.Bound // zero for error
	requests int64         // expected requests that broke the bound; for error, including those that were never sent
	worst    float64       // in the quantity's unit; 0 for error
	p99      time.Duration // of all requests that have the quantity, within the bound or not; 0: not known
}

// misses returns the broken bounds in the order of the quantities, then error. A request counts under each bound that
// it broke. misses returns nil if all expected requests are good. The caller holds the lock.
func (s *Summary) misses(l measure.Ledger) (misses []miss) {
	for _, b := range s.slo {
		if n := l.Broken[b.Quantity.String()]; n > 0 {
			misses = append(misses, miss{b.Quantity.String(), b, n, s.worst[b.Quantity], s.samples[b.Quantity].Percentile(99)})
		}
	}
	if n := l.Expected - l.Outcomes[measure.OK]; n > 0 {
		misses = append(misses, miss{slo: measure.SLOName(measure.SLOError), requests: n})
	}
	return misses
}
