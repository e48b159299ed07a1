//go:build linux

package main

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"replayd/test/outside"
)

// silentPipe makes a named pipe whose writer says a blank line and then nothing. read returns when somebody has read the line, or at the end.
func silentPipe(t *testing.T, path string) (read func(end <-chan int)) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	writer, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = writer.Close() })
	if _, err := writer.WriteString("\n"); err != nil {
		t.Fatal(err)
	}
	return func(end <-chan int) {
		for {
			n, err := unix.IoctlGetInt(int(writer.Fd()), unix.TIOCINQ)
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 || len(end) > 0 {
				return
			}
			runtime.Gosched()
		}
	}
}

// A said collects what is written, and closes began once a text is in it.
type said struct {
	mu    sync.Mutex
	all   bytes.Buffer
	text  string
	began chan struct{}
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := strings.Contains(s.all.String(), s.text)
	s.all.Write(p)
	if !before && strings.Contains(s.all.String(), s.text) {
		close(s.began)
	}
	return len(p), nil
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.String()
}

// The first signal ends what reads a pipe that says nothing, and nothing has to be ended by force.
func TestSignalsEndTheReadingOfAPipe(t *testing.T) {
	for name, args := range map[string][]string{
		"check-config": {"check-config", "fifo"},
		"serve":        {"serve", "--config", "fifo"},
		"run":          {"run", "fifo", "--url", "http://127.0.0.1:9"},
		"trace info":   {"trace", "info", "fifo"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			read := silentPipe(t, "fifo")
			signals, code := make(chan os.Signal, 1), make(chan int, 1)
			log := &said{text: "no such text", began: make(chan struct{})}
			go func() { code <- run(args, signals, &world{in: strings.NewReader(""), out: io.Discard, err: log}) }()
			read(code)
			signals <- syscall.SIGTERM
			if got := <-code; got != exitSignal+int(syscall.SIGTERM) || strings.Contains(log.String(), "by force") {
				t.Errorf("want exit code 143 and nothing ended by force, got %d:\n%s", got, log)
			}
		})
	}
}

// A reload that reads a pipe which says nothing holds up neither the pages nor a stop.
func TestReloadOfASilentPipe(t *testing.T) {
	t.Chdir(t.TempDir())
	address := outside.Address(t)
	for path, text := range map[string]string{
		"replayd.yaml": "web: {listen: \"" + address + "\", enable_lifecycle: true}\ndrain: 1h\ntargets: [{name: t, url: \"http://127.0.0.1:9\"}]\n" +
			"workloads: [{name: a, trace: {path: trace.jsonl}, repeat: {mode: loop, every: 1h}}]\n",
		"trace.jsonl": `{"timestamp": 0, "input_length": 5, "output_length": 4}` + "\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := silentPipe(t, "fifo")
	signals, code := make(chan os.Signal, 1), make(chan int, 1)
	log := &said{text: "entered loop", began: make(chan struct{})}
	go func() {
		code <- run([]string{"serve", "--config", filepath.Join(".", "replayd.yaml")}, signals, &world{out: io.Discard, err: log})
	}()
	select {
	case <-log.began:
	case got := <-code:
		t.Fatalf("exit code %d:\n%s", got, log)
	}
	if err := os.Rename("fifo", "replayd.yaml"); err != nil {
		t.Fatal(err)
	}
	signals <- syscall.SIGHUP
	read(code)
	for _, call := range []func() (*http.Response, error){
		func() (*http.Response, error) { return http.Get("http://" + address + "/-/healthy") },
		func() (*http.Response, error) { return http.Get("http://" + address + "/metrics") },
		func() (*http.Response, error) { return http.Post("http://"+address+"/-/pause", "", nil) },
	} {
		answer, err := call()
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s: want status 200, got %s", answer.Request.URL, answer.Status)
		}
	}
	signals <- syscall.SIGTERM
	if got := <-code; got != exitDone || strings.Contains(log.String(), "by force") {
		t.Errorf("want exit code 0 and nothing ended by force, got %d:\n%s", got, log)
	}
}
