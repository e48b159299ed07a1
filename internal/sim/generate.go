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
	if x.cached = x.seat.cached; e.batch.cache.room > 0 {
		e.page.queries.Add(float64(x.request.tokens))
		e.page.hits.Add(float64(x.cached))
	}
	if x.request.stream && x.api == chat {
		x.buf = x.answer.role(x.buf[:0])
		if err := x.flush(); err != nil {
			return err
		}
	}
	if e.batch.isShared() {
		if err := x.step(ctx); err != nil {
			return err
		}
	} else {
		x.due = e.batch.PrefillEnds(x.seat)
		if err := x.wait(ctx); err != nil {
			return err
		}
		e.batch.Prefilled(x.seat, x.due)
	}
	e.page.promptTokens.Add(float64(x.request.tokens))
	x.first = time.Now()
	x.last = x.first
	return nil
}

// decode produces the tokens of the answer and its fault.
func (x *exchange) decode(ctx context.Context) (outcome string, err error) {
	var gap time.Duration
	shared := x.engine.batch.isShared()
	for x.sent < x.length {
		tokens := 1
		if x.sent > 0 {
			tokens = min(x.engine.options.ChunkTokens, x.length-x.sent)
			if err := x.pass(ctx, gap, tokens); err != nil {
				return "", err
			}
		}
		before := x.sent
		x.sent += tokens
		if !shared {
			gap = x.engine.batch.Decoded(x.seat, tokens)
		}
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

// pass waits until further tokens are ready: a gap for each, or with shared steps a step for each.
func (x *exchange) pass(ctx context.Context, gap time.Duration, tokens int) error {
	if !x.engine.batch.isShared() {
		x.due = x.due.Add(gap * time.Duration(tokens))
		return x.wait(ctx)
	}
	for range tokens {
		if err := x.step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (x *exchange) step(ctx context.Context) error {
	for {
		if at, ok := x.engine.batch.next(x.seat); ok {
			x.due = at
			return nil
		}
		select {
		case <-x.seat.wake:
		case <-ctx.Done():
			return errLeft
		}
	}
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
