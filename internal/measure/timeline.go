package measure

import (
	"iter"
	"time"
)

// TTFT returns the time to first token: first content chunk − start of the write. ok is false if no content was received,
// and for an answer that is not streamed.
func (r *Request) TTFT() (time.Duration, bool) {
	c := r.chunks()
	if r.Timeline.Whole || len(c) == 0 {
		return 0, false
	}
	return c[0], true
}

// chunks returns the arrivals from which latencies follow; none if the first one cannot be right.
func (r *Request) chunks() []time.Duration {
	if r.Timeline.Early {
		return nil
	}
	return r.Timeline.Chunks
}

// TTFAT returns the time to first answer token: first content chunk that is not reasoning − start of the write. It equals TTFT for an
// answer without reasoning. ok is false if there is no such chunk, and for an answer that is not streamed.
func (r *Request) TTFAT() (time.Duration, bool) {
	c := r.chunks()
	if r.Timeline.Whole || len(c) <= r.Timeline.ReasoningChunks {
		return 0, false
	}
	return c[r.Timeline.ReasoningChunks], true
}

// SecondToken returns second content chunk − first content chunk. ok is false if there is no second one, and if both came in one
// read, which has one time for both.
func (r *Request) SecondToken() (time.Duration, bool) {
	c := r.chunks()
	if len(c) < 2 || c[1] == c[0] {
		return 0, false
	}
	return c[1] - c[0], true
}

// TTFTFromDue returns first content chunk − due instant: the wait of a user of the real system. ok is false if
// that of TTFT is.
func (r *Request) TTFTFromDue() (time.Duration, bool) {
	return r.fromDue(r.TTFT())
}

// E2E returns last content chunk − start of the write. For an answer that is not streamed, the last chunk is its last byte.
// ok is false if no content was received.
func (r *Request) E2E() (time.Duration, bool) {
	c := r.chunks()
	if len(c) == 0 {
		return 0, false
	}
	return c[len(c)-1], true
}

// E2EFromDue returns last content chunk − due instant. ok is false if no content was received.
func (r *Request) E2EFromDue() (time.Duration, bool) {
	return r.fromDue(r.E2E())
}

// fromDue converts a time since the write to a time since the due instant. The difference of the two instants is taken from
// their monotonic readings, so that a step of the wall clock has no effect.
func (r *Request) fromDue(sinceWrite time.Duration, defined bool) (time.Duration, bool) {
	if !defined {
		return 0, false
	}
	return r.Timeline.Write.Sub(r.Timeline.Due) + sinceWrite, true
}

// TPOT returns the time per output token: (last content − first content) / (output tokens − those of the first content chunk),
// truncated to nanoseconds. The first chunk has 1 token unless Usage.Opening says otherwise. ok is false if no token came after
// the read that had it, as in an answer that is not streamed: 0 would mean an infinite rate.
func (r *Request) TPOT() (time.Duration, bool) {
	c := r.chunks()
	n := len(c)
	if n < 2 || r.Usage.Decoded() < 1 || c[n-1] == c[0] {
		return 0, false
	}
	return (c[n-1] - c[0]) / time.Duration(r.Usage.Decoded()), true
}

// MostTPOT returns the longest possible time per output token: (last content − write) / the same tokens. TPOT is the shortest one
// then. ok is true if the read with the first content held several chunks and over 5 % of the tokens, because no clock tells how long
// those tokens took. The first chunk counts as one token, since engines send the prefill's token alone; a later chunk counts as the mean.
func (r *Request) MostTPOT() (most time.Duration, ok bool) {
	chunks := r.chunks()
	if len(chunks) == 0 || r.Timeline.Whole || r.Usage.Decoded() < 1 {
		return 0, false
	}
	read := 1 // content chunks that came with the first one
	for read < len(chunks) && chunks[read] == chunks[0] {
		read++
	}
	tokens := 1 + (read-1)*max(1, r.Usage.Output/len(chunks))
	if read < len(chunks) && (read == 1 || 20*tokens <= r.Usage.Output) {
		return 0, false
	}
	return chunks[len(chunks)-1] / time.Duration(r.Usage.Decoded()), true
}

// ITL yields the time between each content chunk and the previous one, if they came in different reads: all chunks of one read have
// the same time. A chunk can hold several tokens.
func (r *Request) ITL() iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		c := r.chunks()
		for i := 1; i < len(c); i++ {
			if c[i] != c[i-1] && !yield(c[i]-c[i-1]) {
				return
			}
		}
	}
}

// Sent reports whether the write of the request began. A request that was not sent has no lateness.
func (r *Request) Sent() bool { return !r.Timeline.Write.IsZero() }

// Lateness returns start of the write − max(due, end of the session wait) − the time to open the request's connection. That time is
// left out because the server takes part in it. Lateness is never negative.
func (r *Request) Lateness() time.Duration {
	return max(0, r.Timeline.Write.Sub(r.Timeline.Ready)-r.Timeline.Connect)
}

// LaneWait returns the part of the lateness that was spent waiting for a free lane; 0 if a lane was free.
func (r *Request) LaneWait() time.Duration {
	if !r.Timeline.Waited {
		return 0
	}
	return max(0, r.Timeline.Lane.Sub(r.Timeline.Ready))
}

// SessionWait returns how long the previous turn and its delay held the request back after its due instant; 0 if they did
// not.
func (r *Request) SessionWait() time.Duration { return max(0, r.Timeline.Ready.Sub(r.Timeline.Due)) }
