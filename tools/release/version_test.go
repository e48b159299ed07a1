package main

import (
	"os/exec"
	"strings"
	"testing"
)

func TestVersions(t *testing.T) {
	for _, c := range []struct {
		described, name, pack string
		tagged                bool
	}{
		{"v0.1.0", "0.1.0", "0.1.0", true},
		{"0.1.0", "0.1.0", "0.1.0", true},
		{"v0.1.0-rc.1", "0.1.0-rc.1", "0.1.0~rc.1", true},
		{"v0.1.0-rc-1", "0.1.0-rc-1", "0.1.0~rc.1", true},
		{"v0.1.0-3-gabc1234", "0.1.0-3-gabc1234", "0.1.0+3.gabc1234", false},
		{"v0.1.0-rc.1-3-gabc1234", "0.1.0-rc.1-3-gabc1234", "0.1.0~rc.1+3.gabc1234", false},
		{"v0.1.0-dirty", "0.1.0-dirty", "0.1.0+dirty", false},
		{"v0.1.0-3-gabc1234-dirty", "0.1.0-3-gabc1234-dirty", "0.1.0+3.gabc1234+dirty", false},
		{"0.0.0-dev", "0.0.0-dev", "0.0.0~dev", false},
	} {
		v, err := parseVersion(c.described)
		if err != nil {
			t.Error(err)
			continue
		}
		if v.String() != c.name || v.pack() != c.pack || v.tagged() != c.tagged {
			t.Errorf("%s: want %s, %s, tagged %v, got %s, %s, %v", c.described, c.name, c.pack, c.tagged, v, v.pack(), v.tagged())
		}
	}
	for _, bad := range []string{"", "v1", "v1.2", "latest", "v1.2.3-", "v1.2.3 ", "../v1.2.3", "v1.2.3-a_b"} {
		if v, err := parseVersion(bad); err == nil {
			t.Errorf("%q: want it refused, got %s", bad, v)
		}
	}
}

// dpkg sorts the package's versions as the commits follow one another.
func TestVersionsSort(t *testing.T) {
	dpkg, err := exec.LookPath("dpkg")
	if err != nil {
		t.Skip("it needs dpkg: ", err)
	}
	order := []string{
		"0.0.0-dev", "v0.1.0-beta.2", "v0.1.0-rc.1", "v0.1.0-rc.1-3-gabc1234", "v0.1.0-rc.10", "v0.1.0",
		"v0.1.0-2-gfff0000", "v0.1.0-11-gabc1234", "v0.1.1",
	}
	for i := range order[:len(order)-1] {
		a, b := packedVersion(t, order[i]), packedVersion(t, order[i+1])
		out, err := exec.CommandContext(t.Context(), dpkg, "--compare-versions", a, "lt", b).CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != "" {
			t.Errorf("want %s before %s: %v %s", a, b, err, out)
		}
	}
}

func packedVersion(t *testing.T, described string) string {
	t.Helper()
	v, err := parseVersion(described)
	if err != nil {
		t.Fatal(err)
	}
	return v.pack()
}
