package outside

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A Stage is a simulated engine with its log and a daemon with its records, each in its own process. The test chooses
// what is between them.
type Stage struct {
	Binary  string // replayd
	Dir     string
	Engine  string // host:port
	Log     string // of the engine
	Config  string
	Records string
	Listen  string // host:port of the daemon
	Sim     *Process
	Lives   int // of the daemon
}

// NewStage starts the engine, with further flags, and waits until it is ready.
func NewStage(t *testing.T, binary string, flags ...string) *Stage {
	t.Helper()
	s := NewStageAlone(t, binary)
	s.Engine, s.Log = Address(t), filepath.Join(s.Dir, "sim.jsonl")
	// The log exists from the start, so that it can be read before the first request.
	if err := os.WriteFile(s.Log, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s.Sim = Start(t, filepath.Join(s.Dir, "sim.out"), s.Binary, append([]string{
		"sim", "--web.listen-address", s.Engine, "--slots", "4096", "--log", s.Log,
	}, flags...)...)
	s.Sim.Ready(t, http.DefaultClient, "http://"+s.Engine+"/health")
	return s
}

// NewStageAlone returns a Stage without an engine; the test provides one.
func NewStageAlone(t *testing.T, binary string) *Stage {
	t.Helper()
	dir := t.TempDir()
	return &Stage{
		Binary: binary, Dir: dir, Config: filepath.Join(dir, "replayd.yaml"), Records: filepath.Join(dir, "records.jsonl"), Listen: Address(t),
	}
}

// EngineLog ends a simulated engine and returns its log. An engine logs a request after the client has seen the end, so
// the log of an engine that still runs may lack the last ones.
func EngineLog[T any](t *testing.T, engine *Process, path string) []T {
	t.Helper()
	engine.Term(t)
	all, torn := Lines[T](t, path)
	if torn {
		t.Errorf("%s: want whole lines", path)
	}
	return all
}

// Write writes the configuration.
func (s *Stage) Write(t *testing.T, text string) {
	t.Helper()
	Put(t, s.Config, text)
}

// Serve starts a life of the daemon and waits until it is ready.
func (s *Stage) Serve(t *testing.T, flags ...string) (p *Process, ready time.Time) {
	t.Helper()
	s.Lives++
	p = Start(t, filepath.Join(s.Dir, fmt.Sprintf("serve%d.out", s.Lives)), s.Binary, append([]string{
		"serve", "--config", s.Config, "--web.listen-address", s.Listen, "--web.enable-lifecycle",
	}, flags...)...)
	p.Ready(t, http.DefaultClient, s.URL()+"/-/ready")
	return p, time.Now()
}

// URL is the URL of the daemon.
func (s *Stage) URL() string { return "http://" + s.Listen }
