package daemon

import (
	"context"
	"testing"
	"testing/synctest"

	"replayd/internal/config"
	"replayd/internal/replay"
)

// counted is a sleeper that counts the open sleepers.
type counted struct {
	*replay.Timers
	open *int
}

func (c counted) Close() error {
	*c.open--
	return c.Timers.Close()
}

// One pacer serves all workloads, including those of reloads. Its sleeper is closed after a run, before a run and after
// a fault in the configuration.
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
