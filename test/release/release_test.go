//go:build real && release

// Package release_test judges the files of a release as those who get nothing else would: it installs the deb on a
// Debian machine with its own systemd, unpacks the rpm and the archive, and adds up the checksums. It reads the folder
// RELEASE_DIST, dist in the checkout by default, which `make release` fills. `make suite NAME=release-verify` runs it,
// and the tests of the image and of the chart that read the same folder.
package release_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const repository = "../.."

// dist is the folder of the release, and version its version without the "v".
var dist, version string

func TestMain(m *testing.M) {
	if err := find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func find() (err error) {
	dist = os.Getenv("RELEASE_DIST")
	if dist == "" {
		dist = filepath.Join(repository, "dist")
	}
	if dist, err = filepath.Abs(dist); err != nil {
		return err
	}
	begin, end := "replayd-", "."+platform+".tar.gz"
	archives, err := filepath.Glob(filepath.Join(dist, begin+"[0-9]*"+end))
	if err != nil {
		return err
	}
	if len(archives) != 1 {
		return fmt.Errorf("%s: want one %sVERSION%s, got %d; `make release` makes it", dist, begin, end, len(archives))
	}
	version = strings.TrimSuffix(strings.TrimPrefix(filepath.Base(archives[0]), begin), end)
	return nil
}

// platform is the part of a file's name for this machine.
var platform = "linux-" + runtime.GOARCH

func at(name string) string { return filepath.Join(dist, name) }

// read returns the text of a file.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// one returns the only file of the release with this pattern.
func one(t *testing.T, pattern string) string {
	t.Helper()
	names, err := filepath.Glob(at(pattern))
	if err != nil || len(names) != 1 {
		t.Fatalf("want one %s in %s, got %v, %v", pattern, dist, names, err)
	}
	return names[0]
}
