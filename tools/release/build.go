package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A platform is one that Go builds for. Only Linux on amd64 and arm64 has packages, an image and a binary with libdcgm.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "-" + p.arch }

// make suite NAME=release-verify runs those for Linux, some of them under an emulator; for the others only go vet
// passes. Windows and 32 bits do not build.
var platforms = []platform{
	{"linux", "amd64"},
	{"linux", "arm64"},
	{"linux", "ppc64le"},
	{"linux", "riscv64"},
	{"linux", "s390x"},
	{"darwin", "amd64"},
	{"darwin", "arm64"},
	{"freebsd", "amd64"},
}

// packaged are the platforms of packages, image and libdcgm.
var packaged = platforms[:2]

const stampPackage = "github.com/prometheus/common/version"

// buildArguments are those of `make build` and `make build-dcgm`. The branch is always HEAD: which one is checked out is not a property of
// the commit, and would make two builds of it differ.
func (r *release) buildArguments(dcgm bool, to string) []string {
	stamps := fmt.Sprintf("-X %[1]s.Version=%[2]s -X %[1]s.Revision=%[3]s -X %[1]s.Branch=HEAD -X %[1]s.BuildDate=%[4]s",
		stampPackage, r.version.stamp, r.revision, r.at.Format("20060102-15:04:05"))
	args := []string{"build"}
	if dcgm {
		args = append(args, "-tags", "dcgm")
	}
	return append(args, "-buildvcs=false", "-trimpath", "-ldflags", stamps, "-o", to, "./cmd/replayd")
}

// buildEnvironment leaves nothing of this machine's settings that would change the bytes.
func buildEnvironment(p platform) []string {
	env := []string{"GOOS=" + p.os, "GOARCH=" + p.arch, "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off", "GOEXPERIMENT="}
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		switch name {
		case "GOOS", "GOARCH", "CGO_ENABLED", "GOFLAGS", "GOWORK", "GOEXPERIMENT", "GOAMD64", "GOARM64", "GOPPC64", "GORISCV64", "GOFIPS140":
		default:
			env = append(env, e)
		}
	}
	return env
}

// binary is the path of a built binary; with is "-dcgm" or empty. Its name is replayd, because its bill of materials says it.
func (r *release) binary(with string, p platform) string {
	return filepath.Join(r.work, p.String()+with, "replayd")
}

// binaries builds replayd for every platform of the release, and with the tag dcgm for those that have packages.
func (r *release) binaries(ctx context.Context) error {
	for _, p := range r.platforms {
		if err := r.build(ctx, p, false); err != nil {
			return err
		}
	}
	for _, p := range packaged {
		if err := r.build(ctx, p, true); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) build(ctx context.Context, p platform, dcgm bool) error {
	with := ""
	if dcgm {
		with = "-dcgm"
	}
	c := exec.CommandContext(ctx, "go", r.buildArguments(dcgm, r.binary(with, p))...)
	c.Dir, c.Env = r.root, buildEnvironment(p)
	if said, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("replayd%s for %s: %w\n%s", with, p, err, said)
	}
	return nil
}
