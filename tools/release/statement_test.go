package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The statement names each file with its SHA-256, the commit and the version of Go; no public name while nobody owns one.
func TestStatement(t *testing.T) {
	for _, repository := range []string{"", "https://github.com/someone/replayd"} {
		r := newTestRelease(t)
		r.owner.Repository = repository
		for _, name := range []string{"a", "b"} {
			if err := os.WriteFile(filepath.Join(r.out, name), []byte(name), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.statement(t.Context()); err != nil {
			t.Fatal(err)
		}
		text := readFile(t, r.file(".intoto.json"))
		var s statement
		if err := json.Unmarshal(text, &s); err != nil {
			t.Fatal(err)
		}
		if s.Type != "https://in-toto.io/Statement/v1" || s.PredicateType != "https://slsa.dev/provenance/v1" {
			t.Errorf("want a statement of provenance, got %s", text)
		}
		// printf a | sha256sum
		const a = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
		if len(s.Subject) != 2 || s.Subject[0].Name != "a" || s.Subject[0].Digest["sha256"] != a || s.Subject[1].Name != "b" {
			t.Errorf("want two files with their sums, got %+v", s.Subject)
		}
		deps := s.Predicate.BuildDefinition.ResolvedDependencies
		if !slices.ContainsFunc(deps, func(d resource) bool { return d.Digest["gitCommit"] == r.revision }) ||
			!slices.ContainsFunc(deps, func(d resource) bool { return strings.HasPrefix(d.URI, "pkg:generic/go@1.") }) {
			t.Errorf("want the commit and Go, got %+v", deps)
		}
		if named := strings.Contains(string(text), "github.com"); named != (repository != "") {
			t.Errorf("repository %q: want public names only with an owner, got %s", repository, text)
		}
	}
}
