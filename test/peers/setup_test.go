//go:build peers

// Package peers_test runs the command lines of AIPerf's and TraceReplay's documents, with the program's name replaced,
// and judges each by the requests that a simulated engine in another process received: `make suite NAME=test-peers`.
package peers_test

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"replayd/test/machine"
	"replayd/test/outside"
)

// binary is replayd, built once.
var binary string

// TestMain runs more tests at once than there are cores: most of them wait for the instants of a trace.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "5"); err != nil {
		panic(err)
	}
	flag.Parse() // an explicit -parallel takes precedence
	machine.Settle()
	os.Exit(outside.Main(m, &binary))
}

// A peer is one command line of a document.
type peer struct {
	name   string
	typed  string                                  // as in the document, one blank between words
	cut    []string                                // pairs: a size as typed, and a smaller one if the run would take minutes
	engine []string                                // further flags of the simulated engine
	files  func(t *testing.T, dir, address string) // makes the files that the document makes or downloads before
	judge  func(t *testing.T, dir string, s seen)  // checks the result
	serves string                                  // the default address of a command that serves a page until it is ended
	reads  bool                                    // the bodies are checked too
	alone  bool                                    // it needs the machine for itself
}

// A seen is the result of a command.
type seen struct {
	all    []request       // in order of arrival, without probes
	bodies map[string]body // by id, of a peer that reads
	said   string          // on stdout
	warned string          // on stderr
	cpu    time.Duration   // of the command
	code   int             // exit code
}

// run runs the command in a folder of its own.
func (p peer) run(t *testing.T) {
	if !p.alone {
		t.Parallel()
	}
	dir := t.TempDir()
	e := start(t, dir, append([]string{"--model", p.model()}, p.engine...)...)
	if p.files != nil {
		p.files(t, dir, e.address)
	}
	if p.serves != "" {
		p.serve(t, dir)
		return
	}
	address, bodies := e.address, func() map[string]body { return nil }
	if p.reads {
		address, bodies = between(t, e.address)
	}
	s := shell(t, dir, address, p.command(address))
	if s.code != 0 {
		t.Fatalf("%s: want exit 0, got %d\n%s\n%s", p.command(address), s.code, s.said, s.warned)
	}
	s.all, s.bodies = e.received(t), bodies()
	p.judge(t, dir, s)
	if c := p.command(""); strings.Contains(c, "replayd run") || strings.Contains(c, "replayd profile") {
		s.agrees(t, dir)
		s.recomputed(t, dir)
		s.frozen(t, p.name, dir, p.open())
	}
}

// An engine is a simulated engine in its own process.
type engine struct {
	*outside.Process
	address, log string
}

func start(t *testing.T, dir string, flags ...string) engine {
	t.Helper()
	e := engine{address: outside.Address(t), log: filepath.Join(dir, "engine.jsonl")}
	e.Process = outside.Start(t, filepath.Join(dir, "engine.out"), binary,
		append([]string{"sim", "--web.listen-address", e.address, "--log", e.log}, flags...)...)
	e.Ready(t, http.DefaultClient, "http://"+e.address+"/health")
	return e
}

// received ends the engine and reads its log.
func (e engine) received(t *testing.T) []request {
	t.Helper()
	e.Term(t)
	return requests(t, e.log)
}

// shell runs a command. $ENDPOINT_URL is the engine's address,
// replayd is in the path, and Hugging Face's folder is empty.
func shell(t *testing.T, dir, address, command string) (s seen) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "sh", "-ec", command)
	c.Dir = dir
	c.Env = append(os.Environ(), "ENDPOINT_URL="+address, "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"), "HF_HOME="+dir)
	var said, warned strings.Builder
	c.Stdout, c.Stderr = &said, &warned
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", command, err)
	}
	s.said, s.warned, s.code = said.String(), warned.String(), c.ProcessState.ExitCode()
	s.cpu = c.ProcessState.UserTime() + c.ProcessState.SystemTime() // of all processes that the shell waited for
	return s
}

// serve runs a command that serves a page until the page was read. Its port may be in use, so another port is given.
func (p peer) serve(t *testing.T, dir string) {
	_, port, _ := strings.Cut(outside.Address(t), ":")
	text := strings.ReplaceAll(p.command(""), " --port "+p.serves, "") + " --port " + port
	c := exec.CommandContext(t.Context(), binary, strings.Fields(text)[1:]...)
	c.Dir = dir
	var said strings.Builder
	c.Stdout, c.Stderr = &said, &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var page string
	outside.Until(t, func() error {
		status, body, err := outside.Call(t.Context(), http.DefaultClient, http.MethodGet, "http://localhost:"+port+"/")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("want 200, got %d, %d bytes", status, len(body))
		}
		page = string(body)
		return err
	})
	_ = c.Process.Signal(syscall.SIGTERM)
	if err := c.Wait(); err != nil {
		t.Errorf("%s: want it to end well, got %v\n%s", text, err, said.String())
	}
	wholeRun(t, page)
	if !strings.Contains(page, "<form") {
		t.Error("want a form to filter with")
	}
	if !strings.Contains(p.typed, "--port") {
		help, err := exec.CommandContext(t.Context(), binary, "report", "--help").Output()
		if err != nil || !strings.Contains(string(help), "(default "+p.serves+")") {
			t.Errorf("want %s as the default port, got %v\n%s", p.serves, err, help)
		}
	}
}

// model returns the command's name of the model.
func (p peer) model() string {
	words := strings.Fields(p.typed)
	for i, w := range words {
		if w == "--model" || w == "-m" {
			return words[i+1]
		}
	}
	return "sim"
}

// command returns the command for the shell, with names of programs, addresses and sizes replaced.
func (p peer) command(address string) string {
	host, port, _ := strings.Cut(address, ":")
	swaps := append(slices.Clone(p.cut),
		"aiperf profile", "replayd profile", "aiperf analyze-trace", "replayd trace analyze", "aiperf plot", "replayd report",
		"python3 /trace_replay.py", "replayd run", "localhost:8000", address,
		"--host 127.0.0.1 --port 8000", "--host "+host+" --port "+port, "--trace-path /", "--trace-path ./",
	)
	text := p.typed
	for i := 0; i < len(p.cut); i += 2 {
		if !strings.Contains(text, p.cut[i]) {
			panic(p.name + ": not in the command: " + p.cut[i])
		}
	}
	text = strings.NewReplacer(swaps...).Replace(text)
	if strings.HasPrefix(p.typed, "aiperf profile") && !strings.Contains(p.typed, "--url") {
		text += " --url " + address // the default port may be in use
	}
	if strings.Contains(text, "$c") {
		text = "for c in 10 50 100 200 500; do " + text + "; done"
	}
	return text
}

// The tests that need the machine for themselves come first: parallel tests wait until all others have ended.
func TestCommandLinesAlone(t *testing.T) {
	for _, p := range cases() {
		if p.alone {
			t.Run(p.name, p.run)
		}
	}
}

func TestCommandLines(t *testing.T) {
	t.Parallel()
	for _, p := range cases() {
		if !p.alone {
			t.Run(p.name, p.run)
		}
	}
}
