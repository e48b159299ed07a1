package sim

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
)

// Outcomes in the log: how a request ended, as the server knows it.
const (
	OK              = "ok"
	FaultError500   = "error_500"
	FaultError429   = "error_429"
	FaultCut        = "cut"
	FaultGarbled    = "garbled"
	FaultEmpty      = "empty"
	FaultStalled    = "stalled"
	FaultErrorEvent = "error_event"
	FaultAbort      = "abort"
	Refused         = "refused"    // a bad request: 400, 404, 413
	QueueFull       = "queue_full" // 503
	Gone            = "gone"       // the client left before its answer was complete
)

// meanAnswer is the mean length, in tokens, of an answer that may end by itself. Published chat traces have 200 to 350.
const meanAnswer = 256

type faultShare struct {
	field   string
	outcome string
	share   float64
}

// shares lists the faults in the order in which pick divides the unit interval.
func (f Faults) shares() [8]faultShare {
	return [8]faultShare{
		{"Error500", FaultError500, f.Error500},
		{"Error429", FaultError429, f.Error429},
		{"Cut", FaultCut, f.Cut},
		{"Garbled", FaultGarbled, f.Garbled},
		{"Empty", FaultEmpty, f.Empty},
		{"Stalled", FaultStalled, f.Stalled},
		{"ErrorEvent", FaultErrorEvent, f.ErrorEvent},
		{"Abort", FaultAbort, f.Abort},
	}
}

// pick returns the fault at u, which is uniform in [0, 1), or OK.
func (f Faults) pick(u float64) string {
	for _, s := range f.shares() {
		if u < s.share {
			return s.outcome
		}
		u -= s.share
	}
	return OK
}

// draws returns a random generator for one request. It depends on the request's id and not on the order of arrival, so
// that concurrent runs can be repeated.
func draws(seed uint64, id string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id)) // a hash.Hash never fails
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// answerLength draws the length at which a model would stop by itself: geometric, at least 1, with mean meanAnswer.
func answerLength(r *rand.Rand) int {
	return 1 + int(math.Log(1-r.Float64())/math.Log(1-1.0/meanAnswer))
}
