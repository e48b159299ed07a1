package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// A statement is in-toto's, version 1, about files by their SHA-256 (github.com/in-toto/attestation, spec/v1/statement.md). Its predicate is
// SLSA's provenance (slsa.dev/spec/v1.0/provenance). Nobody signs it here: the workflow of a release does.
type statement struct {
	Type          string     `json:"_type"`
	Subject       []resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     provenance `json:"predicate"`
}

type resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

type provenance struct {
	BuildDefinition struct {
		BuildType            string            `json:"buildType"`
		ExternalParameters   map[string]string `json:"externalParameters"`
		ResolvedDependencies []resource        `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	} `json:"runDetails"`
}

// The build has no public page while nobody owns a public name; then it is the section of this repository that says how to do it again.
const (
	buildType = "urn:replayd:make-release:1"
	builder   = "urn:replayd:builder:make"
)

// statement writes who the files are of, as far as this repository knows. Neither the machine nor the time of the run is in it, so that
// whoever makes the files again gets the same statement.
func (r *release) statement(ctx context.Context) error {
	c := exec.CommandContext(ctx, "go", "env", "GOVERSION")
	c.Dir = r.root
	said, err := c.Output()
	if err != nil {
		return fmt.Errorf("go env GOVERSION: %w", err)
	}
	files, err := sums(r.out)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(r.state(files, strings.TrimSpace(string(said))), "", "  ")
	if err != nil {
		return err
	}
	return create(r.file(".intoto.json"), func(w io.Writer) error { _, err := w.Write(append(text, '\n')); return err })
}

func (r *release) state(files []sum, goVersion string) statement {
	s := statement{Type: "https://in-toto.io/Statement/v1", PredicateType: "https://slsa.dev/provenance/v1"}
	for _, f := range files {
		s.Subject = append(s.Subject, resource{Name: f.name, Digest: map[string]string{"sha256": f.sha256}})
	}
	b := &s.Predicate.BuildDefinition
	b.BuildType = buildType
	commit := resource{Name: "replayd", Digest: map[string]string{"gitCommit": r.revision}}
	if r.owner.Repository != "" {
		b.BuildType = r.owner.Repository + "/blob/" + r.revision + "/docs/how-to/install.md#make-the-files-again"
		commit.URI = "git+" + r.owner.Repository
	}
	b.ExternalParameters = map[string]string{"command": "make release", "version": r.version.stamp, "sourceDateEpoch": fmt.Sprint(r.at.Unix())}
	b.ResolvedDependencies = []resource{commit, {Name: goVersion, URI: "pkg:generic/go@" + strings.TrimPrefix(goVersion, "go")}}
	s.Predicate.RunDetails.Builder.ID = builder
	return s
}
