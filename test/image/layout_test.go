//go:build real && release

package image_test

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"replayd/test/outside"
)

// release returns the folder of the release, and its version without the "v".
func release(t *testing.T) (dist, version string) {
	t.Helper()
	if dist = os.Getenv("RELEASE_DIST"); dist == "" {
		dist = filepath.Join(repository, "dist")
	}
	images, err := filepath.Glob(filepath.Join(dist, "replayd-*.oci.tar"))
	if err != nil || len(images) != 1 {
		t.Fatalf("%s: want one replayd-VERSION.oci.tar, got %d, %v; `make release` makes it", dist, len(images), err)
	}
	return dist, strings.TrimSuffix(strings.TrimPrefix(filepath.Base(images[0]), "replayd-"), ".oci.tar")
}

// A descriptor names a blob, as in the OCI image specification.
type descriptor struct {
	MediaType string
	Digest    string
	Size      int64
	Platform  struct{ OS, Architecture string }
}

// A layout is an unpacked OCI image layout.
type layout string

// open unpacks the image of the release.
func open(t *testing.T) layout {
	t.Helper()
	dist, version := release(t)
	dir := t.TempDir()
	if said, err := exec.CommandContext(t.Context(), "tar", "-xf", filepath.Join(dist, "replayd-"+version+".oci.tar"), "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, said)
	}
	return layout(dir)
}

func (l layout) file(name string) string { return filepath.Join(string(l), name) }

// blob returns the path of a blob, after its digest and its size were checked.
func (l layout) blob(t *testing.T, d descriptor) string {
	t.Helper()
	algorithm, want, _ := strings.Cut(d.Digest, ":")
	path := l.file(filepath.Join("blobs", algorithm, want))
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := sha256.Sum256(text); hex.EncodeToString(got[:]) != want || int64(len(text)) != d.Size {
		t.Fatalf("%s: want %d bytes with that digest, got %d with %x", d.Digest, d.Size, len(text), got)
	}
	return path
}

func decode[T any](t *testing.T, path string) (value T) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &value)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return value
}

type imageManifest struct {
	Config descriptor
	Layers []descriptor
}

// manifests returns the manifests of the image by platform.
func (l layout) manifests(t *testing.T) map[string]imageManifest {
	t.Helper()
	if v := decode[struct{ ImageLayoutVersion string }](t, l.file("oci-layout")).ImageLayoutVersion; v != "1.0.0" {
		t.Fatalf("oci-layout: want version 1.0.0, got %q", v)
	}
	type index struct{ Manifests []descriptor }
	top := decode[index](t, l.file("index.json"))
	if len(top.Manifests) == 1 && strings.Contains(top.Manifests[0].MediaType, "index") {
		top = decode[index](t, l.blob(t, top.Manifests[0]))
	}
	all := map[string]imageManifest{}
	for _, d := range top.Manifests {
		all[d.Platform.OS+"/"+d.Platform.Architecture] = decode[imageManifest](t, l.blob(t, d))
	}
	return all
}

// unpack puts the files of an image into a root, as a container engine does.
func (l layout) unpack(t *testing.T, m imageManifest, root string) {
	t.Helper()
	for _, d := range m.Layers {
		c := exec.CommandContext(t.Context(), "tar", "--extract", "--auto-compress", "--numeric-owner", "--same-owner", "--preserve-permissions", "--file", l.blob(t, d), "--directory", root)
		if strings.HasSuffix(d.MediaType, "+gzip") {
			c.Args = append(c.Args, "--gzip")
		}
		if said, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", d.Digest, err, said)
		}
	}
}

// The image of a release has the platforms, the files and the configuration of the Dockerfile's default stage. Only two
// files may have other bytes: the binary, with its stamp, and the certificates, which the Dockerfile takes from its base.
func TestReleasedImage(t *testing.T) {
	outside.NeedRoot(t)
	l := open(t)
	_, version := release(t)
	all := l.manifests(t)
	if got := slices.Sorted(maps.Keys(all)); !slices.Equal(got, []string{"linux/amd64", "linux/arm64"}) {
		t.Fatalf("want two platforms, got %v", got)
	}
	want := t.TempDir()
	assemble(t, "replayd", want)
	s := named(t, "replayd")
	for name, machine := range map[string]elf.Machine{"linux/amd64": elf.EM_X86_64, "linux/arm64": elf.EM_AARCH64} {
		got := t.TempDir()
		l.unpack(t, all[name], got)
		sameFiles(t, name, want, got)
		f, err := elf.Open(filepath.Join(got, "usr/bin/replayd"))
		if err != nil {
			t.Fatal(err)
		}
		if f.Machine != machine {
			t.Errorf("%s: want a binary for %v, got %v", name, machine, f.Machine)
		}
		f.Close()
		bundle, err := os.ReadFile(filepath.Join(got, certificates))
		if n := bytes.Count(bundle, []byte("BEGIN CERTIFICATE")); err != nil || n < 100 {
			t.Errorf("%s: want a hundred authorities or more, got %d, %v", name, n, err)
		}
		sameConfiguration(t, name, l.blob(t, all[name].Config), s, version)
	}
}

