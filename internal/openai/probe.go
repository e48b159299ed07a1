package openai

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"replayd/internal/measure"
)

// probeTimeout bounds one probe request if the target has no timeout for it.
const probeTimeout = 5 * time.Second

// A Probe finds out whether a target is reached, its model and the tokens that its chat template adds, by small requests of its own
// and from the outcomes of the load. The caller decides when to ask, on one goroutine; all other methods are safe for concurrent use.
// Set the fields before the first use.
type Probe struct {
	Client   *Client
	Template bool               // measure the tokens that the chat template adds
	Patient  bool               // the load waits if the server lists several models and none was known before
	Named    func(model string) // called with the model's name each time it is found
	Log      *slog.Logger

	overhead atomic.Int64

	mu      sync.Mutex
	answer  Answer
	lost    bool   // the latest request or probe did not reach the target
	model   string // that requests name; "" before the first answer
	unclear error  // why the latest list of models determines no model; nil: it does
}

// An Answer is the result of the latest probe of a target.
type Answer struct {
	Reached bool   // the latest request or probe got an HTTP answer
	Up      bool   // the latest probe was answered as expected, and requests reach the target
	Text    string // in words: the model, or why not; "" before the first answer or failure
}

// News is the result of one probe or request.
type News struct {
	Heard   bool // it is known whether the target is reached
	Back    bool // the target answers after it was lost: it may be another server with another chat template
	Chosen  bool // the model is known for the first time
	Changed bool // the target serves another model than before
	Well    bool // a request ended ok while the probes failed
}

// Answer returns the result of the latest probe.
func (p *Probe) Answer() Answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answer
}

// Model returns the name of the model that the target served last; "" before it is known.
func (p *Probe) Model() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.model
}

// Overhead returns the number of template tokens measured last; 0: not measured yet.
func (p *Probe) Overhead() int { return int(p.overhead.Load()) }

// Unclear returns why the latest list of models determines no model; nil: it does.
func (p *Probe) Unclear() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unclear
}

// Nameless returns why requests cannot be built yet: the server lists several models, and none was known before. nil: they can.
func (p *Probe) Nameless() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Patient && p.model == "" && errors.Is(p.unclear, ErrSeveralModels) {
		return p.unclear
	}
	return nil
}

// Ask requests the list of models. If that fails, the target is not up.
func (p *Probe) Ask(ctx context.Context) (News, error) {
	news, err := p.Look(ctx)
	if err != nil {
		p.fails(err)
	}
	return news, err
}

// Look requests the list of models, too, but an error does not change Up.
func (p *Probe) Look(ctx context.Context) (News, error) {
	patience := p.Client.Timeouts().Connect
	if patience == 0 {
		patience = probeTimeout
	}
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	models, err := p.Client.Models(asking)
	switch {
	case ctx.Err() != nil:
		return News{}, ctx.Err()
	case errors.Is(err, ErrNotSent):
		return News{Heard: true}, err // nothing was, but this is no reason to ask at once
	case errors.Is(err, ErrNoAnswer):
		return p.misses(err.Error(), ""), err
	}
	news := p.Answered()
	if err == nil {
		news.Chosen, news.Changed, err = p.choose(models)
	}
	return news, err
}

// choose sets the model that requests name. An unclear list keeps the model before.
func (p *Probe) choose(models []Model) (first, changed bool, err error) {
	m, err := p.Client.Choose(models)
	p.mu.Lock()
	unclear, was := p.unclear, p.model
	p.unclear = err
	if err == nil {
		p.model = m.ID
	}
	p.mu.Unlock()
	p.tellUnclear(err, unclear, was)
	switch {
	case err != nil && was != "":
		return false, false, nil
	case err != nil:
		return false, false, err
	case unclear != nil:
		p.Log.Info("the target lists one model again", "target", p.Client.Name(), "model", m.ID)
	}
	if was != m.ID {
		p.Named(m.ID)
	}
	return was == "", was != "" && was != m.ID, nil
}

// tellUnclear logs why a list of models is unclear, unless the list before was unclear for the same reason.
func (p *Probe) tellUnclear(err, before error, model string) {
	switch {
	case err == nil || before != nil && before.Error() == err.Error():
	case model != "":
		p.Log.Warn("the target lists several models or none: keeping the model, retrying", "target", p.Client.Name(), "model", model, "err", err)
	case p.Patient && errors.Is(err, ErrSeveralModels):
		p.Log.Error("the target lists several models or none: its workloads wait until it lists one, or a reload names one", "target", p.Client.Name(), "err", err)
	}
}

// Measure measures the template's tokens if Template is set. If that fails, the target is not up.
func (p *Probe) Measure(ctx context.Context) error {
	if err := p.measure(ctx); err != nil {
		p.fails(err)
		return err
	}
	p.mu.Lock()
	before, model := p.answer, p.model
	p.answer.Up, p.answer.Text = true, model
	p.mu.Unlock()
	if !before.Up {
		p.Log.Info("the target answers", "target", p.Client.Name(), "model", model)
	}
	return nil
}

func (p *Probe) measure(ctx context.Context) error {
	if !p.Template {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	n, err := p.Client.Overhead(ctx)
	if err != nil {
		return err
	}
	if old := p.overhead.Swap(int64(n)); old != int64(n) {
		p.Log.Info("chat template measured", "target", p.Client.Name(), "tokens", n, "previous_tokens", old)
	}
	return nil
}

// fails records why the target cannot be used now.
func (p *Probe) fails(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer.Up, p.answer.Text = false, err.Error()
}

// Ended updates whether the target is reached from a request that has ended.
func (p *Probe) Ended(req *measure.Request) News {
	switch o := req.Outcome; {
	case o == measure.ConnectFailed || o == measure.TimeoutConnect:
		return p.misses(req.Error, req.ID)
	case req.Status > 0 || len(req.Timeline.Chunks) > 0 || o == measure.OK || o == measure.HTTP5xx:
		news := p.Answered()
		news.Well = o == measure.OK && !p.Answer().Up
		return news
	}
	return News{}
}

// Answered records that an HTTP answer, or a further part of one, came.
func (p *Probe) Answered() News {
	p.mu.Lock()
	defer p.mu.Unlock()
	back := p.lost
	p.lost, p.answer.Reached = false, true
	return News{Heard: true, Back: back}
}

// misses records that a request, or a probe, which has no id, did not reach the target.
func (p *Probe) misses(why, id string) News {
	p.mu.Lock()
	was := p.answer.Up
	p.lost, p.answer.Reached = true, false
	if was {
		p.answer.Up, p.answer.Text = false, why
	}
	p.mu.Unlock()
	if was {
		p.Log.Warn("the target is unreachable", "target", p.Client.Name(), "id", id, "err", why)
	}
	return News{Heard: true}
}
