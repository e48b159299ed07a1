package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// An artifact is an image of one layer whose configuration is no image's: a chart, for example. It is what partial.CompressedImageCore asks.
type artifact struct {
	manifest, config []byte
	layer            v1.Layer
}

func newArtifact(configKind types.MediaType, config []byte, kind types.MediaType, content []byte, annotations map[string]string) v1.Image {
	describe := func(kind types.MediaType, data []byte) v1.Descriptor {
		// SHA256 fails only where reading does, and this reads from memory.
		h, n, _ := v1.SHA256(bytes.NewReader(data))
		return v1.Descriptor{MediaType: kind, Size: n, Digest: h}
	}
	m := v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Config: describe(configKind, config),
		Layers: []v1.Descriptor{describe(kind, content)}, Annotations: annotations,
	}
	manifest, err := json.Marshal(m)
	if err != nil {
		panic(err) // a struct of strings and numbers
	}
	image, err := partial.CompressedToImage(&artifact{manifest, config, static.NewLayer(content, kind)})
	if err != nil {
		panic(err) // it only wraps the artifact
	}
	return image
}

func (a *artifact) RawManifest() ([]byte, error)        { return a.manifest, nil }
func (a *artifact) RawConfigFile() ([]byte, error)      { return a.config, nil }
func (a *artifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }
func (a *artifact) LayerByDigest(h v1.Hash) (partial.CompressedLayer, error) {
	if got, err := a.layer.Digest(); err != nil || got != h {
		return nil, fmt.Errorf("want the layer %s, got %w", h, errors.Join(err, fmt.Errorf("%s", got)))
	}
	return a.layer, nil
}

// unpack writes the files of a tar that this program made into a new folder.
func unpack(file, to string) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("%w: want the files of make release", err)
	}
	defer f.Close()
	for t := tar.NewReader(f); ; {
		h, err := t.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if !filepath.IsLocal(h.Name) {
			return fmt.Errorf("%s: want names inside of the archive, got %s", file, h.Name)
		}
		path := filepath.Join(to, h.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if h.Typeflag == tar.TypeDir {
			continue
		}
		if err := create(path, func(w io.Writer) error { _, err := io.Copy(w, t); return err }); err != nil {
			return err
		}
	}
}
