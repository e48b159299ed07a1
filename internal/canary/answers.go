package canary

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// A Finish is the reason that a server gives for the end of an answer.
type Finish int

// Finishes; the list is complete.
const (
	NoFinish Finish = iota // the server gives none
	Stop
	Length
	ToolCalls
	ContentFilter
	OtherFinish
	finishes
)

// Finishes lists all reasons, in order.
var Finishes = [finishes]Finish{NoFinish, Stop, Length, ToolCalls, ContentFilter, OtherFinish}

func (f Finish) String() string {
	return [...]string{"none", "stop", "length", "tool_calls", "content_filter", "other"}[f]
}

// FinishOf returns the reason by its name in the table of meaning. Most of those names are other ones here.
func FinishOf(name string) Finish {
	if f := slices.IndexFunc(Finishes[:], func(f Finish) bool { return f.String() == name }); f >= 0 {
		return Finish(f)
	}
	return OtherFinish
}

// An Answer is a server's answer. Answers are not judged: their differences are shown next to the verdict.
type Answer struct {
	Tokens int  // of the output; 0: unknown
	Chunks bool // Tokens counts chunks, for want of a number of tokens
	Finish Finish
}

// AnswerTotals count the answers of judged pairs with an answer of each side. A server that says less is faster.
type AnswerTotals struct {
	Pairs    int64
	Finishes [2][finishes]int64
	Known    int64 // pairs of which both lengths are known, in one unit
	Tokens   [2]int64
}

// add adds a pair that is not void.
func (t *AnswerTotals) add(p *Pair) (answered, known bool) {
	base, cand := &p.Requests[Baseline], &p.Requests[Candidate]
	if base.E2E == 0 || cand.E2E == 0 {
		return false, false
	}
	known = base.Answer.Tokens > 0 && cand.Answer.Tokens > 0 && base.Answer.Chunks == cand.Answer.Chunks
	t.Pairs++
	if known {
		t.Known++
	}
	for side := range p.Requests {
		t.Finishes[side][p.Requests[side].Answer.Finish]++
		if known {
			t.Tokens[side] += int64(p.Requests[side].Answer.Tokens)
		}
	}
	return true, known
}

// answers are the sums over pairs from which differences are computed.
type answers struct {
	AnswerTotals
	only            [2][finishes]int64      // pairs in which this side alone has the reason
	longer, shorter int64                   // pairs by the candidate's answer; the others are equal
	ratios          [2*ratioCells + 1]int64 // pairs by ln(candidate ÷ baseline) in steps of ratioStep
	lengths         [2][lengthCells]int64   // answers by lengthCell
}

const (
	ratioCells = 400 // to 2981 times
	ratioStep  = 0.02

	exactLengths = 256 // each has a cell of its own
	perOctave    = 16  // cells of longer ones
	lengthCells  = exactLengths + 12*perOctave
)

// lengthCell returns the cell of an answer's length, in tokens.
func lengthCell(n int) int {
	if n < exactLengths {
		return n
	}
	return min(lengthCells-1, exactLengths+int(perOctave*math.Log2(float64(n)/exactLengths)))
}

// lengthOf is the reverse, at the middle of a cell.
func lengthOf(cell int) int64 {
	if cell < exactLengths {
		return int64(cell)
	}
	return int64(math.Round(exactLengths * math.Exp2((float64(cell-exactLengths)+0.5)/perOctave)))
}

// add adds a pair that is not void.
func (a *answers) add(p *Pair) {
	answered, known := a.AnswerTotals.add(p)
	if !answered {
		return
	}
	base, cand := p.Requests[Baseline].Answer, p.Requests[Candidate].Answer
	if base.Finish != cand.Finish {
		a.only[Baseline][base.Finish]++
		a.only[Candidate][cand.Finish]++
	}
	if !known {
		return
	}
	switch {
	case cand.Tokens > base.Tokens:
		a.longer++
	case cand.Tokens < base.Tokens:
		a.shorter++
	}
	a.lengths[Baseline][lengthCell(base.Tokens)]++
	a.lengths[Candidate][lengthCell(cand.Tokens)]++
	countRatio(a.ratios[:], math.Log(float64(cand.Tokens)/float64(base.Tokens)), ratioStep)
}

// countRatio counts the natural logarithm of a ratio, in cells of a step. That of 1 is in the middle; the first and the last cell have all beyond.
func countRatio(counts []int64, log, step float64) {
	half := len(counts) / 2
	counts[half+int(max(float64(-half), min(float64(half), math.Round(log/step))))]++
}

// medianRatio is the lower median of what countRatio has counted; NaN: nothing.
func medianRatio(counts []int64, step float64) float64 {
	if cell := middle(counts); cell >= 0 {
		return math.Exp(float64(cell-len(counts)/2) * step)
	}
	return math.NaN()
}

// merge adds the sums of other pairs.
func (a *answers) merge(b *answers) {
	a.Pairs, a.Known, a.longer, a.shorter = a.Pairs+b.Pairs, a.Known+b.Known, a.longer+b.longer, a.shorter+b.shorter
	addAll(a.Tokens[:], b.Tokens[:])
	addAll(a.ratios[:], b.ratios[:])
	for side := range a.lengths {
		addAll(a.Finishes[side][:], b.Finishes[side][:])
		addAll(a.only[side][:], b.only[side][:])
		addAll(a.lengths[side][:], b.lengths[side][:])
	}
}

