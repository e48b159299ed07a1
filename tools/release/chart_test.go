package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The package has every file of the chart as it is, but for the version of replayd and the values that only tests use.
func TestChart(t *testing.T) {
	r := newTestRelease(t)
	if err := r.chart(t.Context()); err != nil {
		t.Fatal(err)
	}
	packages, err := filepath.Glob(filepath.Join(r.out, "replayd-*.tgz"))
	if err != nil || len(packages) != 1 {
		t.Fatalf("want one package, got %v, %v", packages, err)
	}
	all := readTar(t, bytes.NewReader(unzip(t, readFile(t, packages[0]))))
	var names []string
	for _, s := range all {
		if name, ok := strings.CutPrefix(s.header.Name, "replayd/"); ok && name != "" && !strings.HasSuffix(name, "/") {
			names = append(names, name)
		}
	}
	var want []string
	top := filepath.Join(r.root, chartFolder)
	err = fs.WalkDir(os.DirFS(top), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasPrefix(path, "ci/") {
			want = append(want, path)
			if got, text := find(t, all, "replayd/"+path), string(readFile(t, top, path)); path != "Chart.yaml" && got != text {
				t.Errorf("%s: want it as it is", path)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	slices.Sort(names)
	if len(want) < 20 || !slices.Equal(names, want) {
		t.Errorf("want\n%v\ngot\n%v", want, names)
	}
	before, got := string(readFile(t, top, "Chart.yaml")), find(t, all, "replayd/Chart.yaml")
	if !strings.Contains(got, "\nappVersion: \"1.2.3-rc.1\"\n") || appVersion.ReplaceAllString(got, "") != appVersion.ReplaceAllString(before, "") {
		t.Errorf("want Chart.yaml with another appVersion, got\n%s", got)
	}
}
