package daemon

import (
	"context"
	"slices"
	"sync"
	"time"

	"replayd/internal/scrape"
)

const (
	pagesWithin = 2 * time.Second // longest wait for the engines' pages before the first request, and after the last
	stopWithin  = endWithin / 4   // the same after a stop, which waits only endWithin for all that is left
)

// runPages reads the pages of a run's engines before the first request of its plan and after its last end, and gives
// samples to its sampler between the two. So the engines' counts grow by those of the run's requests and of no others
// of this process: not by those of the probe and the warm-up.
type runPages struct {
	once *Once
	of   *Generation

	first   sync.Once
	running sync.WaitGroup
	wait    context.CancelFunc // ends the wait for an epoch; nil: there is none
	stop    context.CancelFunc // ends the sampling; nil: it has not begun
}

// begin reads the pages before the first request, and begins the sampling. It waits until ctx is done, at most
// pagesWithin.
func (p *runPages) begin(ctx context.Context) {
	if p.once.Sampler == nil {
		return
	}
	p.first.Do(func() {
		p.settle(ctx, pagesWithin, nil)
		p.take()
		sampling, stop := context.WithCancel(context.WithoutCancel(ctx))
		p.stop = stop
		p.running.Go(func() {
			scrape.Every(sampling, p.once.SampleEvery, func() time.Duration {
				p.take()
				return p.once.SampleEvery
			})
		})
	})
}

// beginBy begins before the first epoch, if the configuration has one: such a plan waits for nothing.
func (p *runPages) beginBy(ctx context.Context) {
	var epoch time.Time
	for _, w := range p.of.workloads {
		if e := w.config.Epoch; !e.IsZero() && (epoch.IsZero() || e.Before(epoch)) {
			epoch = e
		}
	}
	if p.once.Sampler == nil || epoch.IsZero() {
		return
	}
	before, cancel := context.WithDeadline(ctx, epoch)
	p.wait = cancel
	p.running.Go(func() {
		for _, w := range p.of.workloads {
			select {
			case <-w.server.watch.Settled():
			case <-before.Done():
			}
		}
		p.begin(before)
	})
}

// end ends the sampling, and reads the pages after the last end. A stop ends the reading at once. After a stop each
// page is read only once, until hard is cancelled.
func (p *runPages) end(ctx, hard context.Context) {
	if p.wait != nil {
		p.wait()
	}
	p.first.Do(func() {}) // no sampling begins any more
	if p.stop != nil {
		p.stop()
	}
	p.running.Wait()
	if p.stop == nil && p.once.Hold == 0 {
		return // no output has it
	}
	if p.stop != nil {
		p.take()
	}
	if ctx.Err() == nil {
		p.settle(ctx, pagesWithin, nil)
	} else {
		p.settle(hard, stopWithin, ctx.Done())
	}
	if p.stop != nil {
		p.once.Sampler.End(p.once.Engines.Values())
	}
	for _, s := range p.of.scrapers {
		if s.engine != nil {
			s.engine.Keep()
		}
	}
}

func (p *runPages) take() {
	p.once.Sampler.Take(slices.Concat(p.once.Engines.Values(), p.once.GPUs.Values()))
}

// settle reads the pages of all engines until their counts stand still, at most within a time.
func (p *runPages) settle(ctx context.Context, within time.Duration, stop <-chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var all sync.WaitGroup
	for _, s := range p.of.scrapers {
		if s.engine != nil {
			all.Go(func() { s.engine.Settle(ctx, stop) })
		}
	}
	all.Wait()
}
