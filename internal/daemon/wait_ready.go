package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"replayd/internal/config"
	"replayd/internal/openai"
	"replayd/internal/secret"
)

const (
	awaitEvery = time.Second     // from one try to the next
	awaitTry   = 5 * time.Second // longest try
)

// ErrNotReady means that a target did not answer in time.
var ErrNotReady = errors.New("not ready")

// Await requests the models of each target that has workloads, one after the other, until it answers as expected. tried
// is called with the error of each try, nil at last. The error is ErrNotReady with that of the last try after patience,
// one that a retry would not change, or ctx's cause. The generation need not run.
func (g *Generation) Await(ctx context.Context, patience time.Duration, tried func(url string, err error)) error {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, t := range g.options.Config.Targets {
		if !slices.ContainsFunc(g.options.Config.Workloads, func(w config.Workload) bool { return w.Target == t.Name }) {
			continue // no workload sends requests there
		}
		c := g.servers[t.Name].client
		err := await(limited, func(ctx context.Context) error {
			models, err := c.Models(ctx)
			if err == nil {
				_, err = c.Choose(models)
			}
			return err
		}, func(err error) { tried(secret.Shown(t.URL), err) })
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

// await retries every second, or at once after a try that took longer, until the target answers.
func await(ctx context.Context, ask func(context.Context) error, tried func(error)) error {
	again := time.NewTicker(awaitEvery)
	defer again.Stop()
	var last error
	for {
		try, cancel := context.WithTimeoutCause(ctx, awaitTry, fmt.Errorf("no answer within %v", awaitTry))
		err := ask(try)
		cancel()
		if err != nil && ctx.Err() != nil && last != nil {
			return last // the error of a cancelled try says less
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
