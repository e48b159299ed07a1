package replay

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"replayd/internal/measure"
	"replayd/internal/openai"
	"replayd/internal/secret"
)

// probeTimeout bounds one probe request if the target has no timeout for it.
const probeTimeout = 5 * time.Second

// probe lists the models and measures the template. It returns an error only if further probes would not help.
func (t *Target) probe(ctx context.Context) error {
	t.mu.Lock()
	t.health.begin(time.Now())
	t.mu.Unlock()
	token, err := false, t.list(ctx)
	if err == nil {
		t.mu.Lock()
		t.health.again = false // this probe serves it too
		t.mu.Unlock()
		token, err = t.Template, t.measure(ctx)
	}
	several := errors.Is(err, openai.ErrSeveralModels)
	switch {
	case ctx.Err() != nil:
		return nil
	case err == nil:
		t.see(probePassed, "", "")
	default:
		if _, own := errors.AsType[openai.LackError](err); !own { // what this process lacks says nothing of the target
			t.see(probeFailed, t.Client.Redact(err.Error()), "")
		}
		if several && !t.Patient {
			return err
		}
	}
	t.mu.Lock()
	t.health.end(time.Now(), err != nil, token)
	failures := t.health.failures
	t.mu.Unlock()
	if failures == 1 && !several { // list has logged that
		t.Log.Warn("the target does not answer as expected, retrying", "err", err)
	}
	if err == nil || failures >= probeTries || several {
		t.start()
	}
	return nil
}

// list lists the models, which shows whether the target is reached, and sets the model that requests name.
func (t *Target) list(ctx context.Context) error {
	asking, cancel := context.WithTimeout(ctx, cmp.Or(t.Client.Target().Timeouts.Connect, probeTimeout))
	defer cancel()
	models, err := t.Client.Models(asking)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, openai.ErrNotSent):
		t.newsAt.Store(int64(time.Since(t.made))) // there is none, but this is no reason to ask at once
	case errors.Is(err, openai.ErrNoAnswer):
		t.see(gotNothing, t.Client.Redact(err.Error()), "")
	default:
		t.see(gotAnswer, "", "")
	}
	if err == nil {
		err = t.choose(models)
	}
	t.mu.Lock()
	t.health.listed = time.Now()
	t.mu.Unlock()
	return err
}

// choose sets the model that requests name. An unclear list keeps the model before.
func (t *Target) choose(models []openai.Model) error {
	m, err := t.Client.Choose(models)
	t.mu.Lock()
	unclear, before := t.unclear, t.model
	t.unclear = err
	if err == nil {
		t.model = m.ID
		t.health.again = t.health.again || before != m.ID
	}
	t.mu.Unlock()
	t.logUnclear(err, unclear, before)
	switch {
	case err != nil && before != "":
		return nil
	case err != nil:
		return err
	case unclear != nil:
		t.Log.Info("the target lists one model again", "model", m.ID)
	}
	if why, wanted := t.Client.NotExact(); wanted && why != t.inexact {
		t.inexact = why
		if why != "" {
			t.Log.Warn("exact lengths are not asked for", "reason", why)
		}
	}
	if before != m.ID {
		t.Named(string(m.ID))
	}
	if before == "" {
		close(t.modelKnown)
	}
	return nil
}

// logUnclear logs why a list of models is unclear, unless the list before was unclear for the same reason.
func (t *Target) logUnclear(err, before error, model secret.Text) {
	switch {
	case err == nil || before != nil && before.Error() == err.Error():
	case model != "":
		t.Log.Warn("the target lists several models or none: keeping the model, retrying", "model", model, "err", err)
	case t.Patient && errors.Is(err, openai.ErrSeveralModels):
		t.Log.Error("the target lists several models or none: its workloads wait until it lists one, or a reload names one",
			"err", err)
	}
}

// measure measures the template's tokens if Template is set.
func (t *Target) measure(ctx context.Context) error {
	if !t.Template {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	n, err := t.Client.Overhead(ctx)
	if err != nil {
		return err
	}
	if old := t.tokens.Swap(int64(n)); old != int64(n) {
		t.Log.Info("chat template measured", "tokens", n, "previous_tokens", old)
	}
	return nil
}

// ended takes a request that has ended. Some are no event: an answer that came too late, for example.
func (t *Target) ended(req *measure.Request) {
	if t.Client.Untyped() && !t.noType.Swap(true) {
		t.Log.Warn("the target answers without a Content-Type: its answers are read as the type that was asked for")
	}
	if t.Client.Withheld() && !t.secure.Swap(true) {
		t.Log.Warn("a cookie of the target's answers is not sent back: it is Secure, and the target's address is http")
	}
	switch _, fault := t.Client.TLSFiles(); {
	case fault != nil && !t.badTLS.Swap(true):
		t.Log.Warn("the target's certificates cannot be used: new connections have those that were read before", "err", fault)
	case fault == nil && t.badTLS.Swap(false):
		t.Log.Info("the target's certificates are read again")
	}
	switch o := req.Outcome; {
	case o.Unreached():
		t.see(gotNothing, req.Error, req.ID)
	case req.Status == http.StatusNotFound:
		t.see(gotNotFound, "", "")
	case o == measure.OK:
		t.see(gotOK, "", "")
	case req.Status > 0 || len(req.Timeline.Chunks) > 0 || o == measure.HTTP5xx:
		t.see(gotAnswer, "", "")
	}
}

// read takes a part of an answer. It is called for each read of a socket.
func (t *Target) read(now time.Time) {
	if int64(now.Sub(t.made))-t.newsAt.Load() > int64(time.Second) {
		t.see(gotAnswer, "", "")
	}
}

// see takes an event and logs the changes of state. For an event that makes the target unusable, why is the reason and
// id the request, if it is one.
func (t *Target) see(e targetEvent, why secret.Text, id string) {
	t.mu.Lock()
	before := t.health.state
	sooner := t.health.see(e)
	after, model := t.health.state, t.model
	switch {
	case e == probeFailed || before == up && after == down:
		t.text = why
	case e == probePassed && after == up:
		t.text = model
	}
	t.mu.Unlock()
	if e != probePassed && e != probeFailed {
		t.newsAt.Store(int64(time.Since(t.made)))
	}
	switch {
	case before == up && after == down:
		t.Log.Warn("the target is unreachable", "id", id, "err", why)
	case before != up && after == up:
		t.Log.Info("the target answers", "model", model)
	}
	if sooner {
		wake(t.sooner)
	}
}
