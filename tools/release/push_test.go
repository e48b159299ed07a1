package main

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// newTaggedRelease is a release of a repository of its own, whose only commit has the tag, with the image and the chart in its folder.
func newTaggedRelease(t *testing.T, tag string) *release {
	t.Helper()
	r := newTestRelease(t)
	root := t.TempDir()
	for _, file := range []string{"Dockerfile", "LICENSE", "NOTICE"} {
		if err := os.WriteFile(filepath.Join(root, file), readFile(t, r.root, file), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(root, "deploy"), os.DirFS(filepath.Join(r.root, "deploy"))); err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) string {
		own := []string{"-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "tag.gpgSign=false", "-c", "commit.gpgSign=false"}
		c := exec.CommandContext(t.Context(), "git", append(own, args...)...)
		c.Dir = root
		said, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, said)
		}
		return strings.TrimSpace(string(said))
	}
	git("init", "--quiet")
	git("add", "Dockerfile")
	git("commit", "--quiet", "--message", "a")
	git("tag", tag)
	v, err := parseVersion(tag)
	if err != nil {
		t.Fatal(err)
	}
	r.root, r.version, r.revision = root, v, git("rev-parse", "HEAD")
	made(t, r)
	return r
}

func made(t *testing.T, r *release) {
	t.Helper()
	for _, step := range []product{{"image", (*release).image}, {"chart", (*release).chart}, {"checksums", (*release).checksums}} {
		if err := step.make(r, t.Context()); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
	}
}

// owned sets the names of a registry in this process, and returns its host.
func owned(t *testing.T, r *release) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	r.owner.Image, r.owner.Charts = host+"/someone/replayd", "oci://"+host+"/someone/charts"
	return host
}

func got(t *testing.T, reference string) *remote.Descriptor {
	t.Helper()
	ref, err := name.ParseReference(reference)
	if err != nil {
		t.Fatal(err)
	}
	d, err := remote.Get(ref)
	if err != nil {
		t.Fatalf("%s: %v", reference, err)
	}
	return d
}

// The registry has the image of both platforms and the chart as helm reads it; the same push again changes nothing.
func TestPush(t *testing.T) {
	r := newTaggedRelease(t, "v1.2.3")
	host := owned(t, r)
	for range 2 {
		var said bytes.Buffer
		r.log = &said
		if err := r.push(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(said.String(), host+"/someone/replayd:1.2.3@sha256:") || !strings.Contains(said.String(), host+"/someone/charts/replayd:") {
			t.Errorf("want both references with digests, got %s", said.String())
		}
	}
	d := got(t, host+"/someone/replayd:1.2.3")
	index, err := d.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	if m, err := index.IndexManifest(); err != nil || len(m.Manifests) != 2 {
		t.Errorf("want two platforms, got %v, %v", m, err)
	}
	if latest := got(t, host+"/someone/replayd:latest"); latest.Digest != d.Digest {
		t.Errorf("want latest to be the version, got %v", latest.Digest)
	}

	c, err := r.readChart()
	if err != nil {
		t.Fatal(err)
	}
	var m v1.Manifest
	if err := json.Unmarshal(got(t, host+"/someone/charts/replayd:"+c.Version).Manifest, &m); err != nil {
		t.Fatal(err)
	}
	if m.Config.MediaType != chartConfig || len(m.Layers) != 1 || m.Layers[0].MediaType != chartContent {
		t.Fatalf("want a chart, got %+v", m)
	}
	blob := func(d v1.Descriptor) []byte {
		ref, err := name.NewDigest(host + "/someone/charts/replayd@" + d.Digest.String())
		if err != nil {
			t.Fatal(err)
		}
		layer, err := remote.Layer(ref)
		if err != nil {
			t.Fatal(err)
		}
		content, err := layer.Compressed()
		if err != nil {
			t.Fatal(err)
		}
		defer content.Close()
		data, err := io.ReadAll(content)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	if !bytes.Equal(blob(m.Layers[0]), readFile(t, r.out, c.file())) {
		t.Error("want the package of the folder")
	}
	var about struct{ Name, Version, AppVersion string }
	if err := json.Unmarshal(blob(m.Config), &about); err != nil || about.Name != "replayd" || about.Version != c.Version || about.AppVersion != "1.2.3" {
		t.Errorf("want Chart.yaml as the configuration, got %+v, %v", about, err)
	}
}

// A pre-release is not what those get who name no version.
func TestPushOfAPreRelease(t *testing.T) {
	r := newTaggedRelease(t, "v1.2.3-rc.1")
	host := owned(t, r)
	if err := r.push(t.Context()); err != nil {
		t.Fatal(err)
	}
	got(t, host+"/someone/replayd:1.2.3-rc.1")
	latest, err := name.ParseReference(host + "/someone/replayd:latest")
	if err != nil {
		t.Fatal(err)
	}
	if d, err := remote.Head(latest); err == nil {
		t.Errorf("want no latest, got %v", d.Digest)
	}
}

// A version in the registry keeps its bytes.
func TestPushOverwritesNothing(t *testing.T) {
	r := newTaggedRelease(t, "v1.2.3")
	host := owned(t, r)
	if err := r.push(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := got(t, host+"/someone/replayd:1.2.3").Digest
	if err := os.WriteFile(r.binary("", packaged[0]), []byte("another"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.root, chartFolder, "values.yaml"), []byte("mode: job\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	made(t, r)
	err := r.push(t.Context())
	for _, want := range []string{"/someone/replayd:1.2.3: want no such version yet", "/someone/charts/replayd:0.1.0: want no such version yet"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %s, got %v", want, err)
		}
	}
	if after := got(t, host+"/someone/replayd:1.2.3").Digest; after != before {
		t.Errorf("want %s as before, got %s", before, after)
	}
}

// Nothing is sent where it is not clear what, or where to.
func TestPushRefuses(t *testing.T) {
	for _, c := range []struct {
		change func(r *release)
		want   string
	}{
		{
			func(r *release) { r.owner.Image = "replayd" },
			`OWNER.yaml: image: want a registry and a name, such as ghcr.io/OWNER/replayd, got "replayd": nobody owns`,
		},
		{func(r *release) { r.owner.Charts = "" }, `OWNER.yaml: charts: want an address such as oci://ghcr.io/OWNER/charts, got ""`},
		{func(r *release) { r.version = version{stamp: "v1.2.4", core: "1.2.4"} }, `want a tag of the commit`},
		{func(r *release) { r.version.dirty = true }, `want a tag of the commit`},
		{func(r *release) { r.out = t.TempDir() }, "want the files of make release"},
		{func(r *release) {
			if err := os.WriteFile(r.file(".oci.tar"), []byte("x"), 0o644); err != nil {
				t.Error(err)
			}
		}, "replayd-1.2.3.oci.tar: want the file that sha256sums.txt lists"},
	} {
		r := newTaggedRelease(t, "v1.2.3")
		host := owned(t, r)
		c.change(r)
		if err := r.push(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("want %s, got %v", c.want, err)
		}
		tag, err := name.ParseReference(host + "/someone/replayd:1.2.3")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := remote.Head(tag); err == nil {
			t.Errorf("%s: want nothing pushed", c.want)
		}
	}
}
