//go:build dcgm

// Package dcgm_test tests the binary built with the tag dcgm, without cgo, against a libdcgm.so.4 that plays an
// nv-hostengine: `make suite NAME=test-dcgm`. internal/gpu/dcgm/testdata/libdcgm/libdcgm.c describes what it can play.
package dcgm_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"replayd/test/outside"
)

var binary string

func TestMain(m *testing.M) { os.Exit(outside.Main(m, &binary, "-tags", "dcgm")) }

// library builds libdcgm.so.4 into a folder of its own.
func library(t *testing.T) (folder string) {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		outside.Missing(t, err, "it needs a C compiler to build the library with")
	}
	sources, err := filepath.Glob("../../internal/gpu/dcgm/testdata/libdcgm/*.c")
	if err != nil || len(sources) == 0 {
		t.Fatalf("want the library's sources, got %v", err)
	}
	folder = t.TempDir()
	args := append([]string{"-shared", "-fPIC", "-pthread", "-Wl,-soname,libdcgm.so.4,-Bsymbolic", "-o", filepath.Join(folder, "libdcgm.so.4")}, sources...)
	if out, err := exec.CommandContext(t.Context(), cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	return folder
}

// configuration has a target without a server: the GPUs are read all the same.
func configuration(t *testing.T, dir string) string {
	t.Helper()
	trace, config := filepath.Join(dir, "trace.jsonl"), filepath.Join(dir, "replayd.yaml")
	for path, text := range map[string]string{
		trace: `{"timestamp": 0, "input_length": 8, "output_length": 1}` + "\n",
		config: fmt.Sprintf("targets: [{name: nobody, url: \"http://127.0.0.1:1\"}]\nworkloads: [{name: w, trace: {path: %s}, repeat: {mode: once}}]\n"+
			"gpus: [{libdcgm: \"127.0.0.1:5555\", interval: 1s}]\n", trace),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return config
}

// The daemon reads two GPUs, continues with one when the other falls off the bus, reports the engine's stop, and
// recovers with it.
func TestDaemon(t *testing.T) {
	dir, folder := t.TempDir(), library(t)
	play := func(lines ...string) {
		t.Helper()
		next := filepath.Join(folder, "next")
		if err := os.WriteFile(next, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, filepath.Join(folder, "control")); err != nil {
			t.Fatal(err)
		}
	}
	play("gpus 2", "value 0 155 350.5", "value 0 156 123456", "value 1 155 notsupported")
	listen := outside.Address(t)
	p := outside.Start(t, filepath.Join(dir, "serve.out"), "env", "LD_LIBRARY_PATH="+folder, binary, "serve",
		"--config", configuration(t, dir), "--web.listen-address", listen)
	url := "http://" + listen
	p.Ready(t, http.DefaultClient, url+"/-/ready")
	wait := func(what string, up, power, gpus float64) {
		t.Helper()
		outside.Until(t, func() error {
			page, err := outside.Scrape(t.Context(), url)
			if err != nil {
				return err
			}
			gotUp, gotPower, gotGPUs := page.Sum("replayd_gpu_up"), page.Sum("replayd_gpu_power_watts"), float64(len(page["replayd_gpu_energy_joules_total"].GetMetric()))
			if gotUp != up || gotPower != power || gotGPUs != gpus {
				return fmt.Errorf("%s: want up %v, %v W and the energy of %v GPUs, got %v, %v and %v", what, up, power, gpus, gotUp, gotPower, gotGPUs)
			}
			if gpus > 0 && page.Sum("replayd_gpu_energy_joules_total", "0") != 123.456 {
				return fmt.Errorf("%s: want 123.456 J of GPU 0, got %v", what, page.Sum("replayd_gpu_energy_joules_total", "0"))
			}
			return nil
		})
	}
	wait("two GPUs, one without power", 1, 350.5, 2)
	play("gpus 2", "value 0 155 350.5", "value 0 156 123456", "lost 1")
	wait("a GPU lost", 1, 350.5, 1)
	play("down")
	wait("the engine stopped", 0, 0, 0)
	play("gpus 1", "life 2", "value 0 155 70", "value 0 156 123456")
	wait("another engine", 1, 70, 1)
	play("gpus 1", "life 2", "fail dcgmEntitiesGetLatestValues -33")
	wait("an error from each call", 0, 0, 0)
	p.Term(t)
}

// The default build names the build that is needed.
func TestDefaultBuildRefuses(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "replayd")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", plain, "replayd/cmd/replayd")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	said, err := exec.CommandContext(t.Context(), plain, "serve", "--config", configuration(t, dir), "--web.listen-address", "127.0.0.1:0").CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(string(said), "tag dcgm") {
		t.Errorf("want exit 2 and to be told of the tag, got %v:\n%s", err, said)
	}
}
