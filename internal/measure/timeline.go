package measure

import (
	"iter"
	"time"
)

// TTFT is the time to the first token: the first chunk with content − the start of the write. It is false when no
// content came, and of an answer in one piece, whose first token was not seen.
func (r *Request) TTFT() (time.Duration, bool) {
	if r.Timeline.Whole || len(r.Timeline.Chunks) == 0 {
		return 0, false
	}
	return r.Timeline.Chunks[0], true
}

// SecondToken is the second chunk with content − the first. It is false when there is none.
func (r *Request) SecondToken() (time.Duration, bool) {
	if len(r.Timeline.Chunks) < 2 {
		return 0, false
	}
	return r.Timeline.Chunks[1] - r.Timeline.Chunks[0], true
}

// TTFTFromDue is the first chunk with content − the due instant: what a user of the real system would have waited.
// It is false where TTFT is.
func (r *Request) TTFTFromDue() (time.Duration, bool) {
	return r.fromDue(r.TTFT())
}

// E2E is the last chunk with content − the start of the write; of an answer in one piece its last byte. It is false when
// no content came.
func (r *Request) E2E() (time.Duration, bool) {
	if len(r.Timeline.Chunks) == 0 {
		return 0, false
	}
	return r.Timeline.Chunks[len(r.Timeline.Chunks)-1], true
}

// E2EFromDue is the last chunk with content − the due instant. It is false when no content came.
func (r *Request) E2EFromDue() (time.Duration, bool) {
	return r.fromDue(r.E2E())
}

// fromDue moves a time since the write, where it is defined, to the due instant. The difference of the instants is taken from
// their monotonic readings, so a step of the wall clock does not show.
func (r *Request) fromDue(sinceWrite time.Duration, defined bool) (time.Duration, bool) {
	if !defined {
		return 0, false
	}
	return r.Timeline.Write.Sub(r.Timeline.Due) + sinceWrite, true
}

// TPOT is the time per output token: (last content − first content) / (output tokens − 1), cut to whole nanoseconds.
// It is false below 2 tokens, and where all of them came in one chunk, as in an answer in one piece: no interval was seen
// then, and 0 would claim an infinite rate.
func (r *Request) TPOT() (time.Duration, bool) {
	n := len(r.Timeline.Chunks)
	if n < 2 || r.Usage.Output < 2 {
		return 0, false
	}
	return (r.Timeline.Chunks[n-1] - r.Timeline.Chunks[0]) / time.Duration(r.Usage.Output-1), true
}

// ITL yields the gap between each content chunk and the one before. A chunk can hold several tokens.
func (r *Request) ITL() iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		for i := 1; i < len(r.Timeline.Chunks); i++ {
			if !yield(r.Timeline.Chunks[i] - r.Timeline.Chunks[i-1]) {
				return
			}
		}
	}
}

// Sent reports whether the write of the request began. Without that it has no lateness.
func (r *Request) Sent() bool { return !r.Timeline.Write.IsZero() }

// Lateness is the start of the write − max(due, end of the session wait), never negative.
func (r *Request) Lateness() time.Duration { return max(0, r.Timeline.Write.Sub(r.Timeline.Ready)) }

// LaneWait is the part of the lateness spent waiting for a free lane; 0 when one was free.
func (r *Request) LaneWait() time.Duration {
	if !r.Timeline.Waited {
		return 0
	}
	return max(0, r.Timeline.Lane.Sub(r.Timeline.Ready))
}

// SessionWait is how long after its due instant the turn before it (and its delay) held a request back; 0 when it did not.
func (r *Request) SessionWait() time.Duration { return max(0, r.Timeline.Ready.Sub(r.Timeline.Due)) }
