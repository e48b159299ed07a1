package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// unpackTar writes the files of a tar into a folder.
func unpackTar(t *testing.T, data []byte) string {
	t.Helper()
	dir := t.TempDir()
	for _, s := range readTar(t, bytes.NewReader(data)) {
		path := filepath.Join(dir, s.header.Name)
		if s.header.Typeflag == tar.TypeDir {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(path, []byte(s.text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// pulled returns the index of an image layout and its images by platform, all of whose digests and sizes are right.
func pulled(t *testing.T, data []byte) (v1.ImageIndex, map[string]v1.Image) {
	t.Helper()
	top, err := layout.ImageIndexFromPath(unpackTar(t, data))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(top); err != nil {
		t.Fatal(err)
	}
	m, err := top.IndexManifest()
	if err != nil || len(m.Manifests) != 1 {
		t.Fatalf("want one image in index.json, got %v, %v", m, err)
	}
	index, err := top.ImageIndex(m.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	images := map[string]v1.Image{}
	for _, d := range manifest.Manifests {
		image, err := index.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		images[d.Platform.String()] = image
	}
	return index, images
}

func madeImage(t *testing.T) (*release, []byte) {
	t.Helper()
	r := newTestRelease(t)
	if err := r.image(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r, readFile(t, r.file(".oci.tar"))
}

// Each image has the files that test/image sees in the Dockerfile's, with the same owners and modes, and its own binary.
func TestImageFiles(t *testing.T) {
	_, data := madeImage(t)
	_, images := pulled(t, data)
	if got := slices.Sorted(maps.Keys(images)); !slices.Equal(got, []string{"linux/amd64", "linux/arm64"}) {
		t.Fatalf("want two platforms, got %v", got)
	}
	want := map[string]string{
		"etc/group": "644 0", "etc/passwd": "644 0", "etc/ssl/certs/ca-certificates.crt": "644 0", "tmp/": "1777 0", "usr/bin/replayd": "755 0",
		"usr/share/doc/replayd/LICENSE": "644 0", "usr/share/doc/replayd/NOTICE": "644 0", "var/lib/replayd/": "750 65532",
	}
	parents := strings.Fields("etc/ etc/ssl/ etc/ssl/certs/ usr/ usr/bin/ usr/share/ usr/share/doc/ usr/share/doc/replayd/ var/ var/lib/")
	for platform, image := range images {
		layers, err := image.Layers()
		if err != nil || len(layers) != 2 {
			t.Fatalf("want two layers, got %v, %v", layers, err)
		}
		got := map[string]string{}
		for _, layer := range layers {
			content, err := layer.Uncompressed()
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range readTar(t, content) {
				h := s.header
				if !h.ModTime.Equal(testTime) || h.Uid != h.Gid {
					t.Errorf("%s: %s: want %v and one number, got %v, %d:%d", platform, h.Name, testTime, h.ModTime, h.Uid, h.Gid)
				}
				if h.Name == "usr/bin/replayd" && s.text != "replayd for "+strings.ReplaceAll(platform, "/", "-")+"\n" {
					t.Errorf("%s: want its binary, got %q", platform, s.text)
				}
				if h.Name == "etc/passwd" && !strings.HasPrefix(s.text, "nonroot:x:65532:65532:") {
					t.Errorf("%s: want the user 65532, got %q", platform, s.text)
				}
				rights := fmt.Sprintf("%o %d", h.Mode, h.Uid)
				if slices.Contains(parents, h.Name) {
					if rights != "755 0" {
						t.Errorf("%s: %s: want 755 of root, got %s", platform, h.Name, rights)
					}
					continue
				}
				got[h.Name] = rights
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: want\n%v\ngot\n%v", platform, want, got)
		}
	}
}

// The configuration is the Dockerfile's: the words here are those of its last stage.
func TestImageConfig(t *testing.T) {
	r, data := madeImage(t)
	index, images := pulled(t, data)
	for platform, image := range images {
		raw, err := image.RawConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Created          time.Time
			OS, Architecture string
			Config           struct {
				User                     string
				Labels                   map[string]string
				Entrypoint, Cmd          []string
				ExposedPorts             map[string]struct{}
				Healthcheck              health
				Env, Volumes, StopSignal any
			}
		}
		if err := json.Unmarshal(raw, &got); err != nil {
			t.Fatal(err)
		}
		c := got.Config
		if got.OS+"/"+got.Architecture != platform || !got.Created.Equal(testTime) {
			t.Errorf("want %s at %v, got %s/%s, %v", platform, testTime, got.OS, got.Architecture, got.Created)
		}
		if c.User != "65532:65532" || len(c.ExposedPorts) != 1 || !slices.Equal(c.Entrypoint, []string{"/usr/bin/replayd"}) ||
			!slices.Equal(c.Cmd, []string{"serve", "--config", "/etc/replayd/replayd.yaml"}) {
			t.Errorf("%s: want the Dockerfile's user, port and command, got %+v", platform, c)
		}
		if _, ok := c.ExposedPorts["9797/tcp"]; !ok {
			t.Errorf("%s: want port 9797, got %v", platform, c.ExposedPorts)
		}
		want := health{
			Test: []string{"CMD", "/usr/bin/replayd", "health"}, Interval: 30 * time.Second, Timeout: 6 * time.Second,
			StartPeriod: 10 * time.Second, StartInterval: time.Second, Retries: 3,
		}
		if h := c.Healthcheck; !slices.Equal(h.Test, want.Test) || h.Interval != want.Interval || h.Timeout != want.Timeout ||
			h.StartPeriod != want.StartPeriod || h.StartInterval != want.StartInterval || h.Retries != want.Retries {
			t.Errorf("%s: want %+v, got %+v", platform, want, h)
		}
		manifest, err := image.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(manifest.Annotations, c.Labels) {
			t.Errorf("%s: want the labels as annotations, got %v", platform, manifest.Annotations)
		}
		for key, want := range map[string]string{"version": "1.2.3-rc.1", "revision": r.revision, "title": "replayd", "licenses": "Apache-2.0"} {
			if got := c.Labels["org.opencontainers.image."+key]; got != want {
				t.Errorf("%s: want the label %s %s, got %q", platform, key, want, got)
			}
		}
	}
	m, err := index.IndexManifest()
	if err != nil || m.Annotations["org.opencontainers.image.version"] != "1.2.3-rc.1" {
		t.Errorf("want annotations on the index, got %v, %v", m.Annotations, err)
	}
}

// index.json names the image for those who load it.
func TestImageName(t *testing.T) {
	_, data := madeImage(t)
	var index v1.IndexManifest
	if err := json.Unmarshal([]byte(find(t, readTar(t, bytes.NewReader(data)), "index.json")), &index); err != nil {
		t.Fatal(err)
	}
	a := index.Manifests[0].Annotations
	if a["org.opencontainers.image.ref.name"] != "1.2.3-rc.1" || a["io.containerd.image.name"] != "docker.io/library/replayd:1.2.3-rc.1" {
		t.Errorf("want the tag and the name, got %v", a)
	}
}

// Every certificate can be parsed and signs others; well-known roots are there.
func TestCertificates(t *testing.T) {
	names := map[string]bool{}
	rest := certificates()
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil || !c.IsCA {
			t.Fatalf("want a certificate authority, got %v, %v", c, err)
		}
		names[c.Subject.CommonName] = true
	}
	if len(rest) != 0 || len(names) < 100 || !names["ISRG Root X1"] || !names["DigiCert Global Root G2"] {
		t.Errorf("want 100 roots or more and no other text, got %d, %q", len(names), rest)
	}
}
