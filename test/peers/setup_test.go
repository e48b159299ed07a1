//go:build peers

// Package peers_test types the command lines of AIPerf's and TraceReplay's documents, the program's name replaced, and judges
// each by what a simulated engine in another process received: `make test-peers`.
package peers_test

import (
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

	"replayd/test/outside"
)

const repository = "../.."

// binary is replayd, built once.
var binary string

func TestMain(m *testing.M) { os.Exit(outside.Main(m, &binary)) }

// A peer is one command line of a document.
type peer struct {
	name   string
	typed  string                                  // as the document has it, one blank between words
	cut    []string                                // pairs: a size as typed, and a smaller one where the run would last minutes
	engine []string                                // further flags of the simulated engine
	files  func(t *testing.T, dir, address string) // what the document makes or downloads before
	judge  func(t *testing.T, dir string, s seen)  // what must have come of it
	serves string                                  // the flag's default address, of a command that serves a page until it is ended
}

// A seen is what a command did.
type seen struct {
	all      []request // in order of arrival, probes left out
	said     string    // on stdout
	warned   string    // on stderr
	address  string    // of the engine
	began    time.Time
	duration time.Duration
}

// run types the command in a folder of its own.
func (p peer) run(t *testing.T) {
	dir := t.TempDir()
	address, log := outside.Address(t), filepath.Join(dir, "engine.jsonl")
	flags := append([]string{"sim", "--web.listen-address", address, "--log", log, "--model", p.model()}, p.engine...)
	engine := outside.Start(t, filepath.Join(dir, "engine.out"), binary, flags...)
	engine.Ready(t, http.DefaultClient, "http://"+address+"/health")
	if p.files != nil {
		p.files(t, dir, address)
	}
	if p.serves != "" {
		p.serve(t, dir)
		engine.Term(t, 15*time.Second)
		return
	}
	s := seen{address: address, began: time.Now()}
	c := exec.CommandContext(t.Context(), "sh", "-ec", p.command(address))
	c.Dir = dir
	c.Env = append(os.Environ(), "ENDPOINT_URL="+address, "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"), "HF_HOME="+dir)
	var said, warned strings.Builder
	c.Stdout, c.Stderr = &said, &warned
	err := c.Run()
	s.said, s.warned, s.duration = said.String(), warned.String(), time.Since(s.began)
	if err != nil {
		t.Fatalf("%s: %v\n%s\n%s", c.Args[2], err, s.said, s.warned)
	}
	engine.Term(t, 15*time.Second)
	s.all = requests(t, log)
	p.judge(t, dir, s)
}

// serve lets a command that serves a page run until the page was seen. Its port may be somebody's: another one is typed.
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
	outside.Until(t, 20*time.Second, func() error {
		status, body, err := outside.Call(t.Context(), http.DefaultClient, http.MethodGet, "http://localhost:"+port+"/")
		if err == nil && (status != http.StatusOK || !strings.Contains(string(body), "<svg") && !strings.Contains(string(body), "<canvas")) {
			err = fmt.Errorf("want a page with pictures, got %d, %d bytes", status, len(body))
		}
		return err
	})
	_ = c.Process.Signal(syscall.SIGTERM)
	if err := c.Wait(); err != nil {
		t.Errorf("%s: want it to end well, got %v\n%s", text, err, said.String())
	}
	if !strings.Contains(p.typed, "--port") {
		help, err := exec.CommandContext(t.Context(), binary, "report", "--help").Output()
		if err != nil || !strings.Contains(string(help), "(default "+p.serves+")") {
			t.Errorf("want %s as the default port, got %v\n%s", p.serves, err, help)
		}
	}
}

// model is what the command calls it.
func (p peer) model() string {
	words := strings.Fields(p.typed)
	for i, w := range words {
		if w == "--model" || w == "-m" {
			return words[i+1]
		}
	}
	return "sim"
}

// command is what is typed into the shell: names of programs, addresses and sizes replaced.
func (p peer) command(address string) string {
	host, port, _ := strings.Cut(address, ":")
	swaps := append(slices.Clone(p.cut),
		"aiperf profile", "replayd run", "aiperf analyze-trace", "replayd trace analyze", "aiperf plot", "replayd report",
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
		text += " --url " + address // the default port may be somebody's
	}
	if strings.Contains(text, "$c") {
		text = "for c in 10 50 100 200 500; do " + text + "; done"
	}
	return text
}

func TestCommandLines(t *testing.T) {
	for _, p := range cases {
		t.Run(p.name, p.run)
	}
}
