package replay

import (
	"context"
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
		if soon := listed.Add(probeEvery); t.probe.Unclear() != nil && soon.Before(next) {
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
	news, err := t.probe.Look(ctx)
	t.hear(news)
	if err == nil && news.Changed {
		t.wake()
	}
}

// heard takes from an ended request whether the target was reached.
func (t *Target) heard(req *measure.Request) { t.hear(t.probe.Ended(req)) }

// reads notes that some of an answer came. It is called for each read of a socket.
func (t *Target) reads(now time.Time) {
	if int64(now.Sub(t.made))-t.heardAt.Load() > int64(time.Second) {
		t.hear(t.probe.Answered())
	}
}

// hear has the news decide when the next question is asked.
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

// signal puts one into a channel that holds one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
