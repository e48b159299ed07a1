package synth

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestParsePairs(t *testing.T) {
	two := []Pair{{Normal{256, 0}, Normal{128, 0}, 40}, {Normal{512, 0}, Normal{256, 0}, 60}}
	wide := []Pair{{Normal{256, 10}, Normal{128, 5.5}, 60}, {Normal{512, 20}, Normal{256, 0}, 0.5}}
	for _, c := range []struct {
		in   string
		want []Pair
	}{
		{"256,128:40;512,256:60", two},
		{" 256 , 128 : 40 ; 512,256:60; ", two},
		{"[(256,128):40,(512,256):60]", two},
		{"[ ( 256 , 128 ) : 40 , (512,256):60 ]", two},
		{`{"pairs": [{"isl": 256, "osl": 128, "prob": 40}, {"isl": 512, "osl": 256, "prob": 60}]}`, two},
		{"256|10,128|5.5:60;512|20,256:.5", wide},
		{"[(256|10,128|5.5):60,(512|20,256|0):0.5]", wide},
		{`{"pairs": [{"isl": 256, "isl_stddev": 10, "osl": 128, "osl_stddev": 5.5, "prob": 60},
			{"isl": 512, "isl_stddev": 20, "osl": 256, "prob": 0.5}]}`, wide},
		{"1,1:0;2,2:1", []Pair{{Normal{1, 0}, Normal{1, 0}, 0}, {Normal{2, 0}, Normal{2, 0}, 1}}},
	} {
		got, err := ParsePairs(c.in)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, %v; want %v", c.in, got, err, c.want)
		}
	}
}

func TestParsePairsNamesThePart(t *testing.T) {
	for in, want := range map[string]string{
		"":                                 "want 1 to 10000 pairs, got 0",
		";":                                "want 1 to 10000 pairs, got 0",
		"[]":                               "want 1 to 10000 pairs, got 0",
		"256,128:40;512,256":               `pair 2, "512,256": want ISL,OSL:SHARE, got no share`,
		"256:40":                           `pair 1, "256:40": want ISL,OSL:SHARE, got one length`,
		"256,x:40":                         `pair 1, "256,x:40": output length: want an integer ≥ 1, got "x"`,
		"2.5,1:40":                         `pair 1, "2.5,1:40": input length: want an integer ≥ 1, got "2.5"`,
		"256|z,128:40":                     `pair 1, "256|z,128:40": input length: want a number ≥ 0 as its standard deviation, got "z"`,
		"256,128:40%":                      `pair 1, "256,128:40%": share: want a number ≥ 0, got "40%"`,
		"256,0:40":                         "pair 1: output length: want a mean of 1 to 16777216, got 0",
		"0,9:40;9|-1,1:1":                  "pair 1: input length: want a mean of 1 to 16777216, got 0\npair 2: input length: want a standard deviation of 0 to 16777216, got -1",
		"256,128:-1":                       "pair 1: share: want 0 to 1e9, got -1",
		"256,128:NaN":                      "pair 1: share: want 0 to 1e9, got NaN",
		"1,1:0;2,2:0":                      "shares: want one above 0, got none",
		"[(256,128):40":                    `want a ] at the end, got "[(256,128):40"`,
		"[(256,128):40,512,256:60]":        `pair 2, "512,256:60": want (ISL,OSL):SHARE`,
		"[(256,128)40]":                    `pair 1, "256,12840": want ISL,OSL:SHARE, got no share`,
		`{"pairs": [{"isl": 1}]}`:          "pair 1: want isl, osl and prob, got not all of them",
		`{"pairs": []} 1`:                  "want one JSON object, got more behind byte 15",
		`{"pears": []}`:                    `want {"pairs": [{"isl": 256, "osl": 128, "prob": 40}, …]}: json: unknown field "pears"`,
		"99999999999999999999999999,1:100": `pair 1, "99999999999999999999999999,1:100": input length: want an integer ≥ 1, got "99999999999999999999999999"`,
	} {
		got, err := ParsePairs(in)
		if got != nil || err == nil || err.Error() != want {
			t.Errorf("%q: got %v, %v; want %s", in, got, err, want)
		}
	}
}

func FuzzParsePairs(f *testing.F) {
	f.Add("256|10,128|5:40;512,256:60")
	f.Add("[(256,128):40,(512,256):60]")
	f.Add(`{"pairs": [{"isl": 256, "osl": 128, "prob": 40}]}`)
	f.Fuzz(func(t *testing.T, in string) {
		pairs, err := ParsePairs(in)
		if err != nil {
			return
		}
		// Rows can be drawn from pairs that are accepted.
		s := Synthetic{Pairs: pairs}
		next := s.Rows()
		for range 3 {
			if r := next(); r.InputTokens < 1 || r.OutputTokens < 1 {
				t.Fatalf("%q: a row of %d and %d tokens", in, r.InputTokens, r.OutputTokens)
			}
		}
	})
}

// The share of each pair in 100,000 draws is within four standard deviations of the share of its weight.
func TestPairsAreDrawnByWeight(t *testing.T) {
	pairs := []Pair{{Weight: 0}, {Weight: 7}, {Weight: 0}, {Weight: 2}, {Weight: 1}, {Weight: 0}}
	const draws = 100_000
	rng := rand.New(rand.NewPCG(1, 2))
	count := map[*Pair]int{}
	for range draws {
		count[pick(pairs, rng)]++
	}
	for i := range pairs {
		p := pairs[i].Weight / 10
		if got := float64(count[&pairs[i]]) / draws; math.Abs(got-p) > 4*math.Sqrt(p*(1-p)/draws) {
			t.Errorf("pair %d: a share of %v, want %v", i, got, p)
		}
	}
}
