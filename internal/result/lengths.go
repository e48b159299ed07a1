package result

import (
	"fmt"
	"math"
	"strings"
	"time"

	"replayd/internal/measure"
	"replayd/internal/number"
	"replayd/internal/stats"
)

// Lengths hold the lengths that the rows of the ok requests of a run ask for against those that the server counted.
type Lengths struct {
	Prompts  LengthSum `json:"prompts"`
	Answers  LengthSum `json:"answers"`
	NotExact string    `json:"not_exact,omitempty"` // see Settings
}

// A LengthSum sums up lengths. All but the last two fields are of requests whose two lengths are known.
type LengthSum struct {
	Compared  int64    `json:"compared"`
	Other     int64    `json:"other"`                        // measure.Length.Other
	Median    *float64 `json:"median_off_percent,omitempty"` // of the others: 100 × (counted − asked) ÷ asked
	Asked     int64    `json:"asked_tokens"`
	Counted   int64    `json:"counted_tokens"`
	Uncounted int64    `json:"uncounted"` // requests whose length the server did not count
	Unasked   int64    `json:"unasked"`   // requests whose rows ask for no length
}

// A lengthCount makes a LengthSum in bounded memory.
type lengthCount struct {
	sum    LengthSum
	ratios stats.Sample // counted ÷ asked of the others, in seconds
}

func (c *lengthCount) add(l measure.Length) {
	s := &c.sum
	switch {
	case l.Compared():
		s.Compared++
		s.Asked += int64(l.Asked)
		s.Counted += int64(l.Counted)
		if l.Other() {
			s.Other++
			c.ratios.Add(time.Duration(math.Round(float64(l.Counted) / float64(l.Asked) * float64(time.Second))))
		}
	case l.Asked > 0:
		s.Uncounted++
	default:
		s.Unasked++
	}
}

func (c *lengthCount) lengths() LengthSum {
	s := c.sum
	if s.Other > 0 {
		s.Median = new(float64(c.ratios.Percentile(50)-time.Second) / float64(time.Second/100))
	}
	return s
}

// Lengths returns the lengths of the run.
func (r Run) Lengths() Lengths {
	var prompts, answers lengthCount
	for _, row := range r.Rows {
		if row.Phase == measure.Profiling && row.Outcome == measure.OK {
			prompts.add(row.Prompt)
			answers.add(row.Answer)
		}
	}
	return Lengths{prompts.lengths(), answers.lengths(), r.Settings.NotExact}
}

// Lengths returns the lengths of the observed requests.
func (s *Summary) Lengths() Lengths {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Lengths{Prompts: s.prompts.lengths(), Answers: s.answers.lengths()}
}

// addLengths adds the figures of the lengths of ok requests: those of prompts under names like AIPerf's of answers.
func (f *Statistics) addLengths(rows []Row) {
	for _, side := range []struct {
		tag, name, things string
		of                func(*Row) measure.Length
	}{
		{"isl", "ISL", "Prompts", func(r *Row) measure.Length { return r.Prompt }},
		{"osl", "OSL", "Answers", func(r *Row) measure.Length { return r.Answer }},
	} {
		var asked, off []float64
		other := 0
		for i := range rows {
			l := side.of(&rows[i])
			if rows[i].Phase != measure.Profiling || rows[i].Outcome != measure.OK || l.Asked <= 0 {
				continue
			}
			asked = append(asked, float64(l.Asked))
			if l.Compared() {
				off = append(off, 100*float64(l.Counted-l.Asked)/float64(l.Asked))
			}
			if l.Other() {
				other++
			}
		}
		f.distribution("requested_"+side.tag, "Requested "+side.name, "tokens", asked)
		f.distribution(side.tag+"_mismatch_diff_pct", side.name+" Mismatch Diff", "%", off)
		if len(off) > 0 {
			f.single("other_"+side.tag+"_count", side.things+" of Other Lengths", "requests", float64(other))
		}
	}
}

// Lines returns what there is to say, each a name and a text. There is nothing without an ok request.
func (l Lengths) Lines() (lines [][2]string) {
	for _, s := range []struct {
		name string
		LengthSum
	}{{"prompts", l.Prompts}, {"answers", l.Answers}} {
		if s.requests() > 0 {
			lines = append(lines, [2]string{s.name, s.String()})
		}
	}
	if l.NotExact != "" && l.Answers.Unasked < l.Answers.requests() {
		lines = append(lines, [2]string{"exact lengths", "not asked for, because " + l.NotExact})
	}
	return lines
}

// Warnings returns those of Lines that limit the figures of a run: lengths that are off by at least 1 % in the median
// of those that differ, and why answers have them.
func (l Lengths) Warnings() (all []string) {
	answers := l.Answers.isOff()
	off := map[string]bool{"prompts": l.Prompts.isOff(), "answers": answers, "exact lengths": answers}
	for _, line := range l.Lines() {
		if off[line[0]] {
			all = append(all, line[0]+": "+line[1])
		}
	}
	return all
}

func (s LengthSum) isOff() bool { return s.Median != nil && math.Abs(*s.Median) >= 1 }

// requests returns the number of ok requests.
func (s LengthSum) requests() int64 { return s.Compared + s.Uncounted + s.Unasked }

// String says how many have another length than asked, and by how much: "3 of 3 have other lengths than asked, −60 %
// in the median (15 tokens asked, 6 counted)".
func (s LengthSum) String() string {
	var parts []string
	tokens := fmt.Sprintf("%d tokens asked, %d counted", s.Asked, s.Counted)
	switch {
	case s.Other > 0:
		off := number.Digits(*s.Median, 2)
		if *s.Median > 0 {
			off = "+" + off
		}
		parts = append(parts, fmt.Sprintf("%d of %d have other lengths than asked, %s %% in the median (%s)",
			s.Other, s.Compared, off, tokens))
	case s.Compared > 0:
		parts = append(parts, fmt.Sprintf("%d of %d have the length asked (%s)", s.Compared, s.Compared, tokens))
	}
	if s.Uncounted > 0 {
		parts = append(parts, fmt.Sprintf("the server counted none of %d", s.Uncounted))
	}
	if s.Unasked > 0 {
		parts = append(parts, fmt.Sprintf("no length was asked for in %d", s.Unasked))
	}
	return strings.Join(parts, "; ")
}
