package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"go.yaml.in/yaml/v3"
)

// push brings the image and the chart of the folder to the registry of OWNER.yaml. It goes on only with the files that were made for the
// tag of this commit, and overwrites nothing.
func (r *release) push(ctx context.Context) error {
	image, charts, err := r.owner.registry()
	if err != nil {
		return err
	}
	if err := r.checkTag(ctx); err != nil {
		return err
	}
	if err := r.checkSums(); err != nil {
		return err
	}
	return errors.Join(r.pushImage(ctx, image), r.pushChart(ctx, charts))
}

// registry returns where the image and the chart belong.
func (o owner) registry() (image name.Repository, charts string, err error) {
	const unowned = "nobody owns a public name yet, so there is nowhere to push to"
	if !strings.Contains(o.Image, "/") {
		return image, "", fmt.Errorf("OWNER.yaml: image: want a registry and a name, such as ghcr.io/OWNER/replayd, got %q: %s", o.Image, unowned)
	}
	charts, ok := strings.CutPrefix(o.Charts, "oci://")
	if !ok || charts == "" {
		return image, "", fmt.Errorf("OWNER.yaml: charts: want an address such as oci://ghcr.io/OWNER/charts, got %q: %s", o.Charts, unowned)
	}
	if image, err = name.NewRepository(o.Image, name.StrictValidation); err != nil {
		return image, "", fmt.Errorf("OWNER.yaml: image: %w", err)
	}
	return image, charts, nil
}

// checkTag holds the version to the tags of the commit.
func (r *release) checkTag(ctx context.Context) error {
	c := exec.CommandContext(ctx, "git", "tag", "--points-at", r.revision)
	c.Dir = r.root
	said, err := c.Output()
	if err != nil {
		return fmt.Errorf("git tag --points-at %s: %w", r.revision, err)
	}
	if !r.version.tagged() || !slices.Contains(strings.Fields(string(said)), r.version.stamp) {
		return fmt.Errorf("-version: want a tag of the commit %s, which has %q, got %s", r.revision, strings.Fields(string(said)), r.version.stamp)
	}
	return nil
}

// checkSums holds the files to the checksums that were written with them.
func (r *release) checkSums() error {
	listed, err := os.ReadFile(filepath.Join(r.out, checksumFile))
	if err != nil {
		return fmt.Errorf("%w: want the files of make release", err)
	}
	all, err := sums(r.out)
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.name != checksumFile && !strings.Contains(string(listed), s.sha256+"  "+s.name+"\n") {
			return fmt.Errorf("%s: want the file that %s lists, got sha256 %s", s.name, checksumFile, s.sha256)
		}
	}
	return nil
}

// pushImage pushes the index of the layout under its version, and as latest where it is no pre-release.
func (r *release) pushImage(ctx context.Context, to name.Repository) error {
	dir := filepath.Join(r.work, "layout")
	if err := unpack(r.file(".oci.tar"), dir); err != nil {
		return err
	}
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return err
	}
	m, err := top.IndexManifest()
	if err != nil || len(m.Manifests) != 1 {
		return fmt.Errorf("%s: want one image, got %w", filepath.Base(r.file(".oci.tar")), err)
	}
	index, err := top.ImageIndex(m.Manifests[0].Digest)
	if err != nil {
		return err
	}
	tag := to.Tag(r.version.String())
	there, err := r.isThere(ctx, tag, m.Manifests[0].Digest)
	if err != nil {
		return err
	}
	if !there {
		if err := remote.WriteIndex(tag, index, remoteOptions(ctx)...); err != nil {
			return fmt.Errorf("%s: %w", tag, err)
		}
	}
	fmt.Fprintf(r.log, "%s@%s\n", tag, m.Manifests[0].Digest)
	if r.version.prerelease == "" {
		return remote.Tag(to.Tag("latest"), index, remoteOptions(ctx)...)
	}
	return nil
}

func remoteOptions(ctx context.Context) []remote.Option {
	return []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
}

// isThere tells whether the registry has these bytes under the tag. Other bytes under it are an error: a version does not change.
func (r *release) isThere(ctx context.Context, tag name.Tag, digest v1.Hash) (bool, error) {
	d, err := remote.Head(tag, remoteOptions(ctx)...)
	var answer *transport.Error
	switch {
	case errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound:
		return false, nil
	case err != nil:
		return false, fmt.Errorf("%s: %w", tag, err)
	case d.Digest != digest:
		return false, fmt.Errorf("%s: want no such version yet, or the same, %s, got %s: raise the version", tag, digest, d.Digest)
	}
	return true, nil
}

// The media types of Helm (helm.sh/docs/topics/registries) and of Artifact Hub (artifacthub.io/docs/topics/repositories/helm-charts).
const (
	chartConfig  types.MediaType = "application/vnd.cncf.helm.config.v1+json"
	chartContent types.MediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	hubConfig    types.MediaType = "application/vnd.cncf.artifacthub.config.v1+yaml"
	hubContent   types.MediaType = "application/vnd.cncf.artifacthub.repository-metadata.layer.v1.yaml"
)

// pushChart pushes the chart's package as helm push does, and what Artifact Hub reads where it has given the repository an id.
func (r *release) pushChart(ctx context.Context, charts string) error {
	c, err := r.readChart()
	if err != nil {
		return err
	}
	content, err := os.ReadFile(filepath.Join(r.out, c.file()))
	if err != nil {
		return err
	}
	var about map[string]any
	if err := yaml.Unmarshal(c.text, &about); err != nil {
		return err
	}
	config, err := json.Marshal(about)
	if err != nil {
		return err
	}
	to, err := name.NewRepository(charts+"/"+c.Name, name.StrictValidation)
	if err != nil {
		return fmt.Errorf("OWNER.yaml: charts: %w", err)
	}
	annotations := map[string]string{
		"org.opencontainers.image.title":   c.Name,
		"org.opencontainers.image.version": c.Version,
		"org.opencontainers.image.created": r.at.Format(time.RFC3339),
	}
	if err := r.pushArtifact(ctx, to.Tag(c.Version), newArtifact(chartConfig, config, chartContent, content, annotations)); err != nil {
		return err
	}
	const file = "deploy/helm/artifacthub-repo.yml"
	hub, err := os.ReadFile(filepath.Join(r.root, file))
	if err != nil {
		return err
	}
	var known struct {
		RepositoryID string `yaml:"repositoryID"`
	}
	if err := yaml.Unmarshal(hub, &known); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if known.RepositoryID == "" {
		return nil
	}
	// This tag follows the file: it is the one thing that is overwritten.
	return remote.Write(to.Tag("artifacthub.io"), newArtifact(hubConfig, []byte("{}"), hubContent, hub, nil), remoteOptions(ctx)...)
}

func (r *release) pushArtifact(ctx context.Context, tag name.Tag, a v1.Image) error {
	digest, err := a.Digest()
	if err != nil {
		return err
	}
	there, err := r.isThere(ctx, tag, digest)
	if err != nil {
		return err
	}
	if !there {
		if err := remote.Write(tag, a, remoteOptions(ctx)...); err != nil {
			return fmt.Errorf("%s: %w", tag, err)
		}
	}
	fmt.Fprintf(r.log, "%s@%s\n", tag, digest)
	return nil
}
