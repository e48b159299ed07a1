//go:build real

// Package ledger_test makes runs with the real binary against a simulated engine, and compares
// every output of each run with one account: stdout, the exit code, CSV, JSON, the page, the
// records, /metrics, and the counters in a real Prometheus. The account comes from what the
// engine received and from single requests, not from sums of replayd: `make suite NAME=test-ledger`.
package ledger_test

import (
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"replayd/test/outside"
)

// binary is replayd, built once.
var binary string

// TestMain runs all runs at once: most of the time they wait.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	flag.Parse()
	if binary = os.Getenv(binaryEnv); binary != "" {
		os.Exit(m.Run())
	}
	os.Exit(outside.Main(m, &binary))
}

// An engine is a simulated engine in its own process.
type engine struct {
	*outside.Process
	address, log string
}

func startEngine(t *testing.T, dir string, flags ...string) engine {
	t.Helper()
	e := engine{address: outside.Address(t), log: filepath.Join(dir, "engine.jsonl")}
	e.Process = outside.Start(t, filepath.Join(dir, "engine.out"), binary,
		append([]string{"sim", "--web.listen-address", e.address, "--log", e.log}, flags...)...)
	e.Ready(t, http.DefaultClient, "http://"+e.address+"/health")
	return e
}

const scrapes = `
global: {scrape_interval: 500ms, scrape_timeout: 500ms}
scrape_configs:
  - job_name: replayd
    static_configs:
`

const (
	lead   = 3 * time.Second  // before the first request is due: each counter is scraped at 0
	linger = 10 * time.Second // after the last request has ended: the last values are scraped
)
