package main

import (
	"flag"
	"os"
	"runtime"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The scripts run the real command line in a separate process.
// Scripts wait for most of their time, so two go on at once on one core too: else the package takes almost the 10 minutes that go
// gives it on a busy machine.
func TestMain(m *testing.M) {
	if runtime.GOMAXPROCS(0) < 2 {
		if err := flag.Set("test.parallel", "2"); err != nil {
			panic(err)
		}
	}
	testscript.Main(m, map[string]func(){"replayd": main})
}

func TestScripts(t *testing.T) {
	if testing.Short() {
		t.Skip("scripts judge times, which the race detector and a busy machine change")
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(e *testscript.Env) error {
			e.Setenv("GORACE", os.Getenv("GORACE"))
			e.Values[strangersKey{}] = map[string]*stranger{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exit": exit, "fetch": fetch, "freeport": freeport, "waitfor": waitFor, "signal": signalTo,
			"server": server, "hits": hits, "heard": heard, "untouched": untouched, "lines": lines, "saw": saw, "make": makeTrace, "subst": subst,
		},
	})
}
