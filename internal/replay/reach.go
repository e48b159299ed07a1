package replay

import (
	"context"
	"errors"
	"time"

	"replayd/internal/measure"
	"replayd/internal/openai"
)

// A pastime says what ends a rest between two questions.
type pastime struct {
	until   time.Time       // zero: for ever
	soonest time.Time       // the rest ends here where a request goes well meanwhile; zero: that is nothing to it
	wake    <-chan struct{} // nil: nothing wakes
}

// rest waits, and asks for the models whenever nothing was heard of the target for 5 s. False: ctx is done.
func (t *Target) rest(ctx context.Context, p pastime) bool {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var well <-chan struct{}
	if !p.soonest.IsZero() {
		well = t.well
	}
	listed := time.Now()
	for {
		now := time.Now()
		if !p.until.IsZero() && !now.Before(p.until) {
			return true
		}
		next := t.made.Add(time.Duration(t.heardAt.Load()) + probeEvery)
		if soon := listed.Add(probeEvery); t.isUnclear() && soon.Before(next) {
			next = soon // whatever is sent
		}
		if !now.Before(next) {
			t.look(ctx)
			listed = time.Now()
			if ctx.Err() != nil {
				return false
			}
			continue
		}
		if !p.until.IsZero() && p.until.Before(next) {
			next = p.until
		}
		timer.Reset(next.Sub(now))
		select {
		case <-timer.C:
		case <-p.wake:
			return true
		case <-well:
			well = nil
			if p.soonest.Before(p.until) {
				p.until = p.soonest
			}
		case <-ctx.Done():
			return false
		}
	}
}

// look asks for the models, to know whether the target is reached. Another model has everything asked anew.
func (t *Target) look(ctx context.Context) {
	if changed, err := t.list(ctx); err == nil && changed {
		t.wake()
	}
}

func (t *Target) wake() {
	select {
	case t.again <- struct{}{}:
	default:
	}
}

// list asks for the models and takes what is said: whether the target is reached, and which model it serves.
func (t *Target) list(ctx context.Context) (changed bool, err error) {
	patience := t.client.Timeouts().Connect
	if patience == 0 {
		patience = probeTimeout
	}
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	models, err := t.client.Models(asking)
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case errors.Is(err, openai.ErrNotSent):
		t.heardAt.Store(int64(time.Since(t.made))) // nothing was, but this is no reason to ask at once
		return false, err
	case errors.Is(err, openai.ErrNoAnswer):
		t.misses(err.Error(), "")
		return false, err
	}
	t.reaches()
	if err != nil {
		return false, err
	}
	return t.choose(models)
}

// choose settles which model requests name. Where the list does not say, it stays the one that was.
func (t *Target) choose(models []openai.Model) (changed bool, err error) {
	m, err := t.client.Choose(models)
	t.mu.Lock()
	unclear, was := t.unclear, t.model
	t.unclear = err
	if err == nil {
		t.model = m.ID
	}
	t.mu.Unlock()
	news := err != nil && (unclear == nil || unclear.Error() != err.Error())
	switch {
	case news && was != "":
		t.log.Warn("the target's list of models is unclear: the model stays the one that was, asking again", "target", t.client.Name(), "model", was, "err", err)
	case news && t.Patient && errors.Is(err, openai.ErrSeveralModels):
		t.log.Error("the target's list of models is unclear: its workloads wait until it lists one, or a reload names one", "target", t.client.Name(), "err", err)
	case err == nil && unclear != nil:
		t.log.Info("the target's list of models is clear again", "target", t.client.Name(), "model", m.ID)
	}
	if err != nil {
		if was != "" {
			err = nil
		}
		return false, err
	}
	if was == "" {
		close(t.chosen)
	}
	if was != m.ID {
		t.named(m.ID)
	}
	return was != "" && was != m.ID, nil
}

func (t *Target) isUnclear() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.unclear != nil
}

// nameless is why requests cannot be made yet: the server lists several models, and none was known before. Nil where they can.
func (t *Target) nameless() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Patient && t.model == "" && errors.Is(t.unclear, openai.ErrSeveralModels) {
		return t.unclear
	}
	return nil
}

// heard notes from an ended request whether the target was reached.
func (t *Target) heard(req *measure.Request) {
	switch o := req.Outcome; {
	case o == measure.ConnectFailed || o == measure.TimeoutConnect:
		t.misses(req.Error, req.ID)
	case req.Status > 0 || len(req.Timeline.Chunks) > 0 || o == measure.OK || o == measure.HTTP5xx:
		t.reaches()
		if o == measure.OK && !t.Answer().Up { // while its own questions failed
			select {
			case t.well <- struct{}{}:
			default:
			}
		}
	}
}

// reads notes that some of an answer came. It is called for each read of a socket.
func (t *Target) reads(now time.Time) {
	if int64(now.Sub(t.made))-t.heardAt.Load() > int64(time.Second) {
		t.reaches()
	}
}

// reaches notes that an HTTP answer came. A server that was lost before may be another now, with another chat template.
func (t *Target) reaches() {
	t.heardAt.Store(int64(time.Since(t.made)))
	t.mu.Lock()
	came := t.lost
	t.lost, t.answer.Reached = false, true
	t.mu.Unlock()
	if came {
		t.wake()
	}
}

// misses notes that a request, or a question of our own without an id, did not reach it.
func (t *Target) misses(why, id string) {
	t.heardAt.Store(int64(time.Since(t.made)))
	t.mu.Lock()
	was := t.answer.Up
	t.lost, t.answer.Reached = true, false
	if was {
		t.answer.Up, t.answer.Text = false, why
	}
	t.mu.Unlock()
	if was {
		t.log.Warn("the target is lost: it cannot be reached", "target", t.client.Name(), "id", id, "err", why)
	}
}
