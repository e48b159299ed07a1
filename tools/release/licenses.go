package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const licensesFile = "THIRD-PARTY-LICENSES.txt"

func (r *release) licensesFile() string { return filepath.Join(r.work, licensesFile) }

// licenses collects the licenses of Go and of the modules in all binaries. Most of them ask that their text comes with the binary.
func (r *release) licenses(ctx context.Context) error {
	modules := map[string]bool{}
	for _, p := range r.platforms {
		for _, with := range []string{"", "-dcgm"} {
			if with != "" && !slices.Contains(packaged, p) {
				continue
			}
			info, err := buildinfo.ReadFile(r.binary(with, p))
			if err != nil {
				return err
			}
			for _, m := range info.Deps {
				modules[m.Path+" "+m.Version] = true
			}
		}
	}
	c := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Path}} {{.Version}}\t{{.Dir}}", "all")
	c.Dir, c.Env = r.root, buildEnvironment(packaged[0])
	said, err := c.Output()
	if err != nil {
		return fmt.Errorf("go list -m all: %w", err)
	}
	goroot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env GOROOT: %w", err)
	}
	folders := map[string]string{"Go": strings.TrimSpace(string(goroot))}
	for line := range strings.Lines(string(said)) {
		if module, folder, _ := strings.Cut(strings.TrimSpace(line), "\t"); modules[module] {
			folders[module] = folder
			delete(modules, module)
		}
	}
	if len(modules) > 0 {
		return fmt.Errorf("go.mod: want the modules of the binaries, got no %v", modules)
	}
	text, err := licenseTexts(folders)
	if err != nil {
		return err
	}
	return os.WriteFile(r.licensesFile(), []byte(text), 0o644)
}

var licenseNames = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// licenseTexts joins the license files in folders, by the name of what each folder has. One without any is an error.
func licenseTexts(folders map[string]string) (string, error) {
	var text strings.Builder
	text.WriteString("The binaries of replayd contain Go's standard library and these modules.\n")
	names := make([]string, 0, len(folders))
	for name := range folders {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		entries, err := os.ReadDir(folders[name])
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		found := false
		for _, e := range entries {
			if !e.Type().IsRegular() || !licenseNames.MatchString(e.Name()) {
				continue
			}
			content, err := os.ReadFile(filepath.Join(folders[name], e.Name()))
			if err != nil {
				return "", err
			}
			found = true
			fmt.Fprintf(&text, "\n==== %s: %s\n\n%s\n", name, e.Name(), strings.TrimSpace(string(content)))
		}
		if !found {
			return "", fmt.Errorf("%s: want a file with its license, there is none", name)
		}
	}
	return text.String(), nil
}
