package replay

import (
	"context"
	"time"

	"replayd/internal/measure"
	"replayd/internal/openai"
)

// A pastime defines the end of the rest between two probes.
type pastime struct {
	until   time.Time       // zero: no end
	soonest time.Time       // the rest ends here if a request succeeds meanwhile; zero: a success does not end it
	wake    <-chan struct{} // nil: nothing wakes
}

// rest waits. It lists the models each time that there was no traffic for 5 s. It returns false if ctx is done.
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
		if soon := listed.Add(probeEvery); t.probe.Unclear() != nil && soon.Before(next) {
			next = soon // whatever the traffic
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

// look lists the models, to know whether the target is reachable. If the model has changed, the target is probed anew.
func (t *Target) look(ctx context.Context) {
	news, err := t.probe.Look(ctx)
	t.hear(news)
	if err == nil && news.Changed {
		t.wake()
	}
}

// heard takes the evidence of an ended request on whether the target is reachable.
func (t *Target) heard(req *measure.Request) { t.hear(t.probe.Ended(req)) }

// reads records that a part of an answer was received. It is called for each read of a socket.
func (t *Target) reads(now time.Time) {
	if int64(now.Sub(t.made))-t.heardAt.Load() > int64(time.Second) {
		t.hear(t.probe.Answered())
	}
}

// hear updates the time of the last evidence, and wakes goroutines that wait for the news.
func (t *Target) hear(n openai.News) {
	if n.Heard {
		t.heardAt.Store(int64(time.Since(t.made)))
	}
	if n.Chosen {
		close(t.chosen)
	}
	if n.Back {
		t.wake()
	}
	if n.Well {
		signal(t.well)
	}
}

func (t *Target) wake() { signal(t.again) }

// signal sends to a channel of capacity 1 without blocking.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
