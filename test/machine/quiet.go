package machine

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"
)

// patience bounds the wait for a quiet machine. Linux halves the load of what has ended in 42 s.
const patience = 5 * time.Minute

// Settle waits for a quiet machine, before the tests of a suite with named figures begin to load it. Measures says then
// whether it became one, and stayed one.
func Settle() { _, _ = settled() }

// Measures reports whether a figure that only a quiet machine has can be judged. Otherwise it logs "not measured" with the
// load, which `.ci/run suites` shows in place of a pass. What a test sees beside its figures it judges on any machine.
func Measures(t testing.TB, figure string) bool {
	t.Helper()
	load, quiet := settled()
	if beside := busiest(); quiet && beside > float64(runtime.NumCPU())/4 {
		load, quiet = beside, false
	}
	if !quiet {
		t.Logf("not measured: load %.1f: %s", load, figure)
	}
	return quiet
}

var settled = sync.OnceValues(func() (load float64, quiet bool) {
	load, quiet = settle(oneMinute, runtime.NumCPU())
	go watchOthers()
	return load, quiet
})

// settle reads the load every 5 s until half of the cores are free, for patience at most. It returns the last load. Where
// the load is unknown, the machine passes for a quiet one.
func settle(read func() (float64, error), cores int) (load float64, quiet bool) {
	for began := time.Now(); ; <-time.After(5 * time.Second) {
		load, err := read()
		if err != nil || load <= float64(cores)/2 {
			return load, true
		}
		if time.Since(began) >= patience {
			return load, false
		}
	}
}

// oneMinute returns the machine's load as Linux averages it over a minute.
func oneMinute() (load float64, err error) {
	text, err := os.ReadFile("/proc/loadavg")
	if err == nil {
		_, err = fmt.Sscan(string(text), &load)
	}
	return load, err
}