func sameFiles(t *testing.T, name, want, got string) {
	t.Helper()
	a, b := tree(t, want), tree(t, got)
	for path, f := range a {
		other, ok := b[path]
		if !ok || other.rights != f.rights {
			t.Errorf("%s: %s: want %s as the Dockerfile has it, got %q", name, path, f.rights, other.rights)
			continue
		}
		if strings.HasSuffix(path, "/") || path == "usr/bin/replayd" || path == certificates[1:] {
			continue
		}
		x, err := os.ReadFile(filepath.Join(want, path))
		y, err2 := os.ReadFile(filepath.Join(got, path))
		if err != nil || err2 != nil || !bytes.Equal(x, y) {
			t.Errorf("%s: %s: want the bytes of the Dockerfile's, %d, got %d, %v, %v", name, path, len(x), len(y), err, err2)
		}
	}
	for path := range b {
		if _, ok := a[path]; !ok {
			t.Errorf("%s: %s: the Dockerfile has no such file", name, path)
		}
	}
}

// sameConfiguration compares what the image tells a container engine with the instructions of the stage.
func sameConfiguration(t *testing.T, name, path string, s stage, version string) {
	t.Helper()
	c := decode[struct {
		OS, Architecture string
		Config           struct {
			User            string
			Entrypoint, Cmd []string
			ExposedPorts    map[string]struct{}
			Labels          map[string]string
			Healthcheck     *struct {
				Test                                          []string
				Interval, Timeout, StartPeriod, StartInterval time.Duration
				Retries                                       int
			}
		}
	}](t, path)
	if got := c.OS + "/" + c.Architecture; got != name {
		t.Errorf("%s: its configuration is for %s", name, got)
	}
	if want, got := s.command(t), append(slices.Clone(c.Config.Entrypoint), c.Config.Cmd...); !slices.Equal(want, got) {
		t.Errorf("%s: want the command %q, got %q", name, want, got)
	}
	if want, got := s.last(t, "USER").text, c.Config.User; got != want {
		t.Errorf("%s: want the user %s, got %s", name, want, got)
	}
	if _, ok := c.Config.ExposedPorts[s.last(t, "EXPOSE").text+"/tcp"]; !ok || len(c.Config.ExposedPorts) != 1 {
		t.Errorf("%s: want the port of EXPOSE, got %v", name, c.Config.ExposedPorts)
	}
	const oci = "org.opencontainers.image."
	want, got := s.labels(t), c.Config.Labels
	if got[oci+"version"] != version || len(got[oci+"revision"]) != 40 {
		t.Errorf("%s: want version %s and a commit, got %s and %s", name, version, got[oci+"version"], got[oci+"revision"])
	}
	for key, value := range want {
		if got[key] == "" || !strings.HasPrefix(value, "$") && got[key] != value {
			t.Errorf("%s: want the label %s %q, got %q", name, key, value, got[key])
		}
	}
	h, flags := c.Config.Healthcheck, s.last(t, "HEALTHCHECK").flags
	if h == nil {
		t.Fatalf("%s: want a health check", name)
	}
	if want := append([]string{"CMD"}, s.probe(t)...); !slices.Equal(h.Test, want) {
		t.Errorf("%s: want the health check %q, got %q", name, want, h.Test)
	}
	for flag, got := range map[string]string{
		"interval": h.Interval.String(), "timeout": h.Timeout.String(), "start-period": h.StartPeriod.String(),
		"start-interval": h.StartInterval.String(), "retries": fmt.Sprint(h.Retries),
	} {
		if flags[flag] != got {
			t.Errorf("%s: want the health check with --%s=%s, got %s", name, flag, flags[flag], got)
		}
	}
}
