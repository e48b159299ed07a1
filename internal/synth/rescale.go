package synth

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"replayd/internal/fault"
	"replayd/internal/trace"
)

// RescaleOptions say how a trace is changed: AIPerf's six synthesis options (docs/tutorials/prefix-synthesis.md). The zero value
// of a field changes nothing.
//
// What a row shares is the longest run of its blocks, from the first one on, that another row begins with too. The rest is
// its own.
type RescaleOptions struct {
	Speedup    float64 // instants are divided by it; delays between turns and waits after parents stay
	PrefixLen  float64 // times what rows share, in whole blocks: a shared prefix of d blocks has round(d × PrefixLen) of them
	PromptLen  float64 // times the tokens that are a row's own, at least one where it had any
	PrefixRoot int     // trees that share nothing, each a copy of the trace's; each row, or session, is in one of them, drawn by Seed

	MaxInput  int // rows that would be longer, after all that, are left out
	MaxOutput int // longer answers are cut to it

	BlockTokens int // of the trace: Stats.BlockTokens
	Seed        uint64

	Wait func(recorded time.Duration) time.Duration // that of trace.Options: how long a wait after a parent takes; nil: as recorded
}

// Bounds of RescaleOptions.
const (
	MaxSpeedup    = 1000
	MaxMultiplier = 100
	MaxRoots      = 1 << 20

	longest = 285 * 365 * 24 * time.Hour // as far as a trace file's times reach
)

// Check returns every fault, with the field in lower case as its key.
func (s *RescaleOptions) Check() (all fault.List) {
	factor := func(name string, got, most float64) {
		wrong := got != 0 && !(got >= 1/most && got <= most) // true for NaN, too
		all.If(wrong, name, "want %v to %v, got %v", 1/most, most, got)
	}
	factor("speedup", s.Speedup, MaxSpeedup)
	factor("prefix_len", s.PrefixLen, MaxMultiplier)
	factor("prompt_len", s.PromptLen, MaxMultiplier)
	whole := func(name string, got, most int) {
		all.If(got < 0 || got > most, name, "want 1 to %d, or 0 for none, got %d", most, got)
	}
	whole("prefix_root", s.PrefixRoot, MaxRoots)
	whole("max_input", s.MaxInput, trace.MaxTokens)
	whole("max_output", s.MaxOutput, trace.MaxTokens)
	whole("block_tokens", s.BlockTokens, trace.MaxTokens)
	return all
}

// Rescale returns the rows as the scale changes them; they keep their numbers and lines. Only rows that are given as a length
// change theirs; a row has one id for each of its blocks, the last of which may be partial, if it had any before. Rows
// stand in any order, and the ones returned share nothing with them that is written to.
func Rescale(rows []trace.Record, s RescaleOptions) ([]trace.Record, error) {
	if err := s.Check().Err(); err != nil {
		return nil, err
	}
	s.Speedup, s.PrefixLen, s.PromptLen = cmp.Or(s.Speedup, 1), cmp.Or(s.PrefixLen, 1), cmp.Or(s.PromptLen, 1)
	f := newForest(s)
	paths := make([][]uint32, len(rows))
	for i := range rows {
		if ids := len(rows[i].Blocks); ids > 0 {
			if s.BlockTokens == 0 {
				return nil, errors.New("block_tokens: want an integer ≥ 1 for rows with ids, got 0")
			}
			paths[i] = f.plant(rows[i].Blocks[:min(ids, blocks(rows[i].InputTokens, s.BlockTokens))])
		}
	}
	all, left, parents := make([]trace.Record, 0, len(rows)), make([]bool, len(rows)), false
	for i, r := range rows {
		parents = parents || r.After != nil
		due := math.Round(float64(r.Offset) / s.Speedup)
		if due > float64(longest) {
			return nil, fmt.Errorf("line %d: want times of at most %v, got %v at speedup %v", r.Line, longest, r.Offset, s.Speedup)
		}
		r.Offset = time.Duration(due)
		if s.MaxOutput > 0 {
			r.OutputTokens = min(r.OutputTokens, s.MaxOutput)
		}
		if r.InputTokens > 0 && r.Parts == nil {
			p := f.part(paths[i], r.InputTokens)
			r.InputTokens = p.tokens()
			if long := s.MaxInput > 0 && r.InputTokens > s.MaxInput; !long && r.InputTokens > trace.MaxTokens {
				return nil, fmt.Errorf("line %d: want at most %d tokens, got %d", r.Line, trace.MaxTokens, r.InputTokens)
			} else if !long && paths[i] != nil {
				r.Blocks = f.name(paths[i], p, s.tree(&r))
			}
		}
		left[i] = s.MaxInput > 0 && r.InputTokens > s.MaxInput
		all = append(all, r)
	}
	if parents {
		relink(all, left, s.Wait)
	}
	out := all[:0]
	for i := range all {
		if !left[i] {
			out = append(out, all[i])
		}
	}
	return out, nil
}

func (s *RescaleOptions) tree(r *trace.Record) int {
	if s.PrefixRoot <= 1 {
		return 0
	}
	draws := newStream(s.Seed, 0, rootDomain, r.Key())
	return draws.below(uint64(s.PrefixRoot))
}

func blocks(tokens, size int) int { return (tokens + size - 1) / size }

// relink gives the rows that name their parents the instants that these allow, after all instants have changed. What comes after a row that
// is left out comes after that row's parents, as if it had taken no time. rows have their new instants; left says which are left out. wait is
// that of trace.Options.
func relink(rows []trace.Record, left []bool, wait func(time.Duration) time.Duration) {
	if wait == nil {
		wait = func(recorded time.Duration) time.Duration { return recorded }
	}
	byNumber, gone := make([]*trace.Record, 0, len(rows)), map[int]bool{}
	for i := range rows {
		if left[i] {
			gone[rows[i].Number] = true
		}
		if rows[i].After != nil {
			byNumber = append(byNumber, &rows[i])
		}
	}
	// A row has a higher number than its parents.
	slices.SortFunc(byNumber, func(a, b *trace.Record) int { return a.Number - b.Number })
	known := make(map[int]*trace.Record, len(byNumber))
	for _, r := range byNumber {
		known[r.Number] = r
		after, at := []trace.Edge{}, time.Duration(0)
		if !r.Floating {
			at = r.Offset
		}
		floats := len(r.After) > 0 && r.Floating
		for _, e := range r.After {
			parent := known[e.Row]
			if parent == nil || !gone[e.Row] {
				after = trace.AddEdge(after, e)
				continue
			}
			if !parent.Floating { // it would have ended at its own instant
				at, floats = max(at, parent.Offset+wait(e.Wait)), false
			}
			for _, before := range parent.After {
				after = trace.AddEdge(after, trace.Edge{Row: before.Row, Wait: before.Wait + e.Wait})
			}
		}
		for _, e := range after {
			if parent := known[e.Row]; parent != nil {
				at = max(at, parent.Offset+wait(e.Wait))
			}
		}
		r.After, r.Offset, r.Floating = after, at, floats
	}
}
