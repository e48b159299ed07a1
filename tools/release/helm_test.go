//go:build real

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func runHelm(t *testing.T, helm string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), helm, args...)
	home := t.TempDir()
	c.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	said, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("helm %v: %v: %s", args, err, said)
	}
	return string(said)
}

// Helm itself reads the package, and pulls the same bytes from the registry.
func TestHelmTakesTheChart(t *testing.T) {
	r := newTaggedRelease(t, "v1.2.3")
	host := owned(t, r)
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	helm, err := (&release{root: repository}).helm(t.Context())
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	c, err := r.readChart()
	if err != nil {
		t.Fatal(err)
	}
	said := runHelm(t, helm, "show", "chart", filepath.Join(r.out, c.file()))
	for _, want := range []string{"appVersion: 1.2.3\n", "\nversion: " + c.Version + "\n"} {
		if !strings.Contains(said, want) {
			t.Errorf("want %q, got %s", want, said)
		}
	}
	rendered := runHelm(t, helm, "template", "a", filepath.Join(r.out, c.file()), "--set", "image.repository=a", "--set", "target.url=http://a")
	if !strings.Contains(rendered, "image: a:1.2.3\n") {
		t.Errorf("want the image of this version, got %s", rendered)
	}
	if err := r.push(t.Context()); err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	runHelm(t, helm, "pull", "oci://"+host+"/someone/charts/replayd", "--version", c.Version, "--plain-http", "--destination", to)
	if string(readFile(t, to, c.file())) != string(readFile(t, r.out, c.file())) {
		t.Error("want the package that was pushed")
	}
}

// The manifests are the chart's objects, without a namespace, with the image of this version.
func TestManifests(t *testing.T) {
	r := newTestRelease(t)
	if err := r.chart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.manifests(t.Context()); err != nil {
		if os.Getenv("CI") == "true" || !strings.Contains(err.Error(), "exit status 3") {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	text := string(readFile(t, r.file(".kubernetes.yaml")))
	for _, kind := range []string{"ServiceAccount", "ConfigMap", "Service", "Deployment"} {
		if !strings.Contains(text, "\nkind: "+kind+"\n") {
			t.Errorf("want a %s, got %s", kind, text)
		}
	}
	if strings.Contains(text, "namespace:") || !strings.Contains(text, "      url: "+exampleTarget+"\n") {
		t.Errorf("want no namespace and the example's address, got %s", text)
	}
	if !strings.Contains(text, "image: replayd:1.2.3-rc.1\n") {
		t.Errorf("want the image of this version, got %s", text)
	}
}
