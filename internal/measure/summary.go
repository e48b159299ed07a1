package measure

import (
	"sync"
	"time"

	"replayd/internal/stats"
)

// A Summary collects the latencies of a run; how many requests there were and what became of them is in its ledger. Its methods may
// be called from several goroutines at once. Its memory is bounded: some 20 MiB, however many requests it sees.
type Summary struct {
	slo SLO

	mu       sync.Mutex
	samples  [numSamples]stats.Sample
	worst    Values // of the bounded quantities
	merged   int64
	decoded  int64         // output tokens behind the first ones
	decoding time.Duration // the time that they took
	first    time.Time     // the earliest due instant
	last     time.Time     // the latest end
}

const (
	sampleTTFT = iota
	sampleTTFTFromDue
	sampleTPOT
	sampleITL
	sampleE2E
	sampleE2EFromDue
	sampleLateness
	sampleReadDelay
	numSamples
)

// Figures are what a Summary found. Rates are per second of the span.
type Figures struct {
	TTFT, TTFTFromDue, TPOT, ITL, E2E, E2EFromDue stats.Durations // of ok requests
	Lateness                                      stats.Durations // of every request sent
	ReadDelay                                     stats.Durations // of every read that held content and that the kernel stamped
	MergedReads                                   int64           // those that held several chunks; without stamps these are counted too

	Ledger
	SLO    SLO
	Misses []Miss // what was broken, a request under each of its bounds; nil when all that was expected is good

	Span                                            time.Duration // first due instant to the end of the last request, whatever its outcome
	RequestRate, GoodputRate, InputRate, OutputRate float64       // ok requests, good ones, prompt tokens and output tokens
	UserRate                                        float64       // Σ (output tokens − 1) ÷ Σ (last content − first content): tokens/s that one user sees
}

// NewSummary makes an empty summary that knows the worst of what slo bounds.
func NewSummary(slo SLO) *Summary { return &Summary{slo: slo, worst: NoValues()} }

// Observe adds a finished request, unless it was sent to warm the server up. It keeps nothing of r.
func (s *Summary) Observe(r *Request) {
	if r.Phase == Warmup {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first.IsZero() || r.Timeline.Due.Before(s.first) {
		s.first = r.Timeline.Due
	}
	if r.Timeline.End.After(s.last) {
		s.last = r.Timeline.End
	}
	if r.Sent() {
		s.samples[sampleLateness].Add(r.Lateness())
	}
	for _, d := range r.Timeline.ReadDelays {
		s.samples[sampleReadDelay].Add(d)
	}
	s.merged += int64(r.Timeline.MergedReads)
	if r.Outcome != OK {
		return
	}
	v := r.Values()
	for _, b := range s.slo {
		s.worst[b.Quantity] = b.worse(s.worst[b.Quantity], v[b.Quantity])
	}
	s.addLatencies(r)
}

func (s *Summary) addLatencies(r *Request) {
	add := func(sample int, d time.Duration, defined bool) {
		if defined {
			s.samples[sample].Add(d)
		}
	}
	ttft, ok := r.TTFT()
	add(sampleTTFT, ttft, ok)
	ttft, ok = r.TTFTFromDue()
	add(sampleTTFTFromDue, ttft, ok)
	e2e, ok := r.E2E()
	add(sampleE2E, e2e, ok)
	e2e, ok = r.E2EFromDue()
	add(sampleE2EFromDue, e2e, ok)
	tpot, ok := r.TPOT()
	add(sampleTPOT, tpot, ok)
	if chunks := r.Timeline.Chunks; ok {
		s.decoded += int64(r.Usage.Output - 1)
		s.decoding += chunks[len(chunks)-1] - chunks[0]
	}
	for gap := range r.ITL() {
		s.samples[sampleITL].Add(gap)
	}
}

// Figures computes what was found up to now of the run that a ledger is of.
func (s *Summary) Figures(l Ledger) Figures {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.figures(l)
}

func (s *Summary) figures(l Ledger) Figures {
	f := Figures{
		TTFT:        s.samples[sampleTTFT].Durations(),
		TTFTFromDue: s.samples[sampleTTFTFromDue].Durations(),
		TPOT:        s.samples[sampleTPOT].Durations(),
		ITL:         s.samples[sampleITL].Durations(),
		E2E:         s.samples[sampleE2E].Durations(),
		E2EFromDue:  s.samples[sampleE2EFromDue].Durations(),
		Lateness:    s.samples[sampleLateness].Durations(),
		ReadDelay:   s.samples[sampleReadDelay].Durations(),
		MergedReads: s.merged,
		Ledger:      l, SLO: s.slo,
		Span: s.last.Sub(s.first),
	}
	f.Misses = f.misses(&s.worst)
	if span := f.Span.Seconds(); span > 0 {
		f.RequestRate = float64(f.Outcomes[OK]) / span
		f.GoodputRate = float64(f.Good) / span
		f.InputRate = float64(f.PromptTokens) / span
		f.OutputRate = float64(f.OutputTokens) / span
	}
	if s.decoding > 0 {
		f.UserRate = float64(s.decoded) / s.decoding.Seconds()
	}
	return f
}

// Blurred says whether so many reads held several chunks, 1 in 100 or more, that the gaps between chunks are not to be trusted
// in their p99: of chunks that are read together all but the last have too late a time. It is so past what the machine carries, and
// where the server writes several at once: then ReadDelay is small.
func (f Figures) Blurred() bool { return f.MergedReads > 0 && f.MergedReads*100 >= f.ReadDelay.N }
