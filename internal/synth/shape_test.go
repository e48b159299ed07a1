package synth

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"replayd/internal/trace"
)

// A Shape describes a synthetic trace of conversations with an assistant.
//
// Conversations begin by a Poisson process, and beside it in bursts, which come by a Poisson process of their own.
// Each begins with one of a few system prompts, the k-th with a probability proportional to 1/k, or with none. A turn adds a
// message, the engine's answer is added after it, and the next turn sends all of that again with a new message behind:
// its full blocks are the ones that the turn before had. Lengths of messages and answers are lognormal,
// so most are short and a few are very long.
type Shape struct {
	Span        time.Duration // length of the trace
	BlockTokens int

	SessionGap   time.Duration // mean time between conversations that begin alone
	BurstGap     time.Duration // mean time between bursts
	BurstSpan    time.Duration // the conversations of a burst begin evenly within it
	BurstMin     int           // conversations in a burst: BurstMin to BurstMax, each as likely
	BurstMax     int
	Systems      []int   // tokens of each system prompt, the most used one first
	SystemShare  float64 // share of the conversations that have one
	AnotherTurn  float64 // probability that a turn is followed by another one: turns are geometric
	Message      Lengths
	Answer       Lengths
	MaxInput     int           // tokens; a conversation ends before it would send more
	TokenTime    time.Duration // the user waits this long for each token of an answer
	ReadingPause time.Duration // mean of the exponential pause between an answer and the next turn
}

// Lengths is a lognormal distribution of tokens: e to the power of a normal deviate. Values beyond Max become Max.
type Lengths struct {
	Median int
	Sigma  float64 // deviation of the logarithm; the mean is Median × e^(Sigma²/2)
	Max    int
}

// Demo is the shape of Sample: in 165 s about 750 requests with prompts of some thousand tokens, which an engine that is
// simulated on a laptop can carry, the first ones at once.
var Demo = Shape{
	Span: 165 * time.Second, BlockTokens: 512,
	SessionGap: time.Second,
	BurstGap:   18 * time.Second, BurstSpan: 400 * time.Millisecond, BurstMin: 5, BurstMax: 12,
	Systems: []int{1024, 512, 1536, 768, 2048, 640}, SystemShare: 0.75,
	AnotherTurn: 0.65,
	Message:     Lengths{Median: 280, Sigma: 1.2, Max: 12_000},
	Answer:      Lengths{Median: 75, Sigma: 0.8, Max: 600},
	MaxInput:    16_384,
	TokenTime:   20 * time.Millisecond, ReadingPause: 8 * time.Second,
}

// sampleSeed is the seed of Sample.
const sampleSeed = 1

// Records makes a trace of the shape, in due order and with ids from 0 in order of use. The same seed gives the
// same trace.
func (s Shape) Records(seed uint64) []trace.Record {
	m := maker{Shape: s, rng: rand.New(rand.NewPCG(seed, 0))}
	for at := time.Duration(0); at < s.Span; at += m.pause(s.SessionGap) {
		m.session(at)
	}
	for at := m.pause(s.BurstGap); at < s.Span; at += m.pause(s.BurstGap) {
		n := s.BurstMin + m.rng.IntN(s.BurstMax-s.BurstMin+1)
		for i := range n {
			m.session(at + s.BurstSpan*time.Duration(i)/time.Duration(n))
		}
	}
	slices.SortStableFunc(m.rows, func(a, b trace.Record) int { return cmp.Compare(a.Offset, b.Offset) })
	number(m.rows)
	return m.rows
}

// A maker makes one trace.
type maker struct {
	Shape
	rng      *rand.Rand
	rows     []trace.Record
	systems  [][]uint64 // full blocks of each system prompt, from its first use on
	sessions int
	ids      uint64 // given so far
}

// session adds the turns of one conversation that begins at an instant.
func (m *maker) session(at time.Duration) {
	var known []uint64 // full blocks of the turn before, at first of the system prompt
	tokens := 0
	if m.rng.Float64() < m.SystemShare {
		k := m.system()
		known, tokens = m.systems[k], m.Systems[k]
	}
	first := len(m.rows)
	for at < m.Span {
		tokens += m.length(m.Message)
		if tokens > m.MaxInput {
			break
		}
		r := trace.Record{
			Offset: at.Round(time.Millisecond), InputTokens: tokens, OutputTokens: m.length(m.Answer),
			Blocks: slices.Clone(known),
		}
		for len(r.Blocks)*m.BlockTokens < tokens {
			r.Blocks = append(r.Blocks, m.id())
		}
		known = r.Blocks[:tokens/m.BlockTokens]
		m.rows = append(m.rows, r)
		if m.rng.Float64() >= m.AnotherTurn {
			break
		}
		tokens += r.OutputTokens
		at += time.Duration(r.OutputTokens)*m.TokenTime + m.pause(m.ReadingPause)
	}
	if turns := m.rows[first:]; len(turns) > 1 {
		m.sessions++
		for i := range turns {
			turns[i].Session = "s" + strconv.Itoa(m.sessions)
		}
	}
}

// system picks a system prompt by Zipf's law.
func (m *maker) system() int {
	if m.systems == nil {
		for _, tokens := range m.Systems {
			var full []uint64
			for range tokens / m.BlockTokens {
				full = append(full, m.id())
			}
			m.systems = append(m.systems, full)
		}
	}
	total := 0.0
	for k := range m.Systems {
		total += 1 / float64(k+1)
	}
	x := m.rng.Float64() * total
	for k := range m.Systems {
		if x -= 1 / float64(k+1); x < 0 {
			return k
		}
	}
	return len(m.Systems) - 1
}

func (m *maker) id() uint64 {
	m.ids++
	return m.ids - 1
}

func (m *maker) length(l Lengths) int {
	n := math.Round(float64(l.Median) * math.Exp(m.rng.NormFloat64()*l.Sigma))
	return int(max(1, min(n, float64(l.Max))))
}

func (m *maker) pause(mean time.Duration) time.Duration {
	return time.Duration(m.rng.ExpFloat64() * float64(mean))
}
