package result

import (
	"math"
	"sync"
	"time"

	"replayd/internal/measure"
	"replayd/internal/stats"
)

// A Summary collects the latencies of a run; how many requests there were and what became of them is in its ledger. Its methods may
// be called from several goroutines at once. Its memory is bounded: some 20 MiB, however many requests it sees.
type Summary struct {
	slo measure.SLO

	mu        sync.Mutex
	samples   [measure.NumQuantities]stats.Sample // of those in a table: lateness of every request sent, the others of ok ones
	itl       stats.Sample                        // of ok requests
	readDelay stats.Sample                        // of every read that held content and that the kernel stamped
	merged    int64                               // reads that held several chunks; without stamps these are counted too
	worst     measure.Values                      // of the bounded quantities
	decoded   int64                               // output tokens behind the first ones
	decoding  time.Duration                       // the time that they took
	first     time.Time                           // the earliest due instant
	last      time.Time                           // the latest end, whatever the outcome
}

// NewSummary makes an empty summary that knows the worst of what slo bounds.
func NewSummary(slo measure.SLO) *Summary { return &Summary{slo: slo, worst: measure.NoValues()} }

// Observe adds a finished request, unless it was sent to warm the server up. It keeps nothing of r.
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
		s.decoded += int64(r.Usage.Output - 1)
		s.decoding += chunks[len(chunks)-1] - chunks[0]
	}
	for gap := range r.ITL() {
		s.itl.Add(gap)
	}
}

// span is from the first due instant to the end of the last request. The lock is held.
func (s *Summary) span() time.Duration { return s.last.Sub(s.first) }

// perUser is Σ (output tokens − 1) ÷ Σ (last content − first content): tokens/s that one user sees; 0 without any. The lock is held.
func (s *Summary) perUser() float64 {
	if s.decoding == 0 {
		return 0
	}
	return float64(s.decoded) / s.decoding.Seconds()
}

// blurred says whether so many reads held several chunks, 1 in 100 or more, that the gaps between chunks are not to be trusted
// in their p99: of chunks that are read together all but the last have too late a time. It is so past what the machine carries, and
// where the server writes several at once: then the read delay is small. The lock is held.
func (s *Summary) blurred() bool { return s.merged > 0 && s.merged*100 >= s.readDelay.Durations().N }

// A miss is one bound of an SLO that requests of a run broke, or, as error, that requests did not end ok.
type miss struct {
	slo      string        // the quantity's name, or error
	bound    measure.Bound // zero of error
	requests int64         // of the expected ones; under error also those that were never sent
	worst    float64       // in the quantity's unit; 0 of error
	p99      time.Duration // of all that have the quantity, those within the bound too; 0 where it is not known
}

// misses are the bounds that were broken, a request under each of its own, in the order of the quantities, then error; nil when all that
// was expected is good. The lock is held.
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