func addAll(to, from []int64) {
	for i, n := range from {
		to[i] += n
	}
}

// Answers are the lengths and finish reasons of both sides' answers in judged pairs with an answer of each.
type Answers struct {
	AnswerTotals
	Differ          [finishes]bool // the sides differ in the reason, reliably
	Median          [2]int64       // length; 0: unknown
	Longer, Shorter int64          // pairs by the candidate's answer; the others are equal
	Ratio           float64        // candidate ÷ baseline, the median of pairs; NaN: unknown
	LengthsDiffer   bool           // reliably
}

// differences is the number of tests for a difference: of lengths and of each finish reason, in both directions.
const differences = 2 * (1 + int(finishes))

// state returns the sums, and what differs.
//
// A difference is reliable when a sign test has the evidence differences ÷ Alpha: of the pairs that are not equal, too many differ in one direction. As for
// the verdict that holds however often one looks, if each pair of equal servers differs in either direction with the same chance.
func (a *answers) state(alpha float64) Answers {
	s := Answers{
		AnswerTotals: a.AnswerTotals, Longer: a.longer, Shorter: a.shorter, Ratio: medianRatio(a.ratios[:], ratioStep),
		LengthsDiffer: differ(a.longer, a.shorter, alpha),
	}
	for f := range s.Differ {
		s.Differ[f] = differ(a.only[Candidate][f], a.only[Baseline][f], alpha)
	}
	if a.Known > 0 {
		for side := range s.Median {
			s.Median[side] = lengthOf(middle(a.lengths[side][:]))
		}
	}
	return s
}

func differ(up, down int64, alpha float64) bool {
	return Evidence{max(up, down), up + down}.Log10() >= math.Log10(float64(differences)/alpha)
}

// middle returns the place of the lower median of counts; −1: they are 0.
func middle(counts []int64) int {
	all, seen := int64(0), int64(0)
	for _, n := range counts {
		all += n
	}
	return slices.IndexFunc(counts, func(n int64) bool { seen += n; return n > 0 && 2*seen >= all })
}

// Text says how the candidate's answers differ reliably from the baseline's; "": they do not.
func (a *Answers) Text() string {
	var parts []string
	known, together := float64(a.Known), float64(a.Tokens[Candidate])/float64(a.Tokens[Baseline])
	switch {
	case !a.LengthsDiffer:
	case a.Ratio != 1:
		parts = append(parts, fmt.Sprintf("the candidate's are %.2f times as long (median %d against %d tokens)", a.Ratio, a.Median[Candidate], a.Median[Baseline]))
	default: // most are equally long
		parts = append(parts, fmt.Sprintf("the candidate's are shorter in %.3g %% of the pairs and longer in %.3g %%, together %.3g times as long",
			100*float64(a.Shorter)/known, 100*float64(a.Longer)/known, together))
	}
	for f, differs := range a.Differ {
		if differs {
			share := func(side Side) float64 { return 100 * float64(a.Finishes[side][f]) / float64(a.Pairs) }
			parts = append(parts, fmt.Sprintf("%s %.3g %% against %.3g %%", Finish(f), share(Candidate), share(Baseline)))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "answers: " + strings.Join(parts, "; ")
}

// An AnswersSnapshot is the answers of a comparison's pairs. The histograms are packed.
type AnswersSnapshot struct {
	Pairs    int64              `json:"pairs"`
	Finishes [2][finishes]int64 `json:"finishes"`
	Only     [2][finishes]int64 `json:"only"`
	Known    int64              `json:"told"`
	Tokens   [2]int64           `json:"tokens"`
	Longer   int64              `json:"longer"`
	Shorter  int64              `json:"shorter"`
	Ratios   []byte             `json:"ratios"`
	Lengths  [2][]byte          `json:"lengths"`
}

func (a *answers) snapshot() AnswersSnapshot {
	return AnswersSnapshot{
		Pairs: a.Pairs, Finishes: a.Finishes, Only: a.only, Known: a.Known, Tokens: a.Tokens,
		Longer: a.longer, Shorter: a.shorter, Ratios: packed(a.ratios[:]),
		Lengths: [2][]byte{packed(a.lengths[Baseline][:]), packed(a.lengths[Candidate][:])},
	}
}

// restore takes over a snapshot. Files of replayd before answers were kept have an empty one.
func (a *answers) restore(s *AnswersSnapshot, f *restoring) {
	f.unpack("answers.ratios", a.ratios[:], s.Ratios)
	for side := range s.Lengths {
		f.unpack("answers.lengths", a.lengths[side][:], s.Lengths[side])
	}
	a.AnswerTotals = AnswerTotals{Pairs: s.Pairs, Finishes: s.Finishes, Known: s.Known, Tokens: s.Tokens}
	a.only, a.longer, a.shorter = s.Only, s.Longer, s.Shorter
}
