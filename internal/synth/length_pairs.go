package synth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"replayd/internal/fault"
	"replayd/internal/trace"
)

const maxPairs = 10_000

// ParsePairs reads a mixture of lengths as AIPerf's --sequence-distribution has it, in its three spellings
// (docs/tutorials/sequence-distributions.md):
//
//	256,128:40;512,256:60
//	[(256,128):40,(512,256):60]
//	{"pairs": [{"isl": 256, "osl": 128, "prob": 40}, {"isl": 512, "osl": 256, "prob": 60}]}
//
// A length may have a standard deviation, 256|10 or "isl_stddev": 10. Shares are relative and need not sum to 100. An
// error names the pair, from 1, and the part of it.
func ParsePairs(s string) ([]Pair, error) {
	s = strings.TrimSpace(s)
	var pairs []Pair
	var err error
	switch {
	case strings.HasPrefix(s, "{"):
		pairs, err = jsonPairs(s)
	case strings.HasPrefix(s, "["):
		pairs, err = bracketPairs(s)
	default:
		pairs, err = listPairs(strings.Split(s, ";"))
	}
	if err != nil {
		return nil, err
	}
	if _, faults := checkPairs(pairs); len(faults) > 0 {
		return nil, faults
	}
	return pairs, nil
}

// listPairs leaves empty ones out, as AIPerf does with a semicolon at the end.
func listPairs(texts []string) ([]Pair, error) {
	var pairs []Pair
	for _, text := range texts {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		p, err := parsePair(text)
		if err != nil {
			return nil, fmt.Errorf("pair %d, %q: %w", len(pairs)+1, text, err)
		}
		pairs = append(pairs, p)
	}
	return pairs, nil
}

// bracketPairs reads [(…):share,(…):share].
func bracketPairs(s string) ([]Pair, error) {
	inner, closed := strings.CutSuffix(s[1:], "]")
	if !closed {
		return nil, fmt.Errorf("want a ] at the end, got %q", s)
	}
	var texts []string
	for rest := strings.TrimSpace(inner); rest != ""; {
		lengths, more, closed := strings.Cut(rest, ")")
		inside, opened := strings.CutPrefix(lengths, "(")
		if !closed || !opened {
			return nil, fmt.Errorf("pair %d, %q: want (ISL,OSL):SHARE", len(texts)+1, rest)
		}
		var share string
		share, rest, _ = strings.Cut(more, ",")
		texts = append(texts, inside+strings.TrimSpace(share))
		rest = strings.TrimSpace(rest)
	}
	return listPairs(texts)
}

// parsePair reads ISL[|DEVIATION],OSL[|DEVIATION]:SHARE.
func parsePair(s string) (p Pair, err error) {
	lengths, share, ok := strings.Cut(s, ":")
	if !ok {
		return p, errors.New("want ISL,OSL:SHARE, got no share")
	}
	input, output, ok := strings.Cut(lengths, ",")
	if !ok {
		return p, errors.New("want ISL,OSL:SHARE, got one length")
	}
	if p.Input, err = parseNormal(input); err != nil {
		return p, fmt.Errorf("input length: %w", err)
	}
	if p.Output, err = parseNormal(output); err != nil {
		return p, fmt.Errorf("output length: %w", err)
	}
	if p.Weight, err = strconv.ParseFloat(strings.TrimSpace(share), 64); err != nil {
		return p, fmt.Errorf("share: want a number ≥ 0, got %q", strings.TrimSpace(share))
	}
	return p, nil
}

func parseNormal(s string) (n Normal, err error) {
	mean, deviation, ok := strings.Cut(strings.TrimSpace(s), "|")
	tokens, err := strconv.Atoi(strings.TrimSpace(mean))
	if err != nil {
		return n, fmt.Errorf("want an integer ≥ 1, got %q", mean)
	}
	n.Mean = float64(tokens)
	if ok {
		if n.Stddev, err = strconv.ParseFloat(strings.TrimSpace(deviation), 64); err != nil {
			return n, fmt.Errorf("want a number ≥ 0 as its standard deviation, got %q", deviation)
		}
	}
	return n, nil
}

func jsonPairs(s string) ([]Pair, error) {
	var file struct {
		Pairs []struct {
			ISL       *int     `json:"isl"`
			ISLStddev float64  `json:"isl_stddev"`
			OSL       *int     `json:"osl"`
			OSLStddev float64  `json:"osl_stddev"`
			Prob      *float64 `json:"prob"`
		} `json:"pairs"`
	}
	dec := json.NewDecoder(bytes.NewReader([]byte(s)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&file); err != nil {
		return nil, fmt.Errorf(`want {"pairs": [{"isl": 256, "osl": 128, "prob": 40}, …]}: %w`, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("want one JSON object, got more behind byte %d", dec.InputOffset())
	}
	var pairs []Pair
	for i, p := range file.Pairs {
		if p.ISL == nil || p.OSL == nil || p.Prob == nil {
			return nil, fmt.Errorf("pair %d: want isl, osl and prob, got not all of them", i+1)
		}
		pairs = append(pairs, Pair{
			Input: Normal{float64(*p.ISL), p.ISLStddev}, Output: Normal{float64(*p.OSL), p.OSLStddev}, Weight: *p.Prob,
		})
	}
	return pairs, nil
}

// checkPairs returns the faults, and the mean tokens of the longest pair.
func checkPairs(pairs []Pair) (longest float64, f fault.List) {
	if len(pairs) == 0 || len(pairs) > maxPairs {
		f.Add("", "want 1 to %d pairs, got %d", maxPairs, len(pairs))
		return 0, f
	}
	total := 0.0
	for i, p := range pairs {
		name := fmt.Sprintf("pair %d: ", i+1)
		p.Input.check(&f, name+"input length", name+"input length", 1, maxTokens)
		p.Output.check(&f, name+"output length", name+"output length", 1, maxTokens)
		f.If(!(p.Weight >= 0 && p.Weight <= 1e9), name+"share", "want 0 to 1e9, got %v", p.Weight)
		total += p.Weight
		longest = max(longest, p.Input.Mean+p.Output.Mean)
	}
	f.If(total == 0, "shares", "want one above 0, got none")
	if longest > 2*trace.MaxTokens {
		longest = 0 // its fault is reported above
	}
	return longest, f
}
