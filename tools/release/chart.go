package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const chartFolder = "deploy/helm/replayd"

// A chart is what its Chart.yaml says, with the version of replayd in it.
type chart struct {
	text       []byte // of Chart.yaml
	Name       string `yaml:"name"`
	Version    string `yaml:"version"`
	AppVersion string `yaml:"appVersion"`
}

var appVersion = regexp.MustCompile(`(?m)^appVersion: .*$`)

// readChart reads Chart.yaml. Its own version stays, because the chart changes by itself; the version of replayd is this one.
func (r *release) readChart() (c chart, err error) {
	const file = chartFolder + "/Chart.yaml"
	text, err := os.ReadFile(filepath.Join(r.root, file))
	if err != nil {
		return c, err
	}
	if n := len(appVersion.FindAll(text, -1)); n != 1 {
		return c, fmt.Errorf("%s: appVersion: want one line, got %d", file, n)
	}
	c.text = appVersion.ReplaceAll(text, []byte(`appVersion: "`+r.version.String()+`"`))
	if err := yaml.Unmarshal(c.text, &c); err != nil {
		return c, fmt.Errorf("%s: %w", file, err)
	}
	if c.Name != "replayd" || !regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`).MatchString(c.Version) {
		return c, fmt.Errorf("%s: want the name replayd and a version such as 1.2.3, got %q, %q", file, c.Name, c.Version)
	}
	return c, nil
}

func (c chart) file() string { return c.Name + "-" + c.Version + ".tgz" }

// chart packs the chart as helm package does, without the time at which it was packed.
func (r *release) chart(context.Context) error {
	c, err := r.readChart()
	if err != nil {
		return err
	}
	top := filepath.Join(r.root, chartFolder)
	ignored, err := ignoredFolders(filepath.Join(top, ".helmignore"))
	if err != nil {
		return err
	}
	var files []entry
	err = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains(ignored, inside+"/") {
			return fs.SkipDir
		}
		if d.IsDir() {
			return nil
		}
		e := entry{path: filepath.ToSlash(inside), mode: 0o644, from: path}
		if e.path == "Chart.yaml" {
			e.from, e.data = "", c.text
		}
		files = append(files, e)
		return nil
	})
	if err != nil {
		return err
	}
	return r.tarball(c.file(), c.Name, files)
}

// ignoredFolders reads .helmignore, whose lines are folders beside it. Helm knows more patterns.
func ignoredFolders(file string) (all []string, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if strings.Index(line, "/") != len(line)-1 || strings.ContainsAny(line, "*?[!") {
			return nil, fmt.Errorf("%s/.helmignore: want folders such as ci/, got %q", chartFolder, line)
		}
		all = append(all, line)
	}
	return all, nil
}

// apartNamespace is the one that the chart is rendered for. It stands in each object, and is taken out again, so that kubectl decides.
const apartNamespace = "the-namespace-of-kubectl"

// manifests renders the packed chart for those who have kubectl and no helm. It is the chart, not a file of its own, so that both install
// the same objects.
func (r *release) manifests(ctx context.Context) error {
	c, err := r.readChart()
	if err != nil {
		return err
	}
	helm, err := r.helm(ctx)
	if err != nil {
		return err
	}
	var out, said bytes.Buffer
	command := exec.CommandContext(ctx, helm, "template", "replayd", filepath.Join(r.out, c.file()), "--namespace", apartNamespace,
		"--set", "image.repository="+r.owner.Image, "--set", "target.url="+exampleTarget)
	command.Stdout, command.Stderr = &out, &said
	if err := command.Run(); err != nil {
		return fmt.Errorf("helm template: %w: %s", err, said.String())
	}
	text := strings.ReplaceAll(out.String(), "\n  namespace: "+apartNamespace+"\n", "\n")
	if strings.Contains(text, apartNamespace) {
		return errors.New("helm template: want the namespace only as metadata.namespace, got it elsewhere")
	}
	text = fmt.Sprintf(manifestsHead, r.version, r.owner.Image, exampleTarget) + text
	return create(r.file(".kubernetes.yaml"), func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
}

const exampleTarget = "http://vllm:8000"

const manifestsHead = `# replayd %[1]s on Kubernetes, without Helm: the chart with its default values. It replays the bundled sample at a tenth of its
# rate, 27 requests a minute.
#
# Change one line before: url: %[3]s is the address of your server. The image is
# %[2]s:%[1]s
# Where your registry has it under another name, change that line too. Then: kubectl apply --namespace NAMESPACE --filename FILE
`

// helm builds helm at the version of test/kubernetes, or finds it.
func (r *release) helm(ctx context.Context) (string, error) {
	folder := filepath.Join(r.root, ".cache/kubernetes")
	c := exec.CommandContext(ctx, "test/kubernetes/install", folder)
	c.Dir = r.root
	if said, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("test/kubernetes/install: %w: %s", err, said)
	}
	return filepath.Join(folder, "helm"), nil
}
