//go:build engines

// Package engines_test tests how the real daemon reads engines: the guard under a growing queue, an engine that is
// killed again and again, and the cost of scraping many engines and GPUs. It judges by its own view of the simulated
// engine.
//
// The sizes are CI's. Full sizes: ENGINES_RESTARTS (10), ENGINES_SCRAPES (500), ENGINES_COST (60s), ENGINES_VLLM (500).
package engines_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"replayd/test/outside"
)

var binary string

func TestMain(m *testing.M) { os.Exit(outside.Main(m, &binary)) }

// put writes a file of the test.
func put(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// trace writes rows at a rate for a time, with short prompts and answers.
func trace(t *testing.T, dir string, perSecond int, length time.Duration) (path string, rows int) {
	t.Helper()
	var b strings.Builder
	rows = int(length.Seconds() * float64(perSecond))
	for i := range rows {
		fmt.Fprintf(&b, `{"timestamp": %d, "input_length": 64, "output_length": 8}`+"\n", i*1000/perSecond)
	}
	return put(t, filepath.Join(dir, "trace.jsonl"), b.String()), rows
}

// sim starts the simulated engine.
func sim(t *testing.T, dir, address string, flags ...string) *outside.Process {
	t.Helper()
	p := outside.Start(t, filepath.Join(dir, fmt.Sprintf("sim-%d.out", time.Now().UnixNano())), binary,
		append([]string{"sim", "--web.listen-address", address}, flags...)...)
	p.Ready(t, http.DefaultClient, "http://"+address+"/health")
	return p
}

// serve starts the daemon with a configuration.
func serve(t *testing.T, dir, config string) (p *outside.Process, url string) {
	t.Helper()
	listen := outside.Address(t)
	p = outside.Start(t, filepath.Join(dir, "serve.out"), binary, "serve",
		"--config", put(t, filepath.Join(dir, "replayd.yaml"), config), "--web.listen-address", listen)
	p.Ready(t, http.DefaultClient, "http://"+listen+"/-/ready")
	return p, "http://" + listen
}

// scrape reads a metrics page and fails the test if there is none.
func scrape(t *testing.T, url string) outside.Page {
	t.Helper()
	p, err := outside.Scrape(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
