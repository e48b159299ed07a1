package sim

import (
	"context"
	"time"
)

// prefill waits for a slot, then for the first token.
func (x *exchange) prefill(ctx context.Context) error {
	e := x.engine
	select {
	case <-x.seat.granted:
	case <-ctx.Done():
		return errLeft
	}
	if e.cache.room > 0 {
		e.page.queries.Add(float64(x.request.tokens))
		usable := (x.request.tokens - 1) / e.options.BlockTokens // the last token is always computed
		x.cached = e.options.BlockTokens * e.cache.lookup(x.request.keys[:usable])
		e.page.hits.Add(float64(x.cached))
	}
	if x.request.stream && x.api == chat {
		x.buf = x.answer.role(x.buf[:0])
		if err := x.flush(); err != nil {
			return err
		}
	}
	x.due = x.seat.began.Add(e.options.prefill(x.request.tokens - x.cached))
	if err := x.wait(ctx); err != nil {
		return err
	}
	e.cache.store(x.request.keys)
	e.batch.prefilled(x.seat, x.due, x.request.tokens)
	e.page.promptTokens.Add(float64(x.request.tokens))
	x.first = time.Now()
	x.last = x.first
	return nil
}

// decode produces the tokens of the answer and its fault.
func (x *exchange) decode(ctx context.Context) (outcome string, err error) {
	var gap time.Duration
	for x.sent < x.length {
		tokens := 1
		if x.sent > 0 {
			tokens = min(x.engine.options.ChunkTokens, x.length-x.sent)
			x.due = x.due.Add(gap * time.Duration(tokens))
			if err := x.wait(ctx); err != nil {
				return "", err
			}
		}
		before := x.sent
		x.sent += tokens
		gap = x.engine.batch.decoded(x.seat, tokens)
		x.token(tokens)
		half := 2*before < x.length && 2*x.sent >= x.length // true once
		outcome, err = x.put(ctx, tokens, half)
		if err != nil {
			x.sent = before // the tokens were not written
		}
		if outcome != "" || err != nil {
			return outcome, err
		}
	}
	return x.finish()
}

// token counts tokens that are ready on vLLM's page.
func (x *exchange) token(tokens int) {
	p, now := x.engine.page, time.Now()
	p.generated.Add(float64(tokens))
	if x.sent == tokens {
		p.ttft.Observe(x.first.Sub(x.arrival).Seconds())
	} else {
		each := now.Sub(x.last).Seconds() / float64(tokens)
		for range tokens {
			p.itl.Observe(each)
		}
	}
	x.last = now
}

// wait sleeps until x.due.
func (x *exchange) wait(ctx context.Context) error {
	d := time.Until(x.due)
	if d <= 0 {
		if ctx.Err() != nil {
			return errLeft
		}
		return nil
	}
	x.timer.Reset(d)
	select {
	case <-x.timer.C:
		return nil
	case <-ctx.Done():
		x.timer.Stop()
		return errLeft
	}
}
