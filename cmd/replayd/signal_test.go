package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"replayd/internal/config"
)

// runs returns a command without arguments; by itself it would take those of the test.
func runs(f func() error) *cobra.Command {
	c := &cobra.Command{SilenceUsage: true, SilenceErrors: true, RunE: func(*cobra.Command, []string) error { return f() }}
	c.SetArgs([]string{})
	return c
}

// A command that is stuck, in its start or later, ends with the first signal within the drain and 5 s, and with the second within 5 s.
func TestSignalsEndWhatIsStuck(t *testing.T) {
	for name, c := range map[string]struct {
		drain, second time.Duration // second: after the first signal; 0: none
		starts        bool          // the drain is not known yet
		want          time.Duration
	}{
		"one signal":                {drain: 30 * time.Second, want: 34500 * time.Millisecond},
		"two signals":               {drain: 30 * time.Second, second: 10 * time.Second, want: 14500 * time.Millisecond},
		"the second at the end":     {drain: 30 * time.Second, second: 33 * time.Second, want: 34500 * time.Millisecond},
		"a signal during the start": {drain: 30 * time.Second, starts: true, want: 4500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hard, abort := context.WithCancel(t.Context())
				defer abort()
				ctx, stop := context.WithCancelCause(hard)
				w, release := &world{}, make(chan struct{})
				defer close(release)
				if !c.starts {
					w.drains(config.Config{Drain: c.drain})
				}
				begin := time.Now()
				stop(&signaled{syscall.SIGTERM})
				if c.second > 0 {
					time.AfterFunc(c.second, abort)
				}
				err := w.execute(ctx, hard, runs(func() error {
					<-release
					return nil
				}))
				code := (*exitError)(nil)
				if took := time.Since(begin); took != c.want || !errors.As(err, &code) || code.code != 143 {
					t.Errorf("want exit code 143 after %v, got %v after %v", c.want, err, took)
				}
				if want := "stopped by SIGTERM, and ended by force: something is stuck, and what it had not written is lost"; fmt.Sprint(err) != want {
					t.Errorf("want %s, got %v", want, err)
				}
			})
		})
	}
}

// A command that ends in time after a signal ends as it says.
func TestSignalsLetACommandEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		w, own := &world{}, errors.New("its own end")
		stop()
		err := w.execute(ctx, t.Context(), runs(func() error {
			<-time.After(4 * time.Second)
			return own
		}))
		if !errors.Is(err, own) {
			t.Errorf("want %v, got %v", own, err)
		}
	})
}

// SIGHUP means a reload to serve from the first instant on, and an end to every other command, unless it was ignored.
func TestHangup(t *testing.T) {
	for name, c := range map[string]struct {
		args  []string
		nohup bool
		code  int
	}{
		"serve":             {[]string{"--log.level", "error", "serve", "--config", "none.yaml"}, false, exitInput},
		"serve after nohup": {[]string{"serve", "--config=none.yaml"}, true, exitInput},
		"no command":        {[]string{"serv"}, true, exitInput},
		"a wait":            {[]string{"sim", "--web.listen-address", "127.0.0.1:0"}, false, exitDone}, // as after each signal
	} {
		t.Run(name, func(t *testing.T) {
			signals := make(chan os.Signal, 1)
			signals <- syscall.SIGHUP
			if code := run(c.args, signals, &world{out: io.Discard, err: io.Discard, nohup: c.nohup}); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
		})
	}
}
