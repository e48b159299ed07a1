package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// The builds of a release are those of the Makefile, but for where they write.
func TestBuildArguments(t *testing.T) {
	r := newTestRelease(t)
	for target, dcgm := range map[string]bool{"build": false, "build-dcgm": true} {
		c := exec.CommandContext(t.Context(), "make", "--dry-run", "--no-print-directory", target,
			"VERSION="+r.version.stamp, "REVISION="+r.revision, "BRANCH=HEAD", "DATE="+r.at.Format("20060102-15:04:05"))
		c.Dir = r.root
		said, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		args := r.buildArguments(dcgm, "bin/replay"+map[bool]string{false: "d", true: "d-dcgm"}[dcgm])
		for i, arg := range args {
			if strings.Contains(arg, " ") {
				args[i] = "'" + arg + "'"
			}
		}
		if got, want := "go "+strings.Join(args, " "), strings.TrimSpace(string(said)); got != want {
			t.Errorf("%s: want\n%s\ngot\n%s", target, want, got)
		}
	}
}

// What this machine's environment says about builds does not come into them.
func TestBuildEnvironment(t *testing.T) {
	t.Setenv("GOFLAGS", "-race")
	t.Setenv("GOAMD64", "v3")
	t.Setenv("GOOS", "plan9")
	env := buildEnvironment(platform{"linux", "arm64"})
	for _, want := range []string{"GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0", "GOFLAGS=-mod=readonly"} {
		if !slices.Contains(env, want) {
			t.Errorf("want %s, got %v", want, env)
		}
	}
	for _, e := range env {
		if e == "GOFLAGS=-race" || e == "GOAMD64=v3" || e == "GOOS=plan9" {
			t.Errorf("want no %s", e)
		}
	}
}
