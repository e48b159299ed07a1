//go:build bench && linux

package truth_test

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"replayd/test/outside"
)

// takeCore runs a busy loop on the last core for the rest of the test, or until it has used that much CPU time.
func takeCore(t *testing.T, most time.Duration) (free func()) {
	t.Helper()
	script := fmt.Sprintf("ulimit -t %d; while :; do :; done", int(most.Seconds()))
	p := outside.Start(t, filepath.Join(t.TempDir(), "busy.out"), "sh", "-c", script)
	var core unix.CPUSet
	core.Set(runtime.NumCPU() - 1)
	if err := unix.SchedSetaffinity(p.Cmd.Process.Pid, &core); err != nil {
		t.Fatalf("sched_setaffinity: %v", err)
	}
	return func() {
		_ = p.Cmd.Process.Kill() // it may have ended
		<-p.Done
	}
}

// scrapeEachSecond scrapes a page every second until end is called, and expects at least one scrape to succeed.
func scrapeEachSecond(t *testing.T, url string) (end func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	scrapes := 0
	running.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			if _, err := outside.Scrape(ctx, url); err == nil { // nobody listens before the run and after it
				scrapes++
			}
		}
	})
	return func() {
		stop()
		running.Wait()
		if scrapes == 0 {
			t.Errorf("want %s/metrics scraped, got no page", url)
		}
	}
}
