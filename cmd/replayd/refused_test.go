package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"replayd/test/machine"
	"replayd/test/outside"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// refusal runs a command line that must be refused, and returns the lines of its error.
func refusal(args ...string) string {
	signals := make(chan os.Signal, 2)
	stop := time.AfterFunc(outside.Patience, func() { signals <- syscall.SIGTERM; signals <- syscall.SIGTERM })
	defer stop.Stop()
	var stderr bytes.Buffer
	code := run(args, signals, &world{in: strings.NewReader(""), out: io.Discard, err: &stderr})
	if code != exitInput {
		return fmt.Sprintf("exit %d:\n%s", code, &stderr)
	}
	var lines strings.Builder
	for line := range strings.Lines(stderr.String()) {
		if said, ok := strings.CutPrefix(line, "replayd: "); ok { // the rest is the log
			lines.WriteString(said)
		}
	}
	return lines.String()
}

// For a faulty file, check-config, serve at its start and a running daemon at a reload report the same faults: all of
// them, with file, line and workload, in the order of the lines. The running daemon keeps its old configuration.
func TestCheckConfigIsServe(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/refused/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	more, err := filepath.Glob("../../internal/config/testdata/bad/*.yaml")
	if err != nil || len(more) == 0 {
		t.Fatal("no files", err)
	}
	t.Setenv("HF_HUB_CACHE", "hub")
	t.Chdir(t.TempDir())
	if err := os.CopyFS(".", os.DirFS(filepath.Join(here, "testdata/refused"))); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo("fifo", 0o600); err != nil {
		machine.Lacks(t, "named pipes", err)
	}
	if err := os.WriteFile("sparse.jsonl", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate("sparse.jsonl", 16<<30); err != nil {
		machine.Lacks(t, "a sparse file of 16 GiB", err)
	}
	url := daemonThatStays(t)
	for i, file := range append(files, more...) {
		own := i < len(files)
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(here, file))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile("replayd.yaml", text, 0o600); err != nil {
				t.Fatal(err)
			}
			said := refusal("check-config", "replayd.yaml")
			if golden := filepath.Join(here, strings.TrimSuffix(file, "yaml")+"err"); own {
				if *update {
					if err := os.WriteFile(golden, []byte(said), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(golden)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(string(want), said); d != "" {
					t.Errorf("check-config: -want +got\n%s", d)
				}
			}
			if d := cmp.Diff(said, refusal("serve", "--config", "replayd.yaml")); d != "" {
				t.Errorf("-check-config +serve\n%s", d)
			}
			status, body, err := outside.Call(t.Context(), http.DefaultClient, http.MethodPost, url+"/-/reload")
			if err != nil || status != http.StatusInternalServerError {
				t.Fatalf("reload: want 500, got %d, %v", status, err)
			}
			_, told, _ := strings.Cut(strings.TrimSuffix(string(body), "\n")+"\n", "\n")
			if d := cmp.Diff(said, told); d != "" {
				t.Errorf("-check-config +reload\n%s", d)
			}
			page, err := outside.Scrape(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			if names := page.Workloads(); !cmp.Equal(names, []string{"stays"}) {
				t.Errorf("after the reload: want the old configuration to run on, got the workloads %q", names)
			}
		})
	}
}

// daemonThatStays serves a valid replayd.yaml until the test is over. The test may then replace the file.
func daemonThatStays(t *testing.T) (url string) {
	t.Helper()
	const good = `web: {listen: "%s", enable_lifecycle: true}
targets: [{name: vllm, url: "http://127.0.0.1:1"}]
workloads: [{name: stays, trace: {path: good.jsonl}}]
`
	address := outside.Address(t)
	if err := os.WriteFile("replayd.yaml", fmt.Appendf(nil, good, address), 0o600); err != nil {
		t.Fatal(err)
	}
	signals, ended := make(chan os.Signal, 2), make(chan int, 1)
	go func() {
		ended <- run([]string{"serve", "--config", "replayd.yaml"}, signals, &world{in: strings.NewReader(""), out: io.Discard, err: io.Discard})
	}()
	t.Cleanup(func() {
		signals <- syscall.SIGTERM
		signals <- syscall.SIGTERM
		if code := <-ended; code != exitDone {
			t.Errorf("the daemon: want exit 0, got %d", code)
		}
	})
	url = "http://" + address
	outside.Until(t, func() error {
		status, _, err := outside.Call(context.Background(), http.DefaultClient, http.MethodGet, url+"/-/ready")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d", status)
		}
		return err
	})
	return url
}
