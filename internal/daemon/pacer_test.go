package daemon

import (
	"context"
	"testing"
	"testing/synctest"

	"replayd/internal/config"
	"replayd/internal/replay"
)

// counted is a sleeper that tells how many there are.
type counted struct {
	*replay.Timers
	open *int
}

func (c counted) Close() error {
	*c.open--
	return c.Timers.Close()
}

// However many workloads there are and come by reloads, one pacer serves them, and its sleeper is closed in the end: after a run,
// before one, and where the configuration is at fault.
func TestOnePacer(t *testing.T) {
	path := write(t, "trace.jsonl", rows(3))
	targets := []config.Target{target("gone", nobody)}
	two := conf(targets, looped("a", "gone", path), looped("b", "gone", path))
	three := conf(targets, looped("a", "gone", path), once("b", "gone", path), looped("c", "gone", path))
	bad := conf(targets, looped("a", "gone", path+".gone"))
	for name, end := range map[string]func(context.Context, *Generation) error{
		"after a reload": func(ctx context.Context, g *Generation) error {
			work, stop := context.WithCancel(ctx)
			g.Start(work, ctx)
			next, err := g.Next(ctx, three)
			if err != nil {
				stop()
				return err
			}
			next.Replace(work, ctx, g)
			if _, err := next.Next(ctx, bad); err == nil {
				t.Error("want an error, got none")
			}
			synctest.Wait()
			stop()
			return next.Close()
		},
		"never run": func(_ context.Context, g *Generation) error { return g.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				made, open := 0, 0
				o := (&heard{}).options(two)
				o.Dial, o.Sleeper = dialNobody, func() replay.Sleeper {
					made++
					open++
					return counted{replay.NewTimers(), &open}
				}
				g, err := Build(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				if err := end(t.Context(), g); err != nil {
					t.Error(err)
				}
				if made != 1 || open != 0 {
					t.Errorf("want one sleeper, closed; got %d made, %d open", made, open)
				}
				o.Config = bad
				if _, err := Build(t.Context(), o); err == nil || open != 0 {
					t.Errorf("want an error and no sleeper, got %v and %d", err, open)
				}
			})
		})
	}
}
