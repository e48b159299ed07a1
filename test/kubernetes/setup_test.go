//go:build real

// Package kubernetes_test checks the Helm chart and the kustomize overlay of deploy/ against the schemas of Kubernetes
// and of the Prometheus operator, the restricted Pod Security Standard, and replayd itself: `make suite
// NAME=test-kubernetes`. It is a separate module, so that the product does not depend on the libraries of Kubernetes.
package kubernetes_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

const (
	repository = "../.."
	chart      = repository + "/deploy/helm/replayd"
)

var modes = []string{"deployment", "shards", "job", "sidecar-example"}

// binary is replayd, built once.
var binary string

func TestMain(m *testing.M) { os.Exit(build(m)) }

func build(m *testing.M) int {
	dir, err := os.MkdirTemp("", "replayd-test-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "replayd")
	c := exec.Command("go", "build", "-o", binary, "./cmd/replayd")
	c.Dir = repository
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := c.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%s\n%v\n", said, err)
		return 1
	}
	return m.Run()
}

// tool runs an install script and returns the path of a program in its folder. With exit code 3 the program is not
// available here: the test is skipped, but fails in CI.
func tool(t *testing.T, script, folder, program string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(repository, ".cache", folder))
	if err != nil {
		t.Fatal(err)
	}
	said, err := exec.CommandContext(t.Context(), script, path, program).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 3 && os.Getenv("CI") != "true" {
		t.Skipf("%s: %v: %s", script, err, said)
	}
	if err != nil {
		t.Fatalf("%s: %v: %s", script, err, said)
	}
	return filepath.Join(path, program)
}

// helm runs helm and returns its stdout and stderr.
func helm(t *testing.T, args ...string) (out, said string, err error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), tool(t, "./install", "kubernetes", "helm"), args...)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	err = c.Run()
	return stdout.String(), stderr.String(), err
}

// render returns the manifests of a chart with these values.
func render(t *testing.T, folder string, values ...string) string {
	t.Helper()
	out, said, err := helm(t, append([]string{"template", "canary", folder, "--namespace", "test"}, values...)...)
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return out
}

// required holds the values without a default: the image, and in mode job the instant at which its shards begin.
var required = []string{"--set", "image.repository=registry.example.com/replayd", "--set", "job.start=" + jobStart}

const jobStart = "2026-01-02T15:04:00Z"

// full returns the values of chart/ci, with every option of a mode on; plain returns those of a first installation.
func full(mode string) []string { return []string{"-f", filepath.Join(chart, "ci", mode+".yaml")} }

func plain(mode string) []string {
	return append([]string{"--set", "mode=" + mode, "--set", "target.url=http://vllm:8000"}, required...)
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
