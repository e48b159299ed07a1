package measure

import (
	"math"
	"testing"
	"time"
)

// What came with the first content, in one read, has no time of its own: TPOT may then be anything up to a most. Chunks of one read have
// one time.
func TestMostTPOT(t *testing.T) {
	at := func(ms ...int) (chunks []time.Duration) {
		for _, one := range ms {
			chunks = append(chunks, time.Duration(one)*milli)
		}
		return chunks
	}
	ends := func(first, n int) (chunks []time.Duration) { // so many chunks in the first read, then one each 10 ms
		for i := range n {
			chunks = append(chunks, time.Duration(100+10*max(0, i-first+1))*milli)
		}
		return chunks
	}
	for name, c := range map[string]struct {
		tokens, opening int
		chunks          []time.Duration
		whole           bool
		least, most     float64 // ms; 0: not defined
	}{
		"one token":                         {1, 0, at(100), false, 0, 0},
		"each token in a read":              {5, 0, at(100, 110, 120, 130, 140), false, 10, 0},
		"two tokens":                        {2, 0, at(100, 110), false, 10, 0},
		"all in one read":                   {5, 0, at(100, 100, 100, 100, 100), false, 0, 25},
		"all in one chunk":                  {5, 0, at(100), false, 0, 25},
		"all in one chunk, that is known":   {5, 5, at(100), false, 0, 0}, // nothing was decoded after it
		"not streamed":                      {5, 0, at(100), true, 0, 0},
		"two of five with the first":        {5, 0, at(100, 100, 120, 130, 140), false, 10, 35},
		"five of 100":                       {100, 0, ends(5, 100), false, 950.0 / 99, 0},
		"six of 100":                        {100, 0, ends(6, 100), false, 940.0 / 99, 1040.0 / 99},
		"groups of ten, the first alone":    {91, 0, at(100, 200, 300, 400, 500, 600, 700, 800, 900, 1000), false, 10, 0},
		"groups of ten, two with the first": {100, 0, at(100, 100, 300, 400, 500, 600, 700, 800, 900, 1000), false, 900.0 / 99, 1000.0 / 99},
		"later reads hold several":          {5, 0, at(100, 110, 130, 130, 130), false, 7.5, 0},
	} {
		r := &Request{Outcome: OK, Usage: Usage{Output: c.tokens, Opening: c.opening}, Timeline: Timeline{Chunks: c.chunks, Whole: c.whole}}
		v := r.Values()
		for what, got := range map[string][2]float64{"TPOT": {v[TPOT], c.least}, "the most": {v[MostTPOT], c.most}} {
			if want := got[1]; math.IsNaN(got[0]) != (want == 0) || want > 0 && math.Abs(got[0]-want) > 1e-9 {
				t.Errorf("%s: %s is %v, want %v", name, what, got[0], want)
			}
		}
		tpot, defined := r.TPOT()
		most, unclear := r.MostTPOT()
		if defined != (c.least > 0) || unclear != (c.most > 0) || defined && unclear && most <= tpot {
			t.Errorf("%s: TPOT %v, %v; most %v, %v", name, tpot, defined, most, unclear)
		}
	}
}

// A bound between the two ends of TPOT is neither kept nor broken, unless another bound decides.
func TestNotJudged(t *testing.T) {
	buffered := answered(OK, 100*milli, 100*milli, 120*milli, 130*milli, 140*milli) // TPOT 10 to 35 ms
	exact := answered(OK, 100*milli, 110*milli, 120*milli)
	for slo, want := range map[string]struct{ good, judged, exact bool }{
		"":                                     {true, true, true},
		"tpot:9ms":                             {false, true, false},
		"tpot:10ms":                            {false, false, true},
		"tpot:34ms":                            {false, false, true},
		"tpot:35ms":                            {true, true, true},
		"time_to_second_token:10ms":            {false, false, true}, // it came with the first, of which only TTFT is known
		"time_to_second_token:99ms":            {false, false, true},
		"time_to_second_token:100ms":           {true, true, true},
		"ttft:99ms":                            {false, true, false},
		"ttft:100ms":                           {true, true, true},
		"tpot:20ms,ttft:99ms":                  {false, true, false},
		"tpot:20ms,ttft:100ms":                 {false, false, true},
		"output_token_throughput_per_user:20":  {true, true, true},
		"output_token_throughput_per_user:50":  {false, false, true},
		"output_token_throughput_per_user:101": {false, true, false},
	} {
		bounds, err := ParseSLO(slo)
		if err != nil {
			t.Fatal(err)
		}
		v := buffered.Values()
		if good, judged := bounds.Good(OK, &v); good != want.good || judged != want.judged {
			t.Errorf("%s: good %v, judged %v, want %+v", slo, good, judged, want)
		}
		v = exact.Values()
		if good, judged := bounds.Good(OK, &v); good != want.exact || !judged {
			t.Errorf("%s, exact: good %v, judged %v", slo, good, judged)
		}
		if good, judged := bounds.Good(Truncated, &v); good || !judged {
			t.Errorf("%s, failed: good %v, judged %v", slo, good, judged)
		}
	}
}
