package main

import (
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The scripts run the real command line in a process of its own.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"replayd": func() {
			signals := make(chan os.Signal, 2)
			signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
			os.Exit(run(os.Args[1:], signals, &world{in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.Environ()}))
		},
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != ""})
}
