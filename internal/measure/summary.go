package measure

import (
	"sync"
	"time"

	"replayd/internal/stats"
)

// A Summary collects what a run has to say at its end. Its methods may be called from several goroutines at once. Its
// memory is bounded: some 20 MiB, however many requests it sees.
type Summary struct {
	slo SLO

	mu       sync.Mutex
	samples  [numSamples]stats.Sample
	finished [len(outcomes)]int64
	dropped  [len(dropReasons)]int64
	goodput  int64
	broken   [sloKinds]int64
	worst    Values // of the bounded quantities
	prompt   int64
	output   int64
	merged   int64
	userRate float64 // Σ 1/TPOT, in tokens/s
	users    int64
	first    time.Time // the earliest due instant
	last     time.Time // the latest end
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

	Outcomes map[Outcome]int64    // those that occurred
	Dropped  map[DropReason]int64 // those that occurred, filtered among them
	Expected int64                // finished and dropped, without filtered
	Goodput  int64                // requests that ended ok and met the SLO
	SLO      SLO
	Misses   []Miss // what was broken, a request under each of its bounds; nil when all that is judged is goodput

	PromptTokens, OutputTokens int64 // of ok requests, as the server counts them

	Span                                            time.Duration // first due instant to the end of the last request, whatever its outcome
	RequestRate, GoodputRate, InputRate, OutputRate float64       // ok requests, good ones, prompt tokens and output tokens
	UserRate                                        float64       // mean of 1/TPOT: tokens/s that one user sees
}

// NewSummary makes an empty summary that judges goodput by slo.
func NewSummary(slo SLO) *Summary { return &Summary{slo: slo, worst: NoValues()} }

// Observe adds a finished request, unless it was sent to warm the server up. It keeps nothing of r.
func (s *Summary) Observe(r *Request) {
	if r.Phase == Warmup {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finished[r.Outcome.place()]++
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
	s.judge(r)
	s.prompt += int64(r.Usage.Prompt)
	s.output += int64(r.Usage.Output)
	s.addLatencies(r)
}

// judge holds an ok request against the bounds.
func (s *Summary) judge(r *Request) {
	v := r.Values()
	for _, b := range s.slo {
		if !b.Kept(&v) {
			s.broken[b.Quantity]++
		}
		s.worst[b.Quantity] = b.worse(s.worst[b.Quantity], v[b.Quantity])
	}
	if s.slo.Good(r.Outcome, &v) {
		s.goodput++
	}
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
	if tpot > 0 { // all of it within one read has no rate
		s.users++
		s.userRate += 1 / tpot.Seconds()
	}
	for gap := range r.ITL() {
		s.samples[sampleITL].Add(gap)
	}
}

// Drop counts a request that was never sent.
func (s *Summary) Drop(why DropReason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped[why.place()]++
}

// Figures computes what was found up to now.
func (s *Summary) Figures() Figures {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.figures()
}

func (s *Summary) figures() Figures {
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
		Outcomes:    map[Outcome]int64{}, Dropped: map[DropReason]int64{},
		Goodput: s.goodput, SLO: s.slo,
		PromptTokens: s.prompt, OutputTokens: s.output,
		Span: s.last.Sub(s.first),
	}
	for i, n := range s.finished {
		if n > 0 {
			f.Outcomes[outcomes[i]] = n
			f.Expected += n
		}
	}
	for i, n := range s.dropped {
		if n > 0 {
			f.Dropped[dropReasons[i]] = n
			if dropReasons[i] != Filtered {
				f.Expected += n
			}
		}
	}
	f.Misses = f.misses(s.broken, &s.worst)
	if span := f.Span.Seconds(); span > 0 {
		f.RequestRate = float64(f.Outcomes[OK]) / span
		f.GoodputRate = float64(f.Goodput) / span
		f.InputRate = float64(f.PromptTokens) / span
		f.OutputRate = float64(f.OutputTokens) / span
	}
	if s.users > 0 {
		f.UserRate = s.userRate / float64(s.users)
	}
	return f
}

// Blurred says whether so many reads held several chunks, 1 in 100 or more, that the gaps between chunks are not to be trusted
// in their p99: of chunks that are read together all but the last have too late a time. It is so past what the machine carries, and
// where the server writes several at once: then ReadDelay is small.
func (f Figures) Blurred() bool { return f.MergedReads > 0 && f.MergedReads*100 >= f.ReadDelay.N }

// Judged is how many requests can be goodput: the expected ones, without those that the workload cancelled itself.
func (f Figures) Judged() int64 { return f.Expected - f.Outcomes[Cancelled] }

// GoodputShare is the part of the judged requests that was goodput, 0 to 1; 0 when there were none.
func (f Figures) GoodputShare() float64 {
	if f.Judged() == 0 {
		return 0
	}
	return float64(f.Goodput) / float64(f.Judged())
}
