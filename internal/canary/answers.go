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
	Pairs    int64              `json:"pairs"`
	Finishes [2][finishes]int64 `json:"finishes"`
	Only     [2][finishes]int64 `json:"only"` // pairs in which this side alone has the reason
	Known    int64              `json:"told"` // pairs of which both lengths are known, in one unit
	Tokens   [2]int64           `json:"tokens"`
	Longer   int64              `json:"longer"` // pairs by the candidate's answer; the others are equal
	Shorter  int64              `json:"shorter"`
}

// add adds a pair that is not void. known says whether the lengths of both its answers are.
func (t *AnswerTotals) add(p *Pair) (known bool) {
	if p.Requests[Baseline].E2E == 0 || p.Requests[Candidate].E2E == 0 {
		return false
	}
	base, cand := p.Requests[Baseline].Answer, p.Requests[Candidate].Answer
	t.Pairs++
	t.Finishes[Baseline][base.Finish]++
	t.Finishes[Candidate][cand.Finish]++
	if base.Finish != cand.Finish {
		t.Only[Baseline][base.Finish]++
		t.Only[Candidate][cand.Finish]++
	}
	if base.Tokens <= 0 || cand.Tokens <= 0 || base.Chunks != cand.Chunks {
		return false
	}
	t.Known++
	t.Tokens[Baseline] += int64(base.Tokens)
	t.Tokens[Candidate] += int64(cand.Tokens)
	switch {
	case cand.Tokens > base.Tokens:
		t.Longer++
	case cand.Tokens < base.Tokens:
		t.Shorter++
	}
	return true
}

// answers are the sums over pairs from which differences are computed.
type answers struct {
	AnswerTotals
	ratios  [2*ratioCells + 1]int64 // pairs by ln(candidate ÷ baseline) in steps of ratioStep
	lengths [2][lengthCells]int64   // answers by lengthCell
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

func (a *answers) add(p *Pair) {
	if !a.AnswerTotals.add(p) {
		return
	}
	base, cand := p.Requests[Baseline].Answer, p.Requests[Candidate].Answer
	a.lengths[Baseline][lengthCell(base.Tokens)]++
	a.lengths[Candidate][lengthCell(cand.Tokens)]++
	countRatio(a.ratios[:], math.Log(float64(cand.Tokens)/float64(base.Tokens)), ratioStep)
}

// countRatio counts the natural logarithm of a ratio, in cells of a step. That of 1 is in the middle; the first and the
// last cell have all beyond.
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

func (a *answers) merge(b *answers) {
	a.Pairs, a.Known, a.Longer, a.Shorter = a.Pairs+b.Pairs, a.Known+b.Known, a.Longer+b.Longer, a.Shorter+b.Shorter
	addAll(a.Tokens[:], b.Tokens[:])
	addAll(a.ratios[:], b.ratios[:])
	for side := range a.lengths {
		addAll(a.Finishes[side][:], b.Finishes[side][:])
		addAll(a.Only[side][:], b.Only[side][:])
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
	Differ        [finishes]bool // the sides differ in the reason, reliably
	Median        [2]int64       // length; 0: unknown
	Ratio         float64        // candidate ÷ baseline, the median of pairs; NaN: unknown
	LengthsDiffer bool           // reliably
}

// differences is the number of tests for a difference: of lengths and of each finish reason, in both directions.
const differences = 2 * (1 + int(finishes))

// state returns the sums, and what differs.
//
// A difference is reliable when a sign test has the evidence differences ÷ Alpha: of the pairs that are not equal, too many differ in one direction. As for
// the verdict that holds however often one looks, if each pair of equal servers differs in either direction with the same chance.
func (a *answers) state(alpha float64) Answers {
	s := Answers{
		AnswerTotals: a.AnswerTotals, Ratio: medianRatio(a.ratios[:], ratioStep),
		LengthsDiffer: differ(a.Longer, a.Shorter, alpha),
	}
	for f := range s.Differ {
		s.Differ[f] = differ(a.Only[Candidate][f], a.Only[Baseline][f], alpha)
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
	AnswerTotals
	Ratios  []byte    `json:"ratios"`
	Lengths [2][]byte `json:"lengths"`
}

func (a *answers) snapshot() AnswersSnapshot {
	lengths := [2][]byte{packed(a.lengths[Baseline][:]), packed(a.lengths[Candidate][:])}
	return AnswersSnapshot{a.AnswerTotals, packed(a.ratios[:]), lengths}
}

// restore takes over a snapshot. Files of replayd before answers were kept have an empty one.
func (a *answers) restore(s *AnswersSnapshot, f *restoring) {
	f.unpack("answers.ratios", a.ratios[:], s.Ratios)
	for side := range s.Lengths {
		f.unpack("answers.lengths", a.lengths[side][:], s.Lengths[side])
	}
	a.AnswerTotals = s.AnswerTotals
}
