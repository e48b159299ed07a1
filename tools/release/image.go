package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// A blobStore is an OCI image layout (github.com/opencontainers/image-spec, image-layout.md) in memory: blobs by their digests.
type blobStore struct{ blobs map[string][]byte }

// add stores a blob and returns its descriptor.
func (l *blobStore) add(kind types.MediaType, data []byte) v1.Descriptor {
	h := sha256.Sum256(data)
	digest := hex.EncodeToString(h[:])
	l.blobs[digest] = data
	return v1.Descriptor{MediaType: kind, Size: int64(len(data)), Digest: v1.Hash{Algorithm: "sha256", Hex: digest}}
}

// addJSON stores a document. Go writes the keys of a map in order, so equal values give equal bytes.
func (l *blobStore) addJSON(kind types.MediaType, value any) (v1.Descriptor, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return v1.Descriptor{}, err
	}
	return l.add(kind, data), nil
}

// An imageConfig is one of OCI with Docker's health check, which go-containerregistry knows without its start interval.
type imageConfig struct {
	v1.ConfigFile
	Config struct {
		v1.Config
		Healthcheck health `json:"Healthcheck"`
	} `json:"config"`
}

// image writes an OCI layout with an index of one image for each platform that has packages.
func (r *release) image(context.Context) error {
	recipe, err := readRecipe(r.root, r.imageArguments())
	if err != nil {
		return err
	}
	l := &blobStore{blobs: map[string][]byte{}}
	index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Annotations: recipe.labels}
	for _, p := range packaged {
		manifest, err := r.platformImage(l, recipe, p)
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		index.Manifests = append(index.Manifests, manifest)
	}
	d, err := l.addJSON(types.OCIImageIndex, index)
	if err != nil {
		return err
	}
	// Podman and skopeo read the tag from the first annotation, containerd the whole name from the second.
	d.Annotations = map[string]string{
		"org.opencontainers.image.ref.name": r.version.String(),
		"io.containerd.image.name":          qualified(r.owner.Image) + ":" + r.version.String(),
	}
	top, err := json.Marshal(v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{d}})
	if err != nil {
		return err
	}
	files := []entry{
		{path: "index.json", mode: 0o644, data: top},
		{path: "oci-layout", mode: 0o644, data: []byte(`{"imageLayoutVersion":"1.0.0"}`)},
	}
	for digest, data := range l.blobs {
		files = append(files, entry{path: "blobs/sha256/" + digest, mode: 0o644, data: data})
	}
	return create(r.file(".oci.tar"), func(w io.Writer) error { return writeTar(w, folders(files), r.at) })
}

// qualified is the name that containerd and a kubelet look for: one without a registry is in docker.io/library, also where it only lies on
// the node.
func qualified(image string) string {
	if strings.Contains(image, "/") {
		return image
	}
	return "docker.io/library/" + image
}

// imageArguments are the build arguments of the Dockerfile's last stage. The label of the version is what the image's tag is.
func (r *release) imageArguments() map[string]string {
	return map[string]string{"VERSION": r.version.String(), "REVISION": r.revision}
}

// platformImage adds the image for a platform, of two layers: the binary, and beneath it what both platforms have.
func (r *release) platformImage(l *blobStore, recipe *recipe, p platform) (v1.Descriptor, error) {
	config := imageConfig{}
	config.Created = v1.Time{Time: r.at}
	config.OS, config.Architecture = p.os, p.arch
	config.RootFS.Type = "layers"
	config.Config.User, config.Config.Labels = recipe.user, recipe.labels
	config.Config.Entrypoint, config.Config.Cmd = recipe.entrypoint, recipe.command
	config.Config.Healthcheck = recipe.health
	config.Config.ExposedPorts = map[string]struct{}{}
	for _, port := range recipe.ports {
		config.Config.ExposedPorts[port+"/tcp"] = struct{}{}
	}
	var below, above []entry
	for _, e := range recipe.files {
		if e.from == builtBinary {
			e.from = r.binary("", p)
			above = append(above, e)
			continue
		}
		below = append(below, e)
	}
	manifest := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Annotations: recipe.labels}
	for _, layer := range []struct {
		files []entry
		from  string
	}{{below, "the files of the Dockerfile"}, {above, "go build ./cmd/replayd"}} {
		d, diff, err := r.layer(l, layer.files)
		if err != nil {
			return v1.Descriptor{}, err
		}
		manifest.Layers = append(manifest.Layers, d)
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, diff)
		config.History = append(config.History, v1.History{Created: v1.Time{Time: r.at}, CreatedBy: layer.from})
	}
	var err error
	if manifest.Config, err = l.addJSON(types.OCIConfigJSON, config); err != nil {
		return v1.Descriptor{}, err
	}
	d, err := l.addJSON(types.OCIManifestSchema1, manifest)
	d.Platform = &v1.Platform{OS: p.os, Architecture: p.arch}
	return d, err
}

// layer adds a layer and returns its descriptor and the digest of its tar.
func (r *release) layer(l *blobStore, files []entry) (v1.Descriptor, v1.Hash, error) {
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return v1.Descriptor{}, v1.Hash{}, err
	}
	diff := sha256.New()
	if err := writeTar(io.MultiWriter(z, diff), folders(slices.Clone(files)), r.at); err != nil {
		return v1.Descriptor{}, v1.Hash{}, err
	}
	if err := z.Close(); err != nil {
		return v1.Descriptor{}, v1.Hash{}, err
	}
	return l.add(types.OCILayer, packed.Bytes()), v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(diff.Sum(nil))}, nil
}
