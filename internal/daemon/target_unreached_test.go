package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/config"
	"replayd/internal/measure"
	"replayd/internal/replay"
	"replayd/internal/schedule"
)

// A run against an unreachable server ends patience after its first row was due, and the error gives the address and
// the cause. After a single connection it goes on, whatever happens to that connection.
func TestUnreached(t *testing.T) {
	const patience, whole = 30 * time.Second, 10 * time.Minute
	const probed = 5 * time.Second // without an answer the replay begins then
	var rows strings.Builder
	for at := time.Duration(0); at <= whole; at += 5 * time.Second {
		fmt.Fprintf(&rows, `{"timestamp": %d, "input_length": 20, "output_length": 4}`+"\n", at.Milliseconds())
	}
	path := write(t, "trace.jsonl", rows.String())
	refused := func(context.Context, time.Duration) (net.Conn, error) {
		<-time.After(travel) // virtual time must pass even if a closed loop only fails
		return nil, syscall.ECONNREFUSED
	}
	type dialer func(ctx context.Context, since time.Duration) (net.Conn, error)
	f := func(name string, dial dialer, want time.Duration, unreached bool, change func(*Once)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				server, w := target("gone", "http://gone:8000"), once("w", "gone", path)
				server.Timeouts.FirstToken = 20 * time.Second
				o := Once{Options: (&heard{}).options(conf([]config.Target{server}, w)), Patience: patience, Started: nothing}
				o.Sleeper = func() replay.Sleeper { return replay.NewTimers() }
				o.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, time.Since(begin)) }
				var cut error
				o.Ended = func(_ measure.Ledger, why error) { cut = why }
				change(&o)
				err := o.Run(t.Context(), t.Context())
				if took := time.Since(begin); took < want || took > want+5*time.Second {
					t.Errorf("want it over after %v, got %v", want, took)
				}
				if errors.Is(err, ErrUnreached) != unreached || errors.Is(cut, ErrUnreached) != unreached {
					t.Errorf("unreached: want %t, got %v, cut by %v", unreached, err, cut)
				}
				if unreached && !strings.HasPrefix(err.Error(), "http://gone:8000: no connection was ever made, 30s after the first request was due") {
					t.Errorf("got %v", err)
				}
			})
		})
	}
	same := func(*Once) {}
	silent := func(context.Context, time.Duration) (net.Conn, error) {
		client, server := net.Pipe()
		go func() { // ends with the connection
			_, _ = io.Copy(io.Discard, server)
			_ = server.Close()
		}()
		return client, nil
	}
	f("refused", refused, patience, true, same)
	f("told to keep trying", refused, whole, false, func(o *Once) { o.Patience = 0 })
	f("there after 29 seconds", func(ctx context.Context, since time.Duration) (net.Conn, error) {
		if since < 29*time.Second {
			return refused(ctx, since)
		}
		return silent(ctx, since)
	}, whole+20*time.Second, false, same) // timeout of the last request
	f("gone after the first connection", func(ctx context.Context, since time.Duration) (net.Conn, error) {
		if since > time.Second {
			return refused(ctx, since)
		}
		return silent(ctx, since)
	}, whole+probed, false, same)
	f("no packet comes back", func(ctx context.Context, _ time.Duration) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}, probed+patience, true, func(o *Once) { o.Config.Targets[0].Timeouts.Connect = 0 })
	f("a start to come", refused, whole+patience, true, func(o *Once) { o.Config.Workloads[0].Epoch = time.Now().Add(whole) })
	f("a warm-up", refused, patience, true, func(o *Once) { o.Config.Workloads[0].Warmup.Requests = 3 })
	f("a shard", refused, patience+5*time.Second, true,
		func(o *Once) { o.Config.Workloads[0].Shard = schedule.Shard{Index: 1, Of: 2} })
	f("a closed loop", refused, patience, true, func(o *Once) {
		w := &o.Config.Workloads[0]
		w.Trace, w.Synthetic = config.DefaultWorkload().Trace, config.Synthetic{InputTokens: 10, OutputTokens: 4, Requests: 1 << 20}
		w.Arrival, w.Lanes = "concurrency", 2
	})
	f("all rows are over before", refused, 25*time.Second, false, func(o *Once) {
		o.Config.Workloads[0].Trace.To = 26 * time.Second
	})
}

// TestCutIsTold checks that a run that is cut reports it, even if its workload ends right after the cut.
func TestCutIsTold(t *testing.T) {
	path := write(t, "trace.jsonl", `{"timestamp": 0, "input_length": 20, "output_length": 4}`+"\n"+`{"timestamp": 3600000, "input_length": 20, "output_length": 4}`+"\n")
	runs := 1000
	if testing.Short() {
		runs = 200
	}
	for range runs {
		synctest.Test(t, func(t *testing.T) {
			o := Once{Options: (&heard{}).options(conf([]config.Target{target("gone", "http://gone:8000")}, once("w", "gone", path))), Patience: 2 * time.Second, Started: nothing}
			o.Sleeper = func() replay.Sleeper { return replay.NewTimers() }
			o.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, syscall.ECONNREFUSED }
			var cut error
			o.Ended = func(_ measure.Ledger, why error) { cut = why }
			if err := o.Run(t.Context(), t.Context()); !errors.Is(err, ErrUnreached) || !errors.Is(cut, ErrUnreached) {
				t.Errorf("want a run that is cut since nothing was reached, got %v, cut by %v", err, cut)
			}
		})
		if t.Failed() {
			return
		}
	}
}
