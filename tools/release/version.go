package main

import (
	"fmt"
	"regexp"
	"strings"
)

// A version is one that git describe gives: v0.1.0, v0.1.0-rc.1, v0.1.0-3-gabc1234, each with -dirty where the tree has changes.
type version struct {
	stamp      string // as make build stamps it into the binary
	core       string // 0.1.0
	prerelease string // rc.1
	commits    string // since the tag
	hash       string
	dirty      bool
}

var versions = regexp.MustCompile(`^v?(\d+\.\d+\.\d+)(?:-([0-9A-Za-z][0-9A-Za-z.-]*?))??(?:-(\d+)-g([0-9a-f]+))?(-dirty)?$`)

func parseVersion(s string) (version, error) {
	m := versions.FindStringSubmatch(s)
	if m == nil {
		return version{}, fmt.Errorf("-version: want X.Y.Z, X.Y.Z-PRERELEASE or what git describe gives, got %q", s)
	}
	return version{stamp: s, core: m[1], prerelease: m[2], commits: m[3], hash: m[4], dirty: m[5] != ""}, nil
}

// String is the version in the names of files, in the chart and as the image's tag: without the v of the tag.
func (v version) String() string { return strings.TrimPrefix(v.stamp, "v") }

// pack is the version of the Debian and RPM packages, which both sort by the same rules: ~ comes before the version that it follows,
// + after it. So 0.1.0~rc.1 is older than 0.1.0, and 0.1.0+3.gabc1234 (three commits later) is newer.
func (v version) pack() string {
	s := v.core
	if v.prerelease != "" {
		s += "~" + strings.ReplaceAll(v.prerelease, "-", ".")
	}
	if v.commits != "" {
		s += "+" + v.commits + ".g" + v.hash
	}
	if v.dirty {
		s += "+dirty"
	}
	return s
}

// tagged tells a version that a tag can have. 0.0.0 is what the Makefile takes where there is no tag.
func (v version) tagged() bool { return v.core != "0.0.0" && v.commits == "" && !v.dirty }
