package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The scripts run the real command line in a separate process.
func TestMain(m *testing.M) {
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
