// Package owner reads OWNER.yaml and writes its values into the files that depend on them: module path, links, image names.
// `make owner` runs it. It is no part of the binary.
package owner

import (
	"bytes"
	"errors"
	"fmt"
	"net/mail"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// File is the name of the file in the root of the repository.
const File = "OWNER.yaml"

// An Owner is what the file says. Each field is documented there.
type Owner struct {
	Module      string `yaml:"module"`
	Repository  string `yaml:"repository"`
	Image       string `yaml:"image"`
	Charts      string `yaml:"charts"`
	RunbookBase string `yaml:"runbookBase"`
	Maintainer  string `yaml:"maintainer"`
	Codeowners  string `yaml:"codeowners"`
}

// Read reads the file in a folder. Its error has every fault, each with its field.
func Read(root string) (Owner, error) {
	text, err := os.ReadFile(filepath.Join(root, File))
	if err != nil {
		return Owner{}, err
	}
	var o Owner
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&o); err != nil {
		return Owner{}, fmt.Errorf("%s: %w", File, err)
	}
	return o, o.check()
}

var (
	modulePath = regexp.MustCompile(`^[a-z0-9.-]+(/[A-Za-z0-9._~-]+)*$`)
	imageName  = regexp.MustCompile(`^([a-z0-9.-]+(:[0-9]+)?/)?[a-z0-9]+([._/-][a-z0-9]+)*$`)
	webPage    = regexp.MustCompile(`^https?://[A-Za-z0-9.:-]+(/[A-Za-z0-9._~%/-]*[A-Za-z0-9._~%-])?$`)
	registry   = regexp.MustCompile(`^oci://[a-z0-9.:-]+(/[a-z0-9._-]+)*$`)
	codeowner  = regexp.MustCompile(`^(@[A-Za-z0-9-]+(/[A-Za-z0-9._-]+)?|[^@\s]+@[^@\s]+)( (@[A-Za-z0-9-]+(/[A-Za-z0-9._-]+)?|[^@\s]+@[^@\s]+))*$`)
)

func (o Owner) check() error {
	var errs []error
	want := func(field, got string, good bool, want string) {
		if !good {
			errs = append(errs, fmt.Errorf("%s: %s: want %s, got %q", File, field, want, got))
		}
	}
	host, _, _ := strings.Cut(o.Module, "/")
	want("module", o.Module, modulePath.MatchString(o.Module), "a module path such as github.com/OWNER/replayd")
	want("module", o.Module, o.Repository == "" || strings.Contains(host, "."), "a path that go install finds, such as github.com/OWNER/replayd, since there is a repository")
	want("repository", o.Repository, o.Repository == "" || strings.HasPrefix(o.Repository, "https://") && webPage.MatchString(o.Repository), `"" or https://HOST/PATH without a / at its end`)
	want("image", o.Image, imageName.MatchString(o.Image), "a name without a tag, such as ghcr.io/OWNER/replayd")
	want("charts", o.Charts, o.Charts == "" || registry.MatchString(o.Charts), `"" or oci://HOST/PATH`)
	want("runbookBase", o.RunbookBase, o.RunbookBase == "" || webPage.MatchString(o.RunbookBase), `"" or the address of a page, without # and a / at its end`)
	address, err := mail.ParseAddress(o.Maintainer)
	want("maintainer", o.Maintainer, o.Maintainer == "" || err == nil && address.Name != "", `"" or "Name <mail>"`)
	want("codeowners", o.Codeowners, o.Codeowners == "" || codeowner.MatchString(o.Codeowners), `"" or names such as @OWNER`)
	return errors.Join(errs...)
}

// Runbook is the address of the page that all alerts link to, or "".
func (o Owner) Runbook() string {
	if o.RunbookBase == "" {
		return o.document("docs/reference/alerts.md")
	}
	return o.RunbookBase
}

// document is the address of a file of the repository, or "".
func (o Owner) document(path string) string {
	if o.Repository == "" {
		return ""
	}
	return o.Repository + "/blob/main/" + path
}
