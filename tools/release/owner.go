package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// An owner holds the public names of OWNER.yaml. All but the first and the third are empty while nobody owns one.
type owner struct {
	Module      string `yaml:"module"`
	Repository  string `yaml:"repository"` // https://github.com/OWNER/replayd
	Image       string `yaml:"image"`      // ghcr.io/OWNER/replayd
	Charts      string `yaml:"charts"`     // oci://ghcr.io/OWNER/charts
	RunbookBase string `yaml:"runbookBase"`
	Maintainer  string `yaml:"maintainer"` // Name <mail>
	Codeowners  string `yaml:"codeowners"`
}

// readOwner reads OWNER.yaml.
func readOwner(root string) (o owner, err error) {
	text, err := os.ReadFile(filepath.Join(root, "OWNER.yaml"))
	if err != nil {
		return o, err
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&o); err != nil {
		return o, fmt.Errorf("OWNER.yaml: %w", err)
	}
	if o.Module == "" || o.Image == "" {
		return o, fmt.Errorf("OWNER.yaml: want module and image, got %q, %q", o.Module, o.Image)
	}
	return o, nil
}

// maintainer is the one that packages name.
func (o owner) maintainer() string {
	if o.Maintainer == "" {
		return "The replayd Authors"
	}
	return o.Maintainer
}
