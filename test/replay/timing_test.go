//go:build replay

package replay_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"replayd/internal/replay"

	"replayd/test/outside"
)

// A steal records the slices of 100 ms in which the host gave this machine's cores to others. No client is accurate in
// such a slice, so figures are given with and without them.
type steal struct {
	slices []stolen
	total  time.Duration
}

type stolen struct{ from, to time.Time }

// watchSteal reads /proc/stat until ctx is done.
func watchSteal(ctx context.Context, t *testing.T) (read func() *steal) {
	t.Helper()
	s := &steal{}
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		last, at := outside.StealTime(), time.Now()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			now, then := outside.StealTime(), time.Now()
			if now > last {
				s.slices = append(s.slices, stolen{at, then})
				s.total += now - last
			}
			last, at = now, then
		}
	})
	return func() *steal { running.Wait(); return s }
}

// near reports whether there was steal within 100 ms of an instant.
func (s *steal) near(at time.Time) bool {
	const margin = 100 * time.Millisecond
	return slices.ContainsFunc(s.slices, func(x stolen) bool {
		return at.After(x.from.Add(-margin)) && at.Before(x.to.Add(margin))
	})
}

// A write is one message of the plan: its due time and its length.
type write struct {
	at    time.Time
	bytes int
	first bool // of its instant
}

// rawWriter writes the same bytes at the same intervals to a server that discards them, one after the other on one
// thread: the lateness of a client that only writes. Its plan is shifted by a part of a second, so that both do not
// write at the same instants.
func rawWriter(ctx context.Context, t *testing.T, plan []write) (late []time.Duration) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var sinks sync.WaitGroup
	sinks.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			sinks.Go(func() { _, _ = io.Copy(io.Discard, c); c.Close() })
		}
	})
	defer sinks.Wait()
	defer l.Close()
	const connections = 32
	var conns [connections]net.Conn
	defer func() {
		for _, c := range conns {
			if c != nil {
				_ = c.Close()
			}
		}
	}()
	for i := range conns {
		if conns[i], err = net.Dial("tcp", l.Addr().String()); err != nil {
			t.Fatal(err)
		}
	}
	sleeper, err := replay.NewSleeper()
	if err != nil {
		t.Fatal(err)
	}
	longest := 0
	for _, w := range plan {
		longest = max(longest, w.bytes)
	}
	message := bytes.Repeat([]byte(" about"), longest/6+1)
	done := make(chan struct{})
	go func() { // on a thread of its own, which ends with it
		defer close(done)
		for i, w := range plan {
			if time.Now().Before(w.at) {
				sleeper.Until(w.at)
			}
			late = append(late, time.Since(w.at))
			if _, err := conns[i%connections].Write(message[:w.bytes]); err != nil || ctx.Err() != nil {
				return
			}
		}
	}()
	<-done
	_ = sleeper.Close()
	return late
}

// row formats p50, p99 and max of durations in µs.
func row(name string, all []time.Duration) string {
	if len(all) == 0 {
		return fmt.Sprintf("%-44s %7d %10s %10s %10s", name, 0, "-", "-", "-")
	}
	slices.Sort(all)
	us := func(d time.Duration) string { return strconv.FormatFloat(float64(d)/1e3, 'f', 0, 64) }
	return fmt.Sprintf("%-44s %7d %10s %10s %10s", name, len(all), us(all[len(all)/2]), us(all[len(all)*99/100]), us(all[len(all)-1]))
}
