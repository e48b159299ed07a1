//go:build between

// Package between_test puts real programs between replayd and an engine: proxies, balancers, caches and gateways, each
// as its documents configure it. The engine is in this process and stamps what it gets and writes. replayd is judged by
// these stamps and by an independent client that plays the same rows through the same programs. Times are shown, never
// judged.
package between_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"replayd/test/outside"
)

var binary string

func TestMain(m *testing.M) { os.Exit(outside.Main(m, &binary)) }

// An installed program is a line of the script install.
type installed struct{ path, version string }

// install returns the programs by name.
func install(t *testing.T) map[string]installed {
	t.Helper()
	all := map[string]installed{}
	for line := range strings.Lines(outside.Install(t)) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) != 3 {
			t.Fatalf("want name, path and version, got %q", line)
		}
		all[fields[0]] = installed{fields[1], fields[2]}
	}
	return all
}

// A between is a running program.
type between struct {
	*outside.Process
	address string // host:port
}

func (b *between) url() string { return "http://" + b.address }

// start runs a program with a configuration before one engine or several, and waits until it answers.
func start(t *testing.T, programs map[string]installed, c configuration, engines ...*engine) *between {
	t.Helper()
	dir, b := t.TempDir(), &between{address: outside.Address(t)}
	var behind []string
	for _, e := range engines {
		behind = append(behind, e.address())
	}
	path := programs[c.program].path
	args := c.args(place{t, dir, b.address, behind})
	// nginx does not end the processes that it has started when it is killed itself. SIGTERM ends them.
	args = slices.Concat([]string{"--pdeathsig", "TERM", "env"}, variables(behind), []string{path}, args)
	log := filepath.Join(dir, c.program+".out")
	b.Process = outside.Start(t, log, programs["setpriv"].path, args...)
	t.Cleanup(func() {
		b.Signal(t, syscall.SIGTERM)
		b.Wait(t)
	})
	b.Ready(t, stranger(t), b.url()+"/v1/models")
	return b
}

// variables are those of gateway.py.
func variables(engines []string) []string {
	return []string{"ENGINE=http://" + engines[0], "PYTHONPATH=.", "PYTHONDONTWRITEBYTECODE=1"}
}

// stranger returns the client of another user, who opens a connection for each request.
func stranger(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: outside.Patience}
}

// replay plays rows with replayd run. The process has ended when it returns.
func replay(t *testing.T, url, trace string, flags ...string) *played {
	t.Helper()
	p := begin(t, url, trace, flags...)
	p.end(t)
	return p
}

// A played is a replayd run.
type played struct {
	*outside.Process
	path    string // of its records
	records []record
	dropped map[string]int // rows that were not sent, by reason
	code    int            // of its exit
}

// A record has further fields of replayd's records.
type record struct {
	outside.Record
	Status int    `json:"status"`
	TPOT   *int64 `json:"tpot_ns"`
}

// begin starts replayd run.
func begin(t *testing.T, url, trace string, flags ...string) *played {
	t.Helper()
	dir := t.TempDir()
	p := &played{path: filepath.Join(dir, "records.jsonl")}
	args := append([]string{
		"run", outside.Write(t, dir, "trace.jsonl", trace), "--url", url, "--records", p.path, "--calibrate=false",
		"--lanes", "64", "--log.level", "warn",
	}, flags...)
	p.Process = outside.Start(t, filepath.Join(dir, "replayd.out"), binary, args...)
	return p
}

// end waits for the end of the run and reads its records.
func (p *played) end(t *testing.T) {
	t.Helper()
	p.Wait(t)
	p.code = p.Cmd.ProcessState.ExitCode()
	p.records, _ = outside.Lines[record](t, p.path)
	text, err := os.ReadFile(p.path)
	if err != nil {
		t.Fatal(err)
	}
	var ledger struct{ Dropped map[string]int }
	last := bytes.TrimSpace(text)
	last = last[bytes.LastIndexByte(last, '\n')+1:]
	if err := json.Unmarshal(last, &ledger); err != nil || !bytes.HasPrefix(last, []byte(`{"ledger":`)) {
		t.Fatalf("want a ledger at the end of the records, got %s: %v", last, err)
	}
	p.dropped = ledger.Dropped
}

// missed returns how many rows replayd has not sent because this machine stopped it for a second or more.
func (p *played) missed() int { return p.dropped["missed"] }

// outcomes counts the records by outcome, and the rows without one by the reason.
func (p *played) outcomes() map[string]int {
	all := maps.Clone(p.dropped)
	if all == nil {
		all = map[string]int{}
	}
	for _, r := range p.records {
		all[r.Outcome]++
	}
	return all
}

// counted writes counts in the order of their names.
func counted(counts map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[name], name))
	}
	return strings.Join(parts, ", ")
}

// said fails the test unless the output has a line that matches.
func said(t *testing.T, p *outside.Process, pattern string) {
	t.Helper()
	if !regexp.MustCompile(`(?m)` + pattern).MatchString(p.Said(t)) {
		t.Errorf("want a line %s, got:\n%s", pattern, p.Said(t))
	}
}
