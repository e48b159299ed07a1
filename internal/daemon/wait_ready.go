package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"replayd/internal/config"
	"replayd/internal/openai"
)

const (
	awaitEvery = time.Second     // from one try to the next
	awaitTry   = 5 * time.Second // longest try
)

// ErrNotReady is that a target did not answer in time.
var ErrNotReady = errors.New("not ready")

// Await asks each target that requests go to for its models, one target after the other, until it has answered properly. tried is called with how each
// try went; nil is the target's last. The error is ErrNotReady with the last try's when patience is over, or that of one that asking again
// does not mend, else ctx's cause. Nothing of the generation needs to run.
func (g *Generation) Await(ctx context.Context, patience time.Duration, tried func(url string, err error)) error {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, t := range g.options.Config.Targets {
		if !slices.ContainsFunc(g.options.Config.Workloads, func(w config.Workload) bool { return w.Target == t.Name }) {
			continue // nothing is sent there
		}
		c := g.servers[t.Name].client
		err := await(limited, func(ctx context.Context) error {
			models, err := c.Models(ctx)
			if err == nil {
				_, err = c.Choose(models)
			}
			return err
		}, func(err error) { tried(t.URL, err) })
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, openai.ErrSeveralModels):
			return fmt.Errorf("target %s: %w", t.Name, err)
		case err != nil:
			return fmt.Errorf("target %s: %w within %v: %w", t.Name, ErrNotReady, patience.Round(time.Millisecond), err)
		}
	}
	return nil
}

// await asks until it is answered, at instants a second apart, or as soon as a try that took longer has failed.
func await(ctx context.Context, ask func(context.Context) error, tried func(error)) error {
	again := time.NewTicker(awaitEvery)
	defer again.Stop()
	var last error
	for {
		try, cancel := context.WithTimeoutCause(ctx, awaitTry, fmt.Errorf("no answer within %v", awaitTry))
		err := ask(try)
		cancel()
		if err != nil && ctx.Err() != nil && last != nil {
			return last // a try that was cut short says less
		}
		tried(err)
		if err == nil || ctx.Err() != nil || errors.Is(err, openai.ErrSeveralModels) {
			return err
		}
		last = err
		select {
		case <-again.C:
		case <-ctx.Done():
			return last
		}
	}
}

// setEpoch gives all plans an epoch. It is for before Start.
func (g *Generation) setEpoch(epoch time.Time) {
	for _, w := range g.workloads {
		w.config.Epoch = epoch
	}
}
